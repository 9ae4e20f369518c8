package userstack

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/runtime/clock"
	"github.com/ksnoop/ksnoop/runtime/known"
)

// image is an ELF file of a test: code at 0x401000, which is 0x1000 in the file.
type image struct {
	id      string
	table   elf.SectionType // of symbols; 0 for none
	symbols []elf.Symbol
}

const later = time.Duration(1 << 62) // no snapshot is newer

// write writes an image to a file.
func (im image) write(t *testing.T, path string) {
	var names, table bytes.Buffer
	names.WriteByte(0)
	table.Write(make([]byte, elf.Sym64Size))
	for _, s := range im.symbols {
		raw := elf.Sym64{Name: uint32(names.Len()), Info: s.Info, Shndx: uint16(s.Section), Value: s.Value, Size: s.Size}
		names.WriteString(s.Name + "\x00")
		require.NoError(t, binary.Write(&table, binary.LittleEndian, raw))
	}
	note := new(bytes.Buffer)
	if im.id != "" {
		require.NoError(t, binary.Write(note, binary.LittleEndian, []uint32{4, uint32(len(im.id)), 3}))
		note.WriteString("GNU\x00" + im.id + strings.Repeat("\x00", -len(im.id)&3))
	}
	const noteAt, namesAt = 0x200, 0x400
	tableAt := uint64(namesAt + (names.Len()+15)&^15)
	file := make([]byte, 0x2000)
	copy(file[noteAt:], note.Bytes())
	copy(file[namesAt:], names.Bytes())
	copy(file[tableAt:], table.Bytes())
	h := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 2, Shentsize: 64,
	}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	var sections []elf.Section64
	if im.table != 0 {
		h.Shoff, h.Shnum = 0x1800, 3
		sections = []elf.Section64{
			{},
			{Type: uint32(im.table), Off: tableAt, Size: uint64(table.Len()), Link: 2, Entsize: elf.Sym64Size},
			{Type: uint32(elf.SHT_STRTAB), Off: namesAt, Size: uint64(names.Len())},
		}
	}
	progs := []elf.Prog64{
		{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_X), Off: 0x1000, Vaddr: 0x401000, Filesz: 0x800, Memsz: 0x800},
		{Type: uint32(elf.PT_NOTE), Off: noteAt, Filesz: uint64(note.Len())},
	}
	put := func(at int, v any) {
		var b bytes.Buffer
		require.NoError(t, binary.Write(&b, binary.LittleEndian, v))
		copy(file[at:], b.Bytes())
	}
	put(0, h)
	put(64, progs)
	put(0x1800, sections)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, file, 0o755))
}

func function(name string, addr, size uint64) elf.Symbol {
	return elf.Symbol{Name: name, Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), Section: 1, Value: addr, Size: size}
}

// process writes the files of a process, and returns the directory of processes.
func process(t *testing.T, pid int, maps string) (proc string) {
	proc = t.TempDir()
	addProcess(t, proc, pid, maps)
	return proc
}

func addProcess(t *testing.T, proc string, pid int, maps string) {
	dir := filepath.Join(proc, fmt.Sprint(pid))
	require.NoError(t, os.MkdirAll(dir+"/root", 0o755))
	require.NoError(t, os.WriteFile(dir+"/maps", []byte(maps), 0o644))
}

// raw encodes frames as the kernel does.
func raw(frames ...any) (data []byte) {
	for i := 0; i < len(frames); i += 2 {
		var b [FrameSize]byte
		if id := frames[i].(string); id != "" {
			b[0] = validID
			copy(b[4:24], id)
		} else {
			b[0] = addressOnly
		}
		binary.NativeEndian.PutUint64(b[24:], uint64(frames[i+1].(int)))
		data = append(data, b[:]...)
	}
	return append(data, make([]byte, 2*FrameSize)...) // no more frames
}

const buildIDText = "0123456789abcdefghij"

var functions = []elf.Symbol{function("outer", 0x401100, 0x40), function("inner", 0x401140, 0x20), function("last", 0x401200, 0)}

