package run

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/recording"
	"github.com/ksnoop/ksnoop/runtime/render"
	"github.com/ksnoop/ksnoop/runtime/userstack"
)

// TestRotate verifies that the newest files are kept, in order.
func TestRotate(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	f, err := openFile(&FileOptions{Name: name, Rotate: 10, Keep: 2}, &term.Streams{})
	require.NoError(t, err)
	require.NoFileExists(t, name, "until the specs are known to be right")
	require.NoError(t, f.create())
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	require.False(t, f.full(9))
	require.True(t, f.full(10))
	for _, text := range []string{"a", "b", "c", "d"} {
		_, err := f.Write([]byte(text))
		require.NoError(t, err)
		require.NoError(t, f.rotate())
	}
	require.Equal(t, 4, f.part)
	require.NoError(t, f.Close())
	for suffix, want := range map[string]string{"": "", ".1": "d", ".2": "c"} {
		text, err := os.ReadFile(name + suffix)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
	require.NoFileExists(t, name+".3")
	_, err = openFile(&FileOptions{Name: "/dev/null", Rotate: 10}, &term.Streams{})
	require.EqualError(t, err, "--rotate renames files, and /dev/null is not a regular one: name another file")
}

// TestRotateOntoDirectory verifies that there is one error if the files cannot be renamed
// any more: that of the file, which is closed by then, would be another one.
func TestRotateOntoDirectory(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	f, err := openFile(&FileOptions{Name: name, Rotate: 10, Keep: 1}, &term.Streams{})
	require.NoError(t, err)
	require.NoError(t, f.create())
	require.NoError(t, os.Mkdir(name+".1", 0o700))
	require.EqualError(t, f.rotate(), fmt.Sprintf("write the recording: rename %s %[1]s.1: file exists", name))
	require.NoError(t, f.Close())
}

// TestOwnerOnly verifies that a file that was there before is readable for its owner only
// from then on.
func TestOwnerOnly(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, []byte(recording.Magic), 0o644))
	f, err := openFile(&FileOptions{Name: name}, &term.Streams{})
	require.NoError(t, err)
	require.NoError(t, f.create())
	defer f.Close()
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
}

// TestNoDirectory verifies that an error names what could not be created.
func TestNoDirectory(t *testing.T) {
	name := filepath.Join(t.TempDir(), "none", "file")
	f, err := openFile(&FileOptions{Name: name}, &term.Streams{})
	require.NoError(t, err)
	err = f.create()
	require.EqualError(t, err, "create "+name+": no such file or directory")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestRotateAgain verifies that the numbered files of an earlier recording go when another
// one begins, and that no other file does.
func TestRotateAgain(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	write := func(suffix, text string) { require.NoError(t, os.WriteFile(name+suffix, []byte(text), 0o600)) }
	for _, suffix := range []string{"", ".1", ".2", ".3", ".5"} {
		write(suffix, recording.Magic+"\x01")
	}
	write(".4", "a text")
	f, err := openFile(&FileOptions{Name: name}, &term.Streams{})
	require.NoError(t, err)
	require.NoError(t, f.create())
	require.NoError(t, f.Close())
	require.FileExists(t, name+".1", "this one has one file")
	f, err = openFile(&FileOptions{Name: name, Rotate: 10, Keep: 2}, &term.Streams{})
	require.NoError(t, err)
	require.NoError(t, f.create())
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, recording.Magic+"\x01", string(text), "until everything is attached")
	require.FileExists(t, name+".1", "as well")
	require.NoError(t, f.clear())
	text, err = os.ReadFile(name)
	require.NoError(t, err)
	require.Empty(t, text)
	for suffix, there := range map[string]bool{"": true, ".1": false, ".2": false, ".3": false, ".4": true, ".5": true} {
		_, err := os.Stat(name + suffix)
		require.Equal(t, there, err == nil, suffix)
	}
	require.NoError(t, f.rotate())
	require.FileExists(t, name+".1")
	require.NoError(t, f.rotate())
	require.FileExists(t, name+".2", "parts of this one stay")
	require.NoError(t, f.Close())
}

