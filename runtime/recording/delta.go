package recording

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/ksnoop/ksnoop/compiler"
)

// A delta encodes records by what differs from the record before, and decodes them. The one
// before has the same event and size, and is in the same block: most words, such as the
// thread and its name, are the same, and the time differs in its low bytes.
//
// The words that are stored are kept apart from the rest. The rest is mostly the same for
// each record, and the words mostly are not, so that the compressor has little to do with
// either.
type delta struct {
	bases map[deltaKey]*base
	last  *base    // the one that was used last
	key   deltaKey // of it
	block uint     // counts blocks
	used  int      // bytes of memory for the bases of this block
	kept  int      // the same for all bases
}

// A deltaKey is the event of a record, and its size in bytes.
type deltaKey struct {
	event uint32
	size  int
}

// A base is the record that the next one with its key is compared with.
type base struct {
	head     [headRoom]byte // with which its entry begins
	headSize int
	groups   int
	block    uint     // in which words are valid
	words    []uint64 // of the record before; 0 at first
}

const (
	wordSize   = 8
	groupWords = 4 // words whose storage one byte of an entry describes, the first one by its lowest bits
	groupSize  = groupWords * wordSize
	headRoom   = 16  // for the kind of an entry and three numbers that are never large
	baseCost   = 256 // bytes of memory without the words, about
)

// mostKept bounds the memory for bases, in bytes. When those of a block take as much, the
// block is written; when all take as much, they are forgotten after the block. A reader
// accepts mostBlock for a block.
const mostKept = 4 << 20

// How a word is stored: two bits say so.
const (
	wordSame = iota // not at all
	wordLow2        // the 2 low bytes of what is different (exclusive or), as the others are 0
	wordLow4        // 4 of them
	wordAll         // all bytes of the word itself, so that the compressor finds it again
)

// wordStored has the number of bytes that are stored.
var wordStored = [...]int{wordSame: 0, wordLow2: 2, wordLow4: 4, wordAll: wordSize}

// nextBlock begins a block, in which records differ from 0 again.
func (d *delta) nextBlock() {
	d.last, d.used = nil, 0
	d.block++
	if d.kept >= mostKept {
		clear(d.bases)
		d.kept = 0
	}
}

// of returns the base for records with a key.
func (d *delta) of(k deltaKey) *base {
	if d.last == nil || k != d.key {
		d.last, d.key = d.find(k), k
	}
	return d.last
}

func (d *delta) find(k deltaKey) *base {
	if d.bases == nil {
		d.bases = map[deltaKey]*base{}
	}
	b := d.bases[k]
	if b != nil && b.block == d.block {
		return b
	}
	if b == nil {
		b = newBase(k)
		d.bases[k] = b
		d.kept += k.size + baseCost
	}
	clear(b.words)
	b.block = d.block
	d.used += k.size + baseCost
	return b
}

func newBase(k deltaKey) *base {
	b := &base{words: make([]uint64, k.size/wordSize)}
	b.groups = groupsOf(k.size)
	entry := binary.AppendUvarint(nil, uint64(k.event))
	entry = binary.AppendUvarint(entry, uint64(k.size))
	head := binary.AppendUvarint([]byte{byte(recordEntry)}, uint64(len(entry)+b.groups))
	b.headSize = copy(b.head[:], append(head, entry...))
	return b
}

// groupsOf returns the number of groups of a record of size bytes.
func groupsOf(size int) int { return (size/wordSize + groupWords - 1) / groupWords }

// group returns the index of the first word of a group. The last group has as many words as
// the others, so it may share some with the one before.
func (b *base) group(i int) int { return min(i*groupWords, len(b.words)-groupWords) }