// TestFrames verifies that frames have the function, in whichever table it is; without one
// they have the file and the offset, and without a file the build ID or the address.
func TestFrames(t *testing.T) {
	const maps = "00400000-00401000 r--p 00000000 08:01 77 /bin/x\n00401000-00402000 r-xp 00001000 08:01 %d /bin/x\n" +
		"7f0000000000-7f0000001000 r-xp 00000000 00:00 0 \n7ffe00000000-7ffe00002000 r-xp 00000000 00:00 0                  [vdso]\n"
	for _, tc := range []struct {
		name  string
		image image
		data  []byte
		want  []Frame
	}{
		{"symbols by build ID", image{buildIDText, elf.SHT_SYMTAB, functions}, raw(buildIDText, 0x1150, buildIDText, 0x1140, buildIDText, 0x1161), []Frame{
			{Symbol: "inner", In: 0x10, File: "/bin/x", Offset: 0x1150},
			{Symbol: "outer", In: 0x40, File: "/bin/x", Offset: 0x1140}, // the call is its last instruction
			{File: "/bin/x", Offset: 0x1161},
		}},
		{"by address", image{"", elf.SHT_SYMTAB, functions}, raw("", 0x401150, "", 0x401141, "", 0x401230), []Frame{
			{Symbol: "inner", In: 0x10, File: "/bin/x", Offset: 0x1150},
			{Symbol: "inner", In: 1, File: "/bin/x", Offset: 0x1141},
			{Symbol: "last", In: 0x30, File: "/bin/x", Offset: 0x1230},
		}},
		{"exported ones only", image{"", elf.SHT_DYNSYM, functions}, raw("", 0x401100), []Frame{{Symbol: "outer", File: "/bin/x", Offset: 0x1100}}},
		{"stripped", image{id: "short id"}, raw("short id", 0x1150, "", 0x401141), []Frame{{File: "/bin/x", Offset: 0x1150}, {File: "/bin/x", Offset: 0x1141}}},
		{"elsewhere", image{}, raw("", 0x7f0000000010, "", 0x7ffe00000020, "", 0x10), []Frame{{Address: 0x7f0000000010}, {File: "[vdso]", Offset: 0x20}, {Address: 0x10}}},
		{"another file", image{id: "another"}, raw(buildIDText, 0x1150), []Frame{{BuildID: "303132333435363738396162636465666768696a", Offset: 0x1150}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			proc := process(t, 7, "")
			path := proc + "/7/root/bin/x"
			tc.image.write(t, path)
			addProcess(t, proc, 7, fmt.Sprintf(maps, inode(t, path)))
			stacks := New(proc)
			got := stacks.Frames(7, tc.data, later)
			for i := range got {
				if got[i].File != "" {
					got[i].BuildID = ""
				}
			}
			require.Equal(t, tc.want, got)
		})
	}
}

// TestNoFrame verifies that an address below all mappings, which the kernel counts from
// the mapping that follows it, is not a frame.
func TestNoFrame(t *testing.T) {
	frames := New(process(t, 1, "")).Frames(1, raw(buildIDText, -0x555555554000, buildIDText, 0x10), later)
	require.Len(t, frames, 1)
	require.EqualValues(t, 0x10, frames[0].Offset)
}

func inode(t *testing.T, path string) uint64 {
	var st unix.Stat_t
	require.NoError(t, unix.Stat(path, &st))
	return st.Ino
}

// TestLongNames verifies that a process cannot make what is kept of its names large.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("f", MostName+20)
	proc := process(t, 7, "")
	path := proc + "/7/root/bin/x"
	image{buildIDText, elf.SHT_SYMTAB, []elf.Symbol{function(long, 0x401100, 0x40)}}.write(t, path)
	addProcess(t, proc, 7, fmt.Sprintf("00401000-00402000 r-xp 00001000 08:01 %d /bin/x\n7ffe00000000-7ffe00002000 r-xp 00000000 00:00 0 [%s]\n", inode(t, path), long))
	frames := New(proc).Frames(7, raw("", 0x401110, "", 0x7ffe00000020), later)
	require.Equal(t, long[:MostName], frames[0].Symbol)
	require.Equal(t, "["+long[:MostName-1], frames[1].File)

	var named Named
	for pid := range uint32(known.MostTexts/MostName + 1) {
		require.True(t, named.Add(Key{PID: pid}, Frame{Symbol: "earlier"}))
		require.True(t, named.Add(Key{PID: pid}, Frame{Symbol: long[:MostName]}))
		require.False(t, named.Add(Key{PID: pid}, Frame{Symbol: long[:MostName]}))
		require.LessOrEqual(t, named.frames.Len(), known.MostTexts/MostName)
	}
	require.Less(t, named.frames.Len(), 100, "the others are forgotten")
}

