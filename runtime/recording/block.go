package recording

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
)

// Magic begins every recording. After it comes the version of the format, which changes
// when an older reader would misunderstand a file.
const Magic = "ksnoop-record\x00\x00"

const magic = Magic + "\x02"

// A block has a header of six numbers of 4 bytes, and then the bytes that are stored. The
// numbers are a mark, the checksum of all that follows in the block, the number of bytes
// that are stored, how many they are when decompressed, how many of these are entries (the
// words of their records follow), and the number of the block.
const (
	blockHeader = 24
	checked     = 8 // bytes before what the checksum is of
)

// mark is how each block begins, so that those after a damaged one are found. The checksums of
// all but the first go on from that of the first, so that the blocks of another recording are
// not taken for some of this one.
const mark = "\x8bksb"

// mostBlock is the largest size of a block in bytes that is accepted, stored or not.
const mostBlock = 32 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A blockWriter makes blocks.
type blockWriter struct {
	compress func(content, dst []byte) []byte
	number   uint32 // of the next block
	first    uint32 // checksum of the first one
	block    []byte
}

// of returns a block with a content, in which the first entries bytes are the entries. It
// is valid until the next call.
func (w *blockWriter) of(content []byte, entries int) []byte {
	block := w.compress(content, append(append(w.block[:0], mark...), make([]byte, blockHeader-len(mark))...))
	order.PutUint32(block[8:], uint32(len(block)-blockHeader))
	order.PutUint32(block[12:], uint32(len(content)))
	order.PutUint32(block[16:], uint32(entries))
	order.PutUint32(block[20:], w.number)
	sum := crc32.Update(w.first, castagnoli, block[checked:])
	order.PutUint32(block[4:], sum)
	if w.number == 0 {
		w.first = sum
	}
	w.block = block
	w.number++
	return block
}

// blocks reads the blocks of a file.
type blocks struct {
	r      io.Reader
	at     int64 // offset of the next block
	number uint32
	first  uint32 // checksum of the first block
	buf    []byte
	from   int // where the next block begins in buf
	frames decompressor
}

// A header holds the numbers at the beginning of a block.
type header struct{ stored, size, entries, number uint32 }

// errCut is the reason why a block cannot be read if the file ends in it.
var errCut = errors.New("the file ends in the middle of a block")

// next returns the entries of the next block and the words of their records, which are valid
// until the next call. At the end of the file it returns io.EOF. After another error,
// skip finds the next block that can be read.
func (b *blocks) next() (entries, words []byte, err error) {
	h, err := b.header()
	if err != nil {
		return nil, nil, err
	}
	if h.number != b.number {
		return nil, nil, fmt.Errorf("block %d is where block %d must be", h.number, b.number)
	}
	if b.number == 0 {
		b.first = order.Uint32(b.ahead()[4:])
	}
	content, err := b.frames.decompress(b.ahead()[blockHeader:][:h.stored], int(h.size))
	b.drop(blockHeader + int(h.stored))
	b.number++
	if err != nil {
		return nil, nil, err
	}
	return content[:h.entries], content[h.entries:], nil
}

// header returns the header of the next block, all of which is read then and has the right
// checksum.
func (b *blocks) header() (h header, err error) {
	if err := b.read(1); err != nil {
		return h, err
	}
	if err := b.read(blockHeader); err != nil {
		return h, cutOr(err)
	}
	if string(b.ahead()[:len(mark)]) != mark {
		return h, errors.New("no block begins there")
	}
	field := func(at int) uint32 { return order.Uint32(b.ahead()[at:]) }
	h = header{field(8), field(12), field(16), field(20)}
	if h.stored > mostBlock || h.size > mostBlock {
		return h, fmt.Errorf("a block says that it has %d bytes", max(h.stored, h.size))
	}
	if h.entries > h.size {
		return h, fmt.Errorf("a block of %d bytes says that it has %d bytes of entries", h.size, h.entries)
	}
	all := blockHeader + int(h.stored)
	if err := b.read(all); err != nil {
		return h, cutOr(err)
	}
	if crc32.Update(b.first, castagnoli, b.ahead()[checked:all]) != field(4) {
		return h, errors.New("the checksum of a block is wrong")
	}
	return h, nil
}

// mostSearched is how many bytes may be checked to find a block: marks that are not those
// of blocks could make that long.
const mostSearched = 16 * mostBlock

// skip drops what is before the next whole block with a later number than those read. It
// reports whether there is one.
func (b *blocks) skip() (found bool, err error) {
	for searched := 0; searched < mostSearched; {
		h, err := b.header()
		if err == nil && h.number >= b.number {
			b.number = h.number
			return true, nil
		}
		searched += blockHeader + min(int(h.stored), len(b.ahead()))
		b.drop(min(1, len(b.ahead())))
		if found, err := b.search(); !found {
			return false, err
		}
	}
	return false, nil
}

// search drops what is before the next mark.
func (b *blocks) search() (found bool, err error) {
	for err == nil {
		if i := bytes.Index(b.ahead(), []byte(mark)); i >= 0 {
			b.drop(i)
			return true, nil
		}
		b.drop(max(0, len(b.ahead())-len(mark)+1))
		if err = b.read(step); len(b.ahead()) >= len(mark) {
			err = nil
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return false, err
}

// ahead returns what is read of the file from the next block on.
func (b *blocks) ahead() []byte { return b.buf[b.from:] }

func (b *blocks) drop(n int) {
	b.from += n
	b.at += int64(n)
}

// step is the number of bytes that are read at once.
const step = 256 << 10

// read reads until n bytes are read ahead. The memory for them grows with what there is.
func (b *blocks) read(n int) error {
	for len(b.ahead()) < n {
		if cap(b.buf)-len(b.buf) < step {
			b.buf = slices.Grow(b.buf[:copy(b.buf, b.ahead())], step)
			b.from = 0
		}
		got, err := b.r.Read(b.buf[len(b.buf):cap(b.buf)])
		b.buf = b.buf[:len(b.buf)+got]
		if err != nil && len(b.ahead()) < n {
			return err
		}
	}
	return nil
}

func cutOr(err error) error {
	if errors.Is(err, io.EOF) {
		return errCut
	}
	return err
}
