package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/recording"
	"github.com/ksnoop/ksnoop/runtime/render"
	"github.com/stretchr/testify/require"
)

// blockHeader is the number of bytes before the stored content of a block.
const blockHeader = 24

// blockStarts returns the offsets of the blocks of a recording.
func blockStarts(file []byte) (all []int) {
	for at := 16; at < len(file); at += blockHeader + int(binary.LittleEndian.Uint32(file[at+8:])) {
		all = append(all, at)
	}
	return all
}

var (
	compressor, _   = zstd.NewWriter(nil)
	decompressor, _ = zstd.NewReader(nil)
)

// A blockContent holds the entries of a block, and the words of their records.
type blockContent struct{ entries, words []byte }

func (c blockContent) clone() blockContent {
	return blockContent{bytes.Clone(c.entries), bytes.Clone(c.words)}
}

// contentsOf returns the contents of the blocks of a recording, and joined makes a
// recording of such contents, as docs/recording.md says.
func contentsOf(t testing.TB, file []byte) (all []blockContent) {
	for _, at := range blockStarts(file) {
		head, stored := file[at:][:blockHeader], file[at+blockHeader:]
		content, err := decompressor.DecodeAll(stored[:binary.LittleEndian.Uint32(head[8:])], nil)
		require.NoError(t, err)
		require.Len(t, content, int(binary.LittleEndian.Uint32(head[12:])))
		entries := binary.LittleEndian.Uint32(head[16:])
		all = append(all, blockContent{content[:entries], content[entries:]})
	}
	return all
}

