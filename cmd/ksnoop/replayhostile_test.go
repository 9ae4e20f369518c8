package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"hash/crc32"
	"io"
	"math/rand/v2"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/recording"
	"github.com/ksnoop/ksnoop/runtime/render"
	"github.com/stretchr/testify/require"
)

// blockStarts returns the offsets of the blocks of a recording.
func blockStarts(file []byte) (all []int) {
	for at := 16; at < len(file); at += 16 + int(binary.LittleEndian.Uint32(file[at+4:])) {
		all = append(all, at)
	}
	return all
}

// contentsOf returns the contents of the blocks of a recording, and joined makes a
// recording of such, as docs/recording.md says.
func contentsOf(t testing.TB, file []byte) (all [][]byte) {
	for _, at := range blockStarts(file) {
		size := int(binary.LittleEndian.Uint32(file[at+4:]))
		content, err := s2.Decode(nil, file[at+16:][:size])
		require.NoError(t, err)
		require.Len(t, content, int(binary.LittleEndian.Uint32(file[at+8:])))
		all = append(all, content)
	}
	return all
}

func joined(contents [][]byte) []byte {
	file := []byte("ksnoop-record\x00\x00\x01")
	for i, content := range contents {
		stored := s2.Encode(nil, content)
		head := binary.LittleEndian.AppendUint32(nil, uint32(len(stored)))
		head = binary.LittleEndian.AppendUint32(head, uint32(len(content)))
		head = binary.LittleEndian.AppendUint32(head, uint32(i))
		sum := crc32.Checksum(append(head, stored...), crc32.MakeTable(crc32.Castagnoli))
		file = binary.LittleEndian.AppendUint32(file, sum)
		file = append(append(file, head...), stored...)
	}
	return file
}

// replayed reads and prints a recording of any content, and returns its error.
func replayed(t testing.TB, content []byte) error {
	r, err := recording.NewReader(bytes.NewReader(content))
	if err != nil {
		return err
	}
	names := new(render.Symbols)
	names.Set(nil)
	r.Symbols = names.Set
	var printers []render.Printer
	for _, format := range render.TraceFormats {
		p, err := render.New(r.Unit, render.Options{Format: format, System: &r.System, Symbols: names, Values: btfdump.Options{EmitStrings: true, Indent: " "}})
		require.NoError(t, err)
		printers = append(printers, p)
	}
	var ev runtime.Event
	for {
		item, err := r.Next()
		if err != nil {
			return err
		}
		for _, p := range printers {
			switch {
			case item.Record != nil:
				if ev.Decode(r.Unit, item.Record) == nil {
					_ = p.Event(&ev) // its type may have no size
				}
			case item.Table != nil:
				_ = p.Table(item.Table)
			case item.Loss != nil:
				for _, l := range render.NewLosses(r.Unit, item.Loss.Counts, item.Loss.Missed, item.Loss.Time) {
					p.Loss(l)
				}
			case item.End != nil:
				p.End(render.NewSummary(r.Unit, *item.End))
				render.Losses(*item.End, true)
			}
			require.NoError(t, p.Flush(io.Discard))
		}
	}
}

// TestTruncatedRecordings verifies that recordings that end anywhere are read without
// an accident.
func TestTruncatedRecordings(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	rounds := 1000
	if testing.Short() {
		rounds = 100
	}
	for _, run := range traceRuns(t) {
		var file bytes.Buffer
		run.record(t, &file, symbolTable(t))
		require.ErrorIs(t, replayed(t, file.Bytes()), io.EOF)
		for range rounds / 5 {
			err := replayed(t, file.Bytes()[:rnd.IntN(file.Len())])
			require.Error(t, err)
			requireSentence(t, err)
			require.NotErrorIs(t, err, io.EOF)
		}
	}
}

var mutants = flag.Int("mutants", 5000, "recordings with a changed byte or some that TestMutatedRecordings reads")