// TestGone verifies that the files of a process that has gone are known by the build IDs of
// others, while an address in it means nothing any more.
func TestGone(t *testing.T) {
	proc := process(t, 7, "")
	path := proc + "/7/root/bin/x"
	image{buildIDText, elf.SHT_SYMTAB, functions}.write(t, path)
	addProcess(t, proc, 7, fmt.Sprintf("00401000-00402000 r-xp 00001000 08:01 %d /bin/x\n", inode(t, path)))
	stacks := New(proc)
	gone := raw(buildIDText, 0x1150, "", 0x401150)
	want := []Frame{{BuildID: "303132333435363738396162636465666768696a", Offset: 0x1150}, {Address: 0x401150}}
	require.Equal(t, want, stacks.Frames(8, gone, later))
	require.Len(t, stacks.Frames(7, gone, later), 2)
	require.Equal(t, "inner", stacks.Frames(8, gone, later)[0].Symbol)
	require.Equal(t, want[1], stacks.Frames(8, gone, later)[1])
}

// TestReused verifies that the files of a process are found whose id another one had that
// has gone, and that those of that one are not looked for at every stack.
func TestReused(t *testing.T) {
	proc := process(t, 7, "")
	path := proc + "/7/root/bin/x"
	image{buildIDText, elf.SHT_SYMTAB, functions}.write(t, path)
	stacks, at := New(proc), clock.Now()
	stack := raw(buildIDText, 0x1150)
	require.Empty(t, stacks.Frames(7, stack, at)[0].Symbol)
	addProcess(t, proc, 7, fmt.Sprintf("00401000-00402000 r-xp 00001000 08:01 %d /bin/x\n", inode(t, path)))
	require.Empty(t, stacks.Frames(7, stack, at+noneFor-1)[0].Symbol)
	require.Equal(t, "inner", stacks.Frames(7, stack, at+noneFor)[0].Symbol)
}

// TestGoing verifies that a process that goes while its files are read leaves nothing wrong
// behind: we may have its file, or a later process has.
func TestGoing(t *testing.T) {
	path := t.TempDir() + "/x"
	image{buildIDText, elf.SHT_SYMTAB, functions}.write(t, path)
	proc := process(t, 7, fmt.Sprintf("00401000-00402000 r-xp 00001000 08:01 %d %s\n00501000-00502000 r-xp 00000000 08:01 %[1]d /bin/x\n", inode(t, path), path))
	stacks := New(proc)
	frames := stacks.Frames(7, raw("", 0x401150, "", 0x501150), later)
	require.Equal(t, "inner", frames[0].Symbol)
	require.Equal(t, Frame{File: "/bin/x", Offset: 0x150}, frames[1])
	addProcess(t, proc, 8, fmt.Sprintf("00501000-00502000 r-xp 00001000 08:01 %d /bin/x\n", inode(t, path)))
	require.NoError(t, os.MkdirAll(proc+"/8/root/bin", 0o755))
	require.NoError(t, os.Link(path, proc+"/8/root/bin/x"))
	require.Equal(t, "inner", stacks.Frames(8, raw("", 0x501150), later)[0].Symbol)
}

// TestSnapshots verifies that what was mapped earlier is not used for a later stack, as a
// file may have been replaced.
func TestSnapshots(t *testing.T) {
	proc := process(t, 7, "00001000-00002000 r-xp 00000000 00:00 0 [vdso]\n")
	stacks := New(proc)
	now := clock.Now()
	require.Equal(t, "[vdso]", stacks.Frames(7, raw("", 0x1000), now)[0].File)
	addProcess(t, proc, 7, "")
	require.Equal(t, "[vdso]", stacks.Frames(7, raw("", 0x1000), now)[0].File, "a stack of that time")
	require.Equal(t, "", stacks.Frames(7, raw("", 0x1000), later)[0].File)
}

// TestReplaced verifies that what may have been mapped only after a stack is not used for
// it, as when the process has executed another program. What was there before stays.
func TestReplaced(t *testing.T) {
	const maps = "00401000-00402000 r-xp 00000000 08:01 1 /bin/%s\n00501000-00502000 r-xp 00000000 08:01 2 /lib/x\n"
	stack := raw("", 0x401010, "", 0x501010)
	named := func(name string) []Frame { return []Frame{{File: name, Offset: 0x10}, {File: "/lib/x", Offset: 0x10}} }
	proc := process(t, 7, fmt.Sprintf(maps, "first"))
	stacks := New(proc)
	require.Equal(t, named("/bin/first"), stacks.Frames(7, stack, clock.Now()))
	before := clock.Now()
	require.Equal(t, named("/bin/first"), stacks.Frames(7, stack, before), "read again")
	between := clock.Now()
	addProcess(t, proc, 7, fmt.Sprintf(maps, "second"))
	unknown := []Frame{{Address: 0x401010}, {File: "/lib/x", Offset: 0x10}}
	require.Equal(t, unknown, stacks.Frames(7, stack, between))
	require.Equal(t, unknown, stacks.Frames(7, stack, before), "the older snapshot is forgotten")
	require.Equal(t, named("/bin/second"), stacks.Frames(7, stack, clock.Now()))
}