// TestRotateOver verifies that files that are not recordings are not replaced, and that those
// of an earlier recording go also where one between them is missing.
func TestRotateOver(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name+".2", []byte("notes"), 0o600))
	_, err := openFile(&FileOptions{Name: name, Rotate: 10}, &term.Streams{})
	require.EqualError(t, err, "--rotate would replace "+name+".2, which is not a recording: name another file, or move that one")
	f, err := openFile(&FileOptions{Name: name, Rotate: 10, Keep: 1}, &term.Streams{})
	require.NoError(t, err, "it is out of reach")
	require.NoError(t, os.WriteFile(name+".2", []byte(recording.Magic), 0o600))
	f.Keep = 3
	require.NoError(t, f.create())
	require.NoError(t, f.clear())
	require.NoError(t, f.Close())
	require.NoFileExists(t, name+".2")
}

// TestRecordToStdout verifies that a recording may go to standard output, and does not
// pass the filter for terminals.
func TestRecordToStdout(t *testing.T) {
	var out strings.Builder
	f, err := openFile(&FileOptions{Name: "-"}, &term.Streams{Out: term.NewPlain(&out)})
	require.NoError(t, err)
	_, err = f.Write([]byte("\x00\x1b"))
	require.NoError(t, err)
	require.Equal(t, "\x00\x1b", out.String())
	require.NoError(t, f.Close())
	_, err = openFile(&FileOptions{Name: "-", Rotate: 1}, &term.Streams{Out: &out})
	require.EqualError(t, err, "--rotate begins new files, and -w - is standard output: name a file")
}

// refused is a file that cannot be written.
type refused struct{ error }

func (r refused) Write([]byte) (int, error) { return 0, r.error }

// TestRecordUnwritable verifies that a full disk has a cure, and that a reader of standard
// output that has gone is known as such.
func TestRecordUnwritable(t *testing.T) {
	f, err := openFile(&FileOptions{Name: "/dev/full"}, &term.Streams{})
	require.NoError(t, err)
	require.NoError(t, f.create())
	defer f.Close()
	_, err = recording.NewWriter(f, &compiler.Unit{}, recording.Origin{}, nil)
	require.EqualError(t, err, "write the recording: write /dev/full: no space left on device: make room there, or record less, as with --rotate 100M --keep 2")

	limited := &recordFile{Writer: refused{unix.EFBIG}}
	_, err = limited.Write([]byte{0})
	require.EqualError(t, err, "file too large: make room there, or record less, as with --rotate 100M --keep 2")

	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	defer writer.Close()
	require.NoError(t, reader.Close())
	f, err = openFile(&FileOptions{Name: "-"}, &term.Streams{Out: term.NewPlain(writer)})
	require.NoError(t, err)
	_, err = recording.NewWriter(f, &compiler.Unit{}, recording.Origin{}, nil)
	require.ErrorIs(t, err, term.ErrReaderGone)
}

// TestRecordStuck verifies that a signal ends writes to a pipe that nobody reads, whether it
// is standard output or has a name.
func TestRecordStuck(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, unix.Mkfifo(name, 0o600))
	pipe, err := os.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	defer pipe.Close()
	for _, of := range []string{"-", name} {
		s := &term.Streams{Out: term.NewPlain(term.NewStdout(pipe))}
		f, err := openFile(&FileOptions{Name: of}, s)
		require.NoError(t, err)
		require.NoError(t, f.create())
		term.Hurry(s.Out)
		_, err = f.Write(make([]byte, 1<<20))
		require.EqualError(t, err, name+" is full and nobody reads it: what was still to be shown is dropped")
		require.NoError(t, f.Close())
	}
}

// numberEvent returns an event with a number at offset 56 of its records, of 64 bytes.
func numberEvent() *compiler.EventType {
	integer := &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	return &compiler.EventType{
		Probe: &compiler.Probe{Func: &compiler.Function{Name: "f"}}, Kind: compiler.EntryEvent,
		Items:  []*compiler.Value{{Name: "n", Type: integer, Scalar: &compiler.Scalar{Size: 4, Signed: true}}},
		Layout: compiler.Layout{Size: 64, Faults: 48, Slots: []compiler.Slot{{Off: 56, Data: 56, Cap: 4, Full: 4}}},
	}
}