// TestMutatedRecordings verifies that recordings with any content, whose checksums are
// right, are read and printed without an accident.
func TestMutatedRecordings(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	runs := traceRuns(t)
	read, damaged := 0, 0
	for _, run := range runs {
		run.steps = append(run.steps[:min(len(run.steps), 30)], run.steps[max(0, len(run.steps)-2):]...)
		var file bytes.Buffer
		run.record(t, &file, symbolTable(t))
		contents := contentsOf(t, file.Bytes())
		for range *mutants / len(runs) {
			mutant := make([][]byte, len(contents))
			for i := range contents {
				mutant[i] = bytes.Clone(contents[i])
			}
			for range 1 + rnd.IntN(4) {
				i := rnd.IntN(len(mutant))
				if rnd.IntN(2) == 0 {
					i = 0 // what decodes the others
				}
				mutate(mutant[i], rnd)
			}
			err := replayed(t, joined(mutant))
			requireSentence(t, err)
			if damage := (*recording.DamageError)(nil); errors.As(err, &damage) {
				damaged++
			} else {
				read++
			}
		}
	}
	require.Greater(t, read, *mutants/100, "some are still recordings")
	require.Greater(t, damaged, *mutants/100)
}

// mutate changes a byte or two in place.
func mutate(content []byte, rnd *rand.Rand) {
	at := rnd.IntN(len(content))
	switch rnd.IntN(4) {
	case 0:
		content[at] = byte(rnd.Uint32())
	case 1:
		content[at] ^= 1 << rnd.IntN(8)
	case 2:
		content[at]++
	case 3:
		copy(content[at:], content[rnd.IntN(len(content)):])
	}
}

// FuzzReplay verifies that blocks of any content are read and printed without an
// accident.
func FuzzReplay(f *testing.F) {
	for _, run := range traceRuns(f) {
		run.steps = append(run.steps[:min(len(run.steps), 5)], run.steps[max(0, len(run.steps)-2):]...)
		var file bytes.Buffer
		run.record(f, &file, symbolTable(f))
		contents := contentsOf(f, file.Bytes())
		f.Add(contents[0], bytes.Join(contents[1:], nil))
	}
	f.Fuzz(func(t *testing.T, head, items []byte) {
		require.Error(t, replayed(t, joined([][]byte{head, items})))
	})
}

// requireSentence verifies that an error is one line for the user.
func requireSentence(t testing.TB, err error) {
	require.NotEmpty(t, err.Error())
	require.NotContains(t, err.Error(), "\n")
	require.NotRegexp(t, "panic|runtime error|goroutine|nil pointer|out of range", err.Error())
}

// TestHostileMemory verifies that names in a recording take little memory, however many
// of them a small file has.
func TestHostileMemory(t *testing.T) {
	run := traceRuns(t)[0]
	run.steps = nil
	var file bytes.Buffer
	run.record(t, &file, nil)
	head := contentsOf(t, file.Bytes())[0]
	const container = 10
	named := func(id, size int) []byte {
		k := append(binary.AppendUvarint(nil, uint64(id)), 0, 0) // neither a runtime nor an id
		k = append(binary.AppendUvarint(k, uint64(size)), bytes.Repeat([]byte("x"), size)...)
		return append(binary.AppendUvarint([]byte{container}, uint64(len(k))), k...)
	}
	huge, many := [][]byte{head}, [][]byte{head}
	for id := range 8 {
		huge = append(huge, named(id, 31<<20))
	}
	const perBlock = 2000
	for id := range 20 {
		var block []byte
		for n := range perBlock {
			block = append(block, named(id*perBlock+n, 4096)...)
		}
		many = append(many, block)
	}
	for _, tc := range []struct {
		contents [][]byte
		want     string
	}{
		{huge, "the recording is damaged at byte %d, and cannot be read from there on: a text is longer than any that is recorded"},
		{many, "the recording has no end"},
	} {
		content := joined(tc.contents)
		var containers recording.Containers
		before := heap()
		r, err := recording.NewReader(bytes.NewReader(content))
		require.NoError(t, err)
		var item recording.Item
		for err == nil {
			if item, err = r.Next(); item.Container != nil {
				containers.Add(*item.Container)
			}
		}
		requireSentence(t, err)
		want, _, _ := strings.Cut(tc.want, "%d")
		require.Contains(t, err.Error(), want)
		require.Less(t, heap(), before+100<<20)
		goruntime.KeepAlive(&containers)
	}
}

// heap returns how much memory is in use.
func heap() uint64 {
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.HeapAlloc
}
