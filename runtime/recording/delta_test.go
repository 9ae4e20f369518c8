package recording

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/stretchr/testify/require"
)

// randomRecord returns a record of few events and sizes, which differs little from the
// others.
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

// TestDelta checks that records of blocks are what they were after they were encoded,
// compressed and decoded.
func TestDelta(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var write, read delta
	var d decompressor
	compress := newCompressor()
	for range 500 {
		var records, entries [][]byte
		var words []byte
		for range random.IntN(60) {
			record := randomRecord(random)
			var entry []byte
			entry, words = write.encode(nil, words, record)
			records, entries = append(records, record), append(entries, entry)
		}
		stored, err := d.decompress(compress(words, nil), len(words))
		require.NoError(t, err)
		require.Equal(t, string(words), string(stored))
		for i, entry := range entries {
			var got []byte
			got, stored, err = read.decode(nil, entry, stored)
			require.NoError(t, err)
			require.Equal(t, records[i], got)
		}
		require.Empty(t, stored)
		write.reset()
		read.reset()
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
	var d delta
	entry, words := d.encode(nil, nil, record)
	require.Equal(t, head+"\x31\x42\x00", string(entry))
	require.Equal(t, zero+"\x00"+"cat\x00"+"\xff\xff"+"ab", string(words))

	order.PutUint64(record[16:], 0x123456789b)
	entry, words = d.encode(nil, nil, record)
	require.Equal(t, head+"\x10\x00\x00", string(entry))
	require.Equal(t, "\x01\x00"+"ab", string(words))

	record[0]++ // another event
	entry, _ = d.encode(nil, nil, record)
	require.Equal(t, "\xc9\x01\x4a"+"\x31\x42\x00", string(entry))
}

// TestDeltaRefuses checks that what encode does not append is refused.
func TestDeltaRefuses(t *testing.T) {
	record := bytes.Repeat([]byte("0123456789abcdef"), 6)
	entry, words := new(delta).encode(nil, nil, record)
	head := entry[:len(entry)-len(record)/8/wordsInByte]
	size := func(n uint64) []byte { return binary.AppendUvarint(bytes.Clone(entry[:len(head)-1]), n) }
	for name, tc := range map[string]struct{ entry, words []byte }{
		"no size":        {entry[:len(head)-1], words},
		"short":          {append(size(compiler.HeaderSize-1), 0, 0), words},
		"long":           {append(size(mostRecord+1), make([]byte, mostRecord/wordSize/wordsInByte+1)...), nil},
		"few hows":       {entry[:len(entry)-1], words},
		"many hows":      {append(bytes.Clone(entry), 0), words},
		"no word":        {append(size(compiler.HeaderSize), 0, 1<<4), words},
		"words missing":  {entry, words[:len(words)-1]},
		"bytes missing":  {append(size(compiler.HeaderSize+1), 0, 0), nil},
		"another number": {append(binary.AppendUvarint(nil, 1<<32), head[len(head)-1]), words},
	} {
		_, _, err := new(delta).decode(nil, tc.entry, tc.words)
		require.ErrorIs(t, err, errDelta, name)
	}
	var d delta
	for i := range mostBlock/mostRecord + 1 {
		_, _, err := d.decode(nil, append(binary.AppendUvarint([]byte{byte(i)}, mostRecord), make([]byte, mostRecord/wordSize/wordsInByte)...), nil)
		require.Equal(t, i >= mostBlock/mostRecord-1, err != nil, "the records of a block take at most %d bytes", mostBlock)
	}
}

// FuzzDelta decodes anything twice, without a panic, and what is then encoded is decoded the same.
func FuzzDelta(f *testing.F) {
	random := rand.New(rand.NewPCG(2, 2))
	for range 20 {
		entry, words := new(delta).encode(nil, nil, randomRecord(random))
		f.Add(entry, words)
	}
	f.Fuzz(func(t *testing.T, entry, words []byte) {
		var read, write, again delta
		for range 2 {
			record, _, err := read.decode(nil, entry, words)
			if err != nil {
				require.ErrorIs(t, err, errDelta)
				return
			}
			encoded, stored := write.encode(nil, nil, record)
			got, rest, err := again.decode(nil, encoded, stored)
			require.NoError(t, err)
			require.Empty(t, rest)
			require.Equal(t, record, got)
		}
	})
}

// TestDecompress checks that what is no frame, or one of another size, is refused.
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