type noTables struct{ tableSource }

func (noTables) Tables() ([]*runtime.Table, error) { return nil, nil }

// TestRecordUnshown verifies that a recording is whole if what is recorded cannot be printed
// any more.
func TestRecordUnshown(t *testing.T) {
	unit := &compiler.Unit{Events: []*compiler.EventType{numberEvent()}}
	name := filepath.Join(t.TempDir(), "file")
	f, err := openFile(&FileOptions{Name: name}, &term.Streams{})
	require.NoError(t, err)
	require.NoError(t, f.create())
	p := &printing{o: &Options{}, streams: &term.Streams{Out: refused{term.ErrReaderGone}}, unit: unit}
	p.out, err = render.New(unit, render.Options{Format: "compact"})
	require.NoError(t, err)
	r := &recorder{o: p.o, file: f, unit: unit, shown: p}
	require.NoError(t, r.begin(new(runtime.Session)))
	const records = 5000 // more than is kept to be printed at once
	for range records {
		require.NoError(t, r.record(make([]byte, 64)))
	}
	all := &tables{source: noTables{}}
	require.NoError(t, r.follow(nil, &tracing{}, &watch{}, all))
	require.ErrorIs(t, r.end(runtime.SessionCounts{Events: []runtime.Counts{{EventType: unit.Events[0]}}}, &watch{}, all), term.ErrReaderGone)
	require.NoError(t, f.Close())
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	in, err := recording.NewReader(bytes.NewReader(content))
	require.NoError(t, err)
	n := 0
	for item := (recording.Item{}); item.End == nil; n++ {
		item, err = in.Next()
		require.NoError(t, err)
	}
	require.Equal(t, records+1, n)
}

// TestRecordFiles verifies that each file of a rotated recording can be read alone, and
// that together they have all records.
func TestRecordFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	f, err := openFile(&FileOptions{Name: name, Rotate: 300, Keep: 9}, &term.Streams{})
	require.NoError(t, err)
	require.NoError(t, f.create())
	ev := numberEvent()
	r := &recorder{o: &Options{Version: "1"}, file: f, unit: &compiler.Unit{Events: []*compiler.EventType{ev}}}
	require.NoError(t, r.begin(new(runtime.Session)))
	for i := range 40 {
		rec := make([]byte, 64)
		rec[compiler.HeaderTime] = byte(i)
		rec[56] = byte(i)
		require.NoError(t, r.record(rec))
		require.NoError(t, r.settle())
	}
	require.NoError(t, r.out.End(runtime.SessionCounts{Events: []runtime.Counts{{EventType: ev}}}))
	require.NoError(t, f.Close())
	require.Greater(t, f.part, 2)
	next := 0
	for part := range f.part + 1 {
		path := name
		if part < f.part {
			path = fmt.Sprintf("%s.%d", name, f.part-part)
		}
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		in, err := recording.NewReader(bytes.NewReader(content))
		require.NoError(t, err)
		require.Equal(t, part, in.Part)
		require.EqualValues(t, max(0, next-1), in.Clock.Mono, "records after the last one may have waited")
		var last recording.Item
		for {
			item, err := in.Next()
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			if last = item; item.Record != nil {
				require.Equal(t, byte(next), item.Record[56])
				next++
			}
		}
		require.Equal(t, part < f.part, last.Next)
		require.Equal(t, part == f.part, last.End != nil)
	}
	require.Equal(t, 40, next)

	r.last = 0
	require.NoError(t, r.keep(nil))
	require.Zero(t, r.last, "records may wait")
	ev.Probe.Measure = compiler.Tables
	require.NoError(t, r.keep(nil))
	require.NotZero(t, r.last)
}