// encode adds the entry of a record to the next block: its event, its size, and how its words
// are stored. It adds what is stored of words, and the bytes after the last one. It reports
// whether anything but the header differs from the record before; if the record has one word
// more than the header, also whether comm does.
func (r *Writer) encode(record []byte) (differs bool) {
	b := r.delta.of(deltaKey{order.Uint32(record), len(record)})
	if need := headRoom + b.groups + wordSize; cap(r.content)-len(r.content) < need {
		r.content = slices.Grow(r.content, need)
	}
	if need := len(record) + len(room{}); cap(r.words)-len(r.words) < need {
		r.words = slices.Grow(r.words, need)
	}
	entry := r.content[len(r.content):cap(r.content)]
	words, w := r.words[:cap(r.words)], len(r.words)
	*(*[headRoom]byte)(entry) = b.head
	at := b.headSize
	for g := 0; g < b.groups; g += groupsAtOnce {
		how, size := b.store((*room)(words[w:w+len(room{}):w+len(room{})]), record, g, min(g+groupsAtOnce, b.groups))
		order.PutUint64(entry[at+g:at+g+wordSize:at+g+wordSize], how)
		w += size
		if g == 0 {
			how >>= 2 * compiler.HeaderSize / wordSize
		}
		if how != 0 {
			differs = true
		}
	}
	r.content, r.words = r.content[:len(r.content)+at+b.groups], r.words[:w]
	if len(record)%wordSize > 0 {
		r.words = append(r.words, record[len(b.words)*wordSize:]...)
		return true
	}
	return differs
}

// groupsAtOnce is the number of groups that store stores at most, and a room has room
// for what is stored of them.
const groupsAtOnce = 8

type room [groupsAtOnce*groupSize + wordSize]byte

// store stores groups of a record in place of those before. It returns how each word is stored, and the
// number of bytes that are stored.
func (b *base) store(dst *room, record []byte, from, to int) (how uint64, n int) {
	words := b.words
	for i := from; i < to; i++ {
		g := min(i*groupWords, len(words)-groupWords)
		was, now := (*[groupWords]uint64)(words[g:g+groupWords:g+groupWords]), (*[groupSize]byte)(record[g*wordSize:g*wordSize+groupSize:g*wordSize+groupSize])
		w0, w1, w2, w3 := order.Uint64(now[0:]), order.Uint64(now[8:]), order.Uint64(now[16:]), order.Uint64(now[24:])
		if (w0^was[0])|(w1^was[1])|(w2^was[2])|(w3^was[3]) == 0 {
			continue
		}
		var h0, h1, h2, h3 uint64
		h0, n = storeWord(dst, n, w0, was[0])
		h1, n = storeWord(dst, n, w1, was[1])
		h2, n = storeWord(dst, n, w2, was[2])
		h3, n = storeWord(dst, n, w3, was[3])
		*was = [groupWords]uint64{w0, w1, w2, w3}
		how |= (h0 | h1<<2 | h2<<4 | h3<<6) << (uint(i) * 8 % 64)
	}
	return how, n
}

func storeWord(dst *room, at int, word, was uint64) (how uint64, to int) {
	x := word ^ was
	if x == 0 {
		return wordSame, at
	}
	place := dst[at&(len(dst)-wordSize-1):]
	order.PutUint64(place, x)
	switch {
	case x < 1<<16:
		return wordLow2, at + 2
	case x < 1<<32:
		return wordLow4, at + 4
	}
	order.PutUint64(place, word)
	return wordAll, at + wordSize
}

var errDelta = errors.New("a record of a block cannot be decoded")

// decode appends the record of an entry to dst. It returns what follows its words, too.
func (d *delta) decode(dst, entry, words []byte) (record, rest []byte, err error) {
	c := &codec{buf: entry, reading: true}
	var k deltaKey
	number(c, &k.event)
	number(c, &k.size)
	hows := c.buf
	if c.err != nil || k.size < compiler.HeaderSize || k.size > mostRecord || len(hows) != groupsOf(k.size) {
		return nil, nil, errDelta
	}
	b := d.of(k)
	if d.used > mostBlock {
		return nil, nil, errDelta
	}
	for i, how := range hows {
		for j := range groupWords {
			n := wordStored[how%4]
			if n > len(words) {
				return nil, nil, errDelta
			}
			switch word := &b.words[b.group(i)+j]; how % 4 {
			case wordLow2:
				*word ^= uint64(order.Uint16(words))
			case wordLow4:
				*word ^= uint64(order.Uint32(words))
			case wordAll:
				*word = order.Uint64(words)
			}
			how, words = how/4, words[n:]
		}
	}
	for _, word := range b.words {
		dst = order.AppendUint64(dst, word)
	}
	n := k.size % wordSize
	if n > len(words) {
		return nil, nil, errDelta
	}
	return append(dst, words[:n]...), words[n:], nil
}
