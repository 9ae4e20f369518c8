package recording

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/stretchr/testify/require"
)

// randomRecord returns a record of one of a few events and sizes, which differs little from
// the others.
func randomRecord(random *rand.Rand) []byte {
	record := make([]byte, compiler.HeaderSize+[]int{0, 1, 8, 16, 79, 80, 87, 88, 500}[random.IntN(9)])
	record[0] = byte(random.IntN(3))
	for i := 4; i < len(record); i++ {
		switch random.IntN(20) {
		case 0:
			record[i] = byte(random.Uint32())
		case 1:
			record[i] = 0xff
		}
	}
	return record
}

// encoded returns the entry of a record of a new block, and the words.
func encoded(t testing.TB, record []byte) (entry, words []byte) {
	var w Writer
	w.encode(record)
	return entryOf(t, w.content), w.words
}

// entryOf returns what the only entry of a block contains, which is a record.
func entryOf(t testing.TB, entries []byte) []byte {
	k, content, err := (&Reader{content: entries}).entry()
	require.NoError(t, err)
	require.Equal(t, recordEntry, k)
	return content
}

// TestDelta checks that the records of blocks are the same after they were encoded,
// compressed, decompressed and decoded.
func TestDelta(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var write Writer
	var read delta
	var d decompressor
	compress := newCompressor()
	for range 500 {
		before := map[deltaKey][]byte{}
		var records, entries [][]byte
		for range random.IntN(60) {
			record := randomRecord(random)
			key := deltaKey{order.Uint32(record), len(record)}
			last := before[key]
			if last == nil {
				last = make([]byte, len(record))
			}
			differs := len(record)%wordSize > 0 || !bytes.Equal(last[compiler.HeaderSize:], record[compiler.HeaderSize:])
			before[key] = record
			write.content = nil
			if got := write.encode(record); len(record) >= compiler.HeaderSize+2*wordSize || differs {
				require.Equal(t, differs, got)
			}
			records, entries = append(records, record), append(entries, entryOf(t, write.content))
		}
		stored, err := d.decompress(compress(write.words, nil), len(write.words))
		require.NoError(t, err)
		require.Equal(t, string(write.words), string(stored))
		for i, entry := range entries {
			var got []byte
			got, stored, err = read.decode(nil, entry, stored)
			require.NoError(t, err)
			require.Equal(t, records[i], got)
		}
		require.Empty(t, stored)
		write.words = write.words[:0]
		write.delta.nextBlock()
		read.nextBlock()
	}
}

// TestDeltaOfOne checks what docs/recording.md says of three records.
func TestDeltaOfOne(t *testing.T) {
	record := make([]byte, 74)
	record[0] = 200                                     // the event
	order.PutUint64(record[16:], 0x123456789a)          // the time
	order.PutUint64(record[56:], 0xffff)                // a value
	copy(record[32:], "cat")                            // comm
	copy(record[72:], "ab")                             // no whole word
	const head = "\xc8\x01\x4a"                         // 200, and 74 bytes
	zero := "\xc8\x00" + "\x9a\x78\x56\x34\x12\x00\x00" // of the event, and of the time
	var w Writer
	encode := func() (entry, words string) {
		w.content, w.words = nil, nil
		w.encode(record)
		return string(w.content), string(w.words)
	}
	entry, words := encode()
	require.Equal(t, "\x02\x06"+head+"\x31\x42\x00", entry)
	require.Equal(t, zero+"\x00"+"cat\x00"+"\xff\xff"+"ab", words)

	order.PutUint64(record[16:], 0x123456789b)
	entry, words = encode()
	require.Equal(t, "\x02\x06"+head+"\x10\x00\x00", entry)
	require.Equal(t, "\x01\x00"+"ab", words)

	record[0]++ // another event
	entry, _ = encode()
	require.Equal(t, "\x02\x06\xc9\x01\x4a"+"\x31\x42\x00", entry)
}

