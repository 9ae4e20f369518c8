package recording

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/ksnoop/ksnoop/compiler"
)

// A delta encodes records as what is different in the record before, and decodes that.
// That is the one before in the same block, of the same event and size: most words, such as the
// thread and its name, are the same, and the time differs in its low bytes.
//
// What is stored of words is apart from the rest. That is mostly the same for each record, and the
// words mostly are not, so that the compressor has little to do with either.
type delta struct {
	before map[deltaKey][]uint64 // the words of the last records; 0 at first
	last   []uint64              // those that were used last
	key    deltaKey              // of these
	kept   int                   // bytes of memory for all
}

// A deltaKey is the event of a record, and its size in bytes.
type deltaKey struct {
	event uint32
	size  int
}

const (
	wordSize = 8
	keyCost  = 128 // bytes of memory for a key without words, about
)

// mostKept is how many bytes of memory the last records may take before a block is
// written. A reader accepts mostBlock of them.
const mostKept = 1 << 20

// How a word is stored: two bits say so.
const (
	wordSame = iota // not at all
	wordLow2        // the 2 low bytes of what is different (exclusive or), as the others are 0
	wordLow4        // 4 of them
	wordAll         // all bytes of the word itself, so that the compressor finds it again
)

// wordStored has the number of bytes that are stored.
var wordStored = [...]int{wordSame: 0, wordLow2: 2, wordLow4: 4, wordAll: wordSize}

const (
	wordsInByte = 4  // so many are described by a byte, the first one by its lowest bits
	wordsAtOnce = 32 // and by 8 bytes
)

func (d *delta) reset() {
	clear(d.before)
	d.last, d.kept = nil, 0
}

// of returns the words of the last record with a key.
func (d *delta) of(k deltaKey) []uint64 {
	if d.last == nil || k != d.key {
		d.last, d.key = d.find(k), k
	}
	return d.last
}

func (d *delta) find(k deltaKey) []uint64 {
	if d.before == nil {
		d.before = map[deltaKey][]uint64{}
	}
	b := d.before[k]
	if b == nil {
		b = make([]uint64, k.size/wordSize)
		d.before[k] = b
		d.kept += k.size + keyCost
	}
	return b
}

// encode appends the event and the size of a record to dst, and how its words are stored. It
// appends what is stored to words, and the bytes after the last whole word.
func (d *delta) encode(dst, words, record []byte) (entry, stored []byte) {
	k := deltaKey{order.Uint32(record), len(record)}
	dst = binary.AppendUvarint(dst, uint64(k.event))
	dst = binary.AppendUvarint(dst, uint64(k.size))
	before, n := d.of(k), len(words)
	words = slices.Grow(words, k.size)
	words = words[:cap(words)]
	for at := 0; at < len(before); at += wordsAtOnce {
		part := before[at:min(at+wordsAtOnce, len(before))]
		how, stored := store(words[n:], part, record[at*wordSize:])
		n += stored
		dst = order.AppendUint64(dst, how)[:len(dst)+(len(part)+wordsInByte-1)/wordsInByte]
	}
	return dst, append(words[:n], record[len(before)*wordSize:]...)
}

// store stores as many words of a record as there are before, at most wordsAtOnce, and
// replaces these. It returns how, and the number of bytes that are stored.
func store(dst []byte, before []uint64, record []byte) (how uint64, n int) {
	for i, was := range before {
		at := i * wordSize
		word := order.Uint64(record[at : at+wordSize : at+wordSize]) // with a capacity it is 6 instructions, without it 13
		x := word ^ was
		if x == 0 {
			continue
		}
		before[i] = word
		switch bit := uint(2*i) % 64; {
		case x < 1<<16:
			how |= wordLow2 << bit
			order.PutUint16(dst[n:n+2:n+2], uint16(x))
			n += 2
		case x < 1<<32:
			how |= wordLow4 << bit
			order.PutUint32(dst[n:], uint32(x))
			n += 4
		default:
			how |= wordAll << bit
			order.PutUint64(dst[n:], word)
			n += wordSize
		}
	}
	return how, n
}

var errDelta = errors.New("a record of a block cannot be decoded")

// decode appends the record of an entry to dst. It returns what follows its words, too.
func (d *delta) decode(dst, entry, words []byte) (record, rest []byte, err error) {
	c := &codec{buf: entry, reading: true}
	var k deltaKey
	number(c, &k.event)
	number(c, &k.size)
	hows, whole := c.buf, k.size/wordSize
	if c.err != nil || k.size < compiler.HeaderSize || k.size > mostRecord || len(hows) != (whole+wordsInByte-1)/wordsInByte {
		return nil, nil, errDelta
	}
	before := d.of(k)
	if d.kept > mostBlock {
		return nil, nil, errDelta
	}
	for i := range hows {
		how := hows[i]
		for at := i * wordsInByte; at < min(whole, (i+1)*wordsInByte); at++ {
			n := wordStored[how%4]
			if n > len(words) {
				return nil, nil, errDelta
			}
			switch how % 4 {
			case wordLow2:
				before[at] ^= uint64(order.Uint16(words))
			case wordLow4:
				before[at] ^= uint64(order.Uint32(words))
			case wordAll:
				before[at] = order.Uint64(words)
			}
			dst = order.AppendUint64(dst, before[at])
			how, words = how/4, words[n:]
		}
		if how != 0 {
			return nil, nil, errDelta
		}
	}
	n := k.size % wordSize
	if n > len(words) {
		return nil, nil, errDelta
	}
	return append(dst, words[:n]...), words[n:], nil
}