// TestAnotherProcess verifies that a stack does not get the files of a process that began
// after it, with the same id.
func TestAnotherProcess(t *testing.T) {
	for name, want := range map[string]Frame{"old": {File: "/bin/x", Offset: 0x10}, "new": {Address: 0x401010}, "gone": {File: "/bin/x", Offset: 0x10}} {
		proc := process(t, 7, "00401000-00402000 r-xp 00000000 08:01 1 /bin/x\n")
		if name != "gone" {
			start := clock.Now() + clock.Asleep() - time.Minute
			if name == "new" {
				start += 2 * time.Minute
			}
			stat := fmt.Sprintf("7 (a) S 1) R%s %d 0 0\n", strings.Repeat(" 1", 18), start/(10*time.Millisecond))
			require.NoError(t, os.WriteFile(proc+"/7/stat", []byte(stat), 0o644))
		}
		require.Equal(t, []Frame{want}, New(proc).Frames(7, raw("", 0x401010), clock.Now()), name)
	}
	require.WithinRange(t, time.Unix(0, int64(begun("/proc/self"))), time.Unix(0, int64(clock.Now()-time.Hour)), time.Unix(0, int64(clock.Now())))
}

// TestHostileFiles verifies that something that is not a file is not opened, and that any
// damage to a file causes no panic.
func TestHostileFiles(t *testing.T) {
	proc := process(t, 7, "")
	image{buildIDText, elf.SHT_SYMTAB, functions}.write(t, proc+"/whole")
	whole, err := os.ReadFile(proc + "/whole")
	require.NoError(t, err)
	for at := 0; at < len(whole); at++ {
		if at > 0x600 && at < 0x1800 {
			continue
		}
		damaged := bytes.Clone(whole)
		for _, b := range []byte{0xff, 0x80} {
			damaged[at] ^= b
			parse(bytes.NewReader(damaged)).frame(0x1150, true)
		}
	}
	_, err = openRegular(proc)
	require.ErrorContains(t, err, "not a file")
	_, err = openRegular("/dev/null")
	require.ErrorContains(t, err, "not a file")
}

// TestSymbolsBounded verifies that the functions of a file take limited memory, and that
// those of all files do: anybody may have made them.
func TestSymbolsBounded(t *testing.T) {
	var s symbols
	for addr := range uint64(2 * mostSymbols / MostName) {
		s.add(addr, 1, strings.Repeat("x", MostName))
	}
	require.LessOrEqual(t, s.bytes(), mostSymbols+2*MostName)
	name, _, ok := s.at(7)
	require.True(t, ok)
	require.Len(t, name, MostName)

	stacks := New(t.TempDir())
	stacks.files[fileID{name: "old"}] = &file{symbols: s}
	stacks.bytes = mostBytesKept
	stacks.open(1, &mapping{name: "/nosuchfile"})
	require.Empty(t, stacks.files)
	require.Zero(t, stacks.bytes)
}

// TestOwnStack verifies that the functions of this test are found in Go's own table.
func TestOwnStack(t *testing.T) {
	pc, _, _, _ := runtime.Caller(0)
	frame := New("/proc").Frames(uint32(os.Getpid()), raw("", int(pc)), later)[0]
	require.Equal(t, "github.com/ksnoop/ksnoop/runtime/userstack.TestOwnStack", frame.Symbol)
	self, err := os.Executable()
	require.NoError(t, err)
	require.Equal(t, self, frame.File)
}

// FuzzMaps checks that any maps file is parsed, and gives sorted mappings.
func FuzzMaps(f *testing.F) {
	f.Add("00401000-00402000 r-xp 00001000 08:01 5 /bin/x y\n")
	f.Add("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n")
	f.Add("1-0 x 0 0 0\n\n- - - - -")
	f.Fuzz(func(t *testing.T, text string) {
		s := &snapshot{mappings: parseMaps(text, 0)}
		for i, m := range s.mappings {
			require.True(t, i == 0 || s.mappings[i-1].start <= m.start)
			s.at(m.start)
		}
	})
}

// FuzzFrames checks that any stack is decoded.
func FuzzFrames(f *testing.F) {
	f.Add(raw(buildIDText, 5, "", 6))
	f.Fuzz(func(t *testing.T, data []byte) {
		require.LessOrEqual(t, len(New("").Frames(1, data, 0)), len(data)/FrameSize)
	})
}