// TestDeltaRefuses checks that what encode does not append is refused.
func TestDeltaRefuses(t *testing.T) {
	record := bytes.Repeat([]byte("0123456789abcdef"), 6)
	entry, words := encoded(t, record)
	head := entry[:len(entry)-len(record)/groupSize]
	size := func(n uint64) []byte { return binary.AppendUvarint(bytes.Clone(entry[:len(head)-1]), n) }
	for name, tc := range map[string]struct{ entry, words []byte }{
		"no size":        {entry[:len(head)-1], words},
		"short":          {append(size(compiler.HeaderSize-1), 0, 0), words},
		"long":           {append(size(mostRecord+1), make([]byte, mostRecord/groupSize+1)...), nil},
		"few hows":       {entry[:len(entry)-1], words},
		"many hows":      {append(bytes.Clone(entry), 0), words},
		"words missing":  {entry, words[:len(words)-1]},
		"bytes missing":  {append(size(compiler.HeaderSize+1), 0, 0), nil},
		"another number": {append(binary.AppendUvarint(nil, 1<<32), head[len(head)-1]), words},
	} {
		_, _, err := new(delta).decode(nil, tc.entry, tc.words)
		require.ErrorIs(t, err, errDelta, name)
	}
	var d delta
	for i := range mostBlock/mostRecord + 1 {
		_, _, err := d.decode(nil, append(binary.AppendUvarint([]byte{byte(i)}, mostRecord), make([]byte, mostRecord/groupSize)...), nil)
		require.Equal(t, i >= mostBlock/mostRecord-1, err != nil, "the records of a block take at most %d bytes", mostBlock)
	}
}

// FuzzDelta decodes anything twice, without a panic, and checks that what was decoded is the
// same after it was encoded and decoded again.
func FuzzDelta(f *testing.F) {
	random := rand.New(rand.NewPCG(2, 2))
	for range 20 {
		entry, words := encoded(f, randomRecord(random))
		f.Add(entry, words)
	}
	f.Fuzz(func(t *testing.T, entry, words []byte) {
		var read, again delta
		var write Writer
		for range 2 {
			record, _, err := read.decode(nil, entry, words)
			if err != nil {
				require.ErrorIs(t, err, errDelta)
				return
			}
			write.content, write.words = nil, nil
			write.encode(record)
			got, rest, err := again.decode(nil, entryOf(t, write.content), write.words)
			require.NoError(t, err)
			require.Empty(t, rest)
			require.Equal(t, record, got)
		}
	})
}

// TestDecompress checks that what is not a frame, or one of another size, is refused.
func TestDecompress(t *testing.T) {
	var d decompressor
	content := bytes.Repeat([]byte("content "), 1000)
	frame := newCompressor()(content, nil)
	for _, size := range []int{0, 1, len(content) - 1, len(content) + 1, mostBlock} {
		_, err := d.decompress(frame, size)
		require.ErrorIs(t, err, errCompressed, size)
	}
	for i := range frame {
		_, err := d.decompress(frame[:i], len(content))
		require.ErrorIs(t, err, errCompressed, i)
	}
	got, err := d.decompress(frame, len(content))
	require.NoError(t, err)
	require.Equal(t, content, got)
}

// TestBlocksOfManyKeys checks that records of many sizes take bounded memory, of the writer
// and of the reader: blocks end early.
func TestBlocksOfManyKeys(t *testing.T) {
	var file bytes.Buffer
	w, err := NewWriter(&file, &compiler.Unit{}, Origin{}, nil)
	require.NoError(t, err)
	const sizes = 40
	for range 2 {
		for i := range sizes {
			require.NoError(t, w.Record(make([]byte, mostKept/8+8*i)))
			require.LessOrEqual(t, w.delta.kept, 2*mostKept)
		}
	}
	require.NoError(t, w.End(runtime.SessionCounts{}))
	require.Greater(t, w.blocks.number, uint32(2*sizes/8))
	r, err := NewReader(&file)
	require.NoError(t, err)
	for i := range 2 * sizes {
		item, err := r.Next()
		require.NoError(t, err)
		require.Len(t, item.Record, mostKept/8+8*(i%sizes))
		require.LessOrEqual(t, r.delta.kept, 2*mostKept)
	}
	item, err := r.Next()
	require.NoError(t, err)
	require.NotNil(t, item.End)
}