// TestNamesOfWholeStack verifies that a recording has the names of all frames of a stack,
// though all names are forgotten in the middle of it.
func TestNamesOfWholeStack(t *testing.T) {
	proc := t.TempDir()
	require.NoError(t, os.Mkdir(proc+"/1", 0o700))
	require.NoError(t, os.WriteFile(proc+"/1/maps", []byte("1000-90000000 r-xp 00000000 00:00 0 [vdso]\n"), 0o600))
	const frames = 5
	ev := &runtime.Event{EventType: &compiler.EventType{Probe: &compiler.Probe{Func: &compiler.Function{Name: "f"}}}, PID: 1}
	ev.Values = []runtime.Value{{Value: &compiler.Value{Base: compiler.Base{Builtin: compiler.UserStack}}, Data: make([]byte, frames*userstack.FrameSize)}}
	address := uint64(0x1000)
	next := func() {
		for at := 0; at < len(ev.Values[0].Data); at += userstack.FrameSize {
			address++
			ev.Values[0].Data[at] = 2 // BPF_STACK_BUILD_ID_IP
			binary.LittleEndian.PutUint64(ev.Values[0].Data[at+24:], address)
		}
	}
	var file bytes.Buffer
	w, err := recording.NewWriter(&file, &compiler.Unit{}, recording.Origin{}, nil)
	require.NoError(t, err)
	n := &naming{stacks: userstack.New(proc)}
	for n.frames.Cleared() == 0 {
		next()
		require.NoError(t, n.event(ev, w))
	}
	require.NoError(t, w.End(runtime.SessionCounts{}))
	in, err := recording.NewReader(&file)
	require.NoError(t, err)
	stacks := userstack.New("")
	stacks.Named = &userstack.Named{}
	for item := (recording.Item{}); item.End == nil; {
		if item, err = in.Next(); item.Frame != nil {
			stacks.Named.Add(item.Frame.Key, item.Frame.Frame)
		}
		require.NoError(t, err)
	}
	for _, f := range stacks.Frames(1, ev.Values[0].Data, 0) {
		require.Equal(t, "[vdso]", f.File)
	}
}

// TestRecordWhereStreamsGo verifies that no recording is mixed with what is printed: there is
// none in a file that stdout or stderr leads to, and none on stdout with messages.
func TestRecordWhereStreamsGo(t *testing.T) {
	dir := t.TempDir()
	create := func(name string) *os.File {
		file, err := os.Create(dir + "/" + name)
		require.NoError(t, err)
		t.Cleanup(func() { file.Close() })
		return file
	}
	out, other := create("out"), create("other")
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer null.Close()
	require.NoError(t, os.Symlink("out", dir+"/link"))
	require.NoError(t, os.Symlink("out", dir+"/parts.2"))
	const mixed = "-w - writes a recording to standard output, where messages go, too: send those elsewhere, as in 2> FILE"
	for _, tc := range []struct {
		o        FileOptions
		out, err *os.File
		want     string
	}{
		{FileOptions{Name: dir + "/out"}, out, other, "the recording would be written to DIR/out, where stdout goes: name another file"},
		{FileOptions{Name: dir + "/link"}, other, out, "the recording would be written to DIR/link, where stderr goes: name another file"},
		{FileOptions{Name: dir + "/parts", Rotate: 1 << 20}, out, other, "the recording would be written to DIR/parts.2, where stdout goes: name another file"},
		{FileOptions{Name: dir + "/parts"}, out, other, ""},
		{FileOptions{Name: dir + "/parts", Rotate: 1 << 20, Keep: 1}, out, other, ""},
		{FileOptions{Name: "/dev/null"}, null, null, ""},
		{FileOptions{Name: "-"}, out, out, mixed},
		{FileOptions{Name: "-"}, out, other, ""},
		{FileOptions{Name: "-"}, null, null, ""},
	} {
		_, err := openFile(&tc.o, &term.Streams{Out: term.NewPlain(term.NewStdout(tc.out)), Err: term.NewPlain(tc.err)})
		if tc.want == "" {
			require.NoError(t, err, tc.o)
			continue
		}
		require.EqualError(t, err, strings.ReplaceAll(tc.want, "DIR", dir))
		require.True(t, exit.IsUsage(err))
	}
}