func joined(contents []blockContent) []byte {
	file, first := []byte("ksnoop-record\x00\x00\x02"), uint32(0)
	for i, c := range contents {
		stored := compressor.EncodeAll(slices.Concat(c.entries, c.words), nil)
		head := binary.LittleEndian.AppendUint32(nil, uint32(len(stored)))
		head = binary.LittleEndian.AppendUint32(head, uint32(len(c.entries)+len(c.words)))
		head = binary.LittleEndian.AppendUint32(head, uint32(len(c.entries)))
		head = binary.LittleEndian.AppendUint32(head, uint32(i))
		sum := crc32.Update(first, crc32.MakeTable(crc32.Castagnoli), append(head, stored...))
		if i == 0 {
			first = sum
		}
		file = binary.LittleEndian.AppendUint32(append(file, "\x8bksb"...), sum)
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

// TestTruncatedRecordings verifies that recordings that end anywhere are read without a
// crash.
func TestTruncatedRecordings(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, run := range traceRuns(t) {
		var file bytes.Buffer
		run.record(t, &file, symbolTable(t))
		require.ErrorIs(t, replayed(t, file.Bytes()), io.EOF)
		for range *mutants / 40 {
			err := replayed(t, file.Bytes()[:rnd.IntN(file.Len())])
			require.Error(t, err)
			requireSentence(t, err)
			require.NotErrorIs(t, err, io.EOF)
		}
	}
}

var mutants = flag.Int("mutants", 2000, "recordings with a changed byte or some that TestMutatedRecordings reads; TestTruncatedRecordings reads a fortieth for each run")

// mostAllocated is how many bytes of memory a mutant may take, in all.
const mostAllocated = 512 << 20

// TestMutatedRecordings verifies that recordings of which anything was changed are read
// and printed without a crash and in bounded memory, by the package and by the commands.
func TestMutatedRecordings(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	runs := traceRuns(t)
	read, damaged, skipped := 0, 0, 0
	for _, run := range runs {
		run.shorten()
		var file bytes.Buffer
		run.record(t, &file, symbolTable(t))
		contents := contentsOf(t, file.Bytes())
		for n := range *mutants / len(runs) {
			mutant := mutantOf(file.Bytes(), contents, rnd)
			before := allocated()
			err := replayed(t, mutant)
			require.Less(t, allocated()-before, uint64(mostAllocated))
			requireSentence(t, err)
			damage := (*recording.DamageError)(nil)
			switch {
			case !errors.As(err, &damage):
				read++
			case damage.Skipped:
				skipped++
			default:
				damaged++
			}
			if n%10 == 0 {
				requireCommands(t, mutant, n/10)
			}
		}
	}
	require.Greater(t, read, *mutants/100, "some are still recordings")
	require.Greater(t, damaged, *mutants/100)
	require.Greater(t, skipped, *mutants/100)
}

// shorten leaves the first items, one of each kind, and the last ones.
func (r *traceRun) shorten() {
	const some = 30
	steps := r.steps[:min(len(r.steps), some)]
	kinds := func(i recording.Item) [4]bool { return [4]bool{i.Clock != nil, i.Loss != nil, i.Again, i.Frame != nil} }
	had := map[[4]bool]bool{}
	for _, i := range r.steps[len(steps):] {
		if !had[kinds(i)] {
			had[kinds(i)] = true
			steps = append(steps, i)
		}
	}
	r.steps = append(steps, r.steps[max(0, len(r.steps)-2):]...)
}

// mutantOf returns a recording of which some bytes are changed: of what is compressed, of the file,
// or of blocks whose checksums are made right again.
func mutantOf(file []byte, contents []blockContent, rnd *rand.Rand) []byte {
	changes := 1 + rnd.IntN(4)
	if rnd.IntN(2) == 0 {
		mutant := make([]blockContent, len(contents))
		for i := range contents {
			mutant[i] = contents[i].clone()
		}
		for range changes {
			i := rnd.IntN(len(mutant))
			if rnd.IntN(2) == 0 {
				i = 0 // what decodes the others
			}
			if m := mutant[i]; len(m.words) > 0 && rnd.IntN(4) == 0 {
				mutate(m.words, rnd)
			} else {
				mutate(m.entries, rnd)
			}
		}
		return joined(mutant)
	}
	file = bytes.Clone(file)
	starts := blockStarts(file)
	for range changes {
		at := starts[rnd.IntN(len(starts))]
		switch rnd.IntN(3) {
		case 0:
			mutate(file[at:at+blockHeader], rnd)
		case 1:
			mutate(file[at+blockHeader:], rnd)
		case 2:
			mutate(file, rnd)
		}
	}
	if rnd.IntN(2) == 0 {
		seal(file, starts)
	}
	return file
}

// seal makes the checksums of blocks right.
func seal(file []byte, starts []int) {
	first := uint32(0)
	for i, at := range starts {
		end := min(len(file), at+blockHeader+int(binary.LittleEndian.Uint32(file[at+8:])))
		sum := crc32.Update(first, crc32.MakeTable(crc32.Castagnoli), file[at+8:end])
		if i == 0 {
			first = sum
		}
		copy(file[at:], "\x8bksb")
		binary.LittleEndian.PutUint32(file[at+4:], sum)
	}
}

// requireCommands verifies that replay and info say what is wrong with a recording.
func requireCommands(t *testing.T, content []byte, n int) {
	path := filepath.Join(t.TempDir(), "recording")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	format := []string{"text", "compact", "json", "ftrace"}[n%4]
	for _, args := range [][]string{
		{"replay", "-o", format, path},
		{"replay", "-o", format, "--func", "vfs_*", "--from", "1ms", "--time", "wall", "--summary", path, "if count > 4 || $comm == 'x'"},
		{"info", path},
		{"info", "-o", "json", path},
	} {
		status, _, stderr := runLine(args...)
		require.LessOrEqual(t, status, 2)
		require.True(t, status == 0 || strings.Contains(stderr, "ksnoop: "), args)
		require.NotRegexp(t, accident, stderr)
	}
}

// accident matches the text of a crash, which no message has.
const accident = "panic|runtime error|goroutine|nil pointer|out of range"

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

// FuzzReplay verifies that blocks of any content are read and printed without a crash.
func FuzzReplay(f *testing.F) {
	for _, run := range traceRuns(f) {
		run.shorten()
		var file bytes.Buffer
		run.record(f, &file, symbolTable(f))
		contents := contentsOf(f, file.Bytes())
		var all blockContent
		for _, c := range contents[1:] {
			all.entries, all.words = append(all.entries, c.entries...), append(all.words, c.words...)
		}
		f.Add(contents[0].entries, all.entries, all.words)
	}
	f.Fuzz(func(t *testing.T, head, entries, words []byte) {
		require.Error(t, replayed(t, joined([]blockContent{{head, nil}, {entries, words}})))
	})
}

// requireSentence verifies that an error is one line for the user.
func requireSentence(t testing.TB, err error) {
	require.NotEmpty(t, err.Error())
	require.NotContains(t, err.Error(), "\n")
	require.NotRegexp(t, accident, err.Error())
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
	huge, many := []blockContent{head}, []blockContent{head}
	for id := range 8 {
		huge = append(huge, blockContent{entries: named(id, 31<<20)})
	}
	const perBlock = 2000
	for id := range 20 {
		var block []byte
		for n := range perBlock {
			block = append(block, named(id*perBlock+n, 4096)...)
		}
		many = append(many, blockContent{entries: block})
	}
	for _, tc := range []struct {
		contents []blockContent
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
