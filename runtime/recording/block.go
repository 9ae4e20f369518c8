package recording

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Magic begins every recording. After it comes the version of the format, which changes
// when an older reader would misunderstand a file.
const Magic = "ksnoop-record\x00\x00"

const magic = Magic + "\x02"

// A block has a header of five numbers of 4 bytes, then what is stored: the
// checksum of all that follows in the block, the number of bytes that are stored, how
// many they are when they are not compressed, how many of these are entries, before the words of
// their records, and the number of the block.
const (
	blockHeader = 20
	checksum    = 4 // bytes of it
)

// mostBlock is the largest size of a block in bytes that is accepted, stored or not.
const mostBlock = 32 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A blockWriter makes blocks.
type blockWriter struct {
	compress func(content, dst []byte) []byte
	number   uint32 // of the next block
	block    []byte
}

// of returns a block with a content, which begins with so many bytes of entries. It is valid
// until the next call.
func (w *blockWriter) of(content []byte, entries int) []byte {
	block := w.compress(content, append(w.block[:0], make([]byte, blockHeader)...))
	order.PutUint32(block[4:], uint32(len(block)-blockHeader))
	order.PutUint32(block[8:], uint32(len(content)))
	order.PutUint32(block[12:], uint32(entries))
	order.PutUint32(block[16:], w.number)
	order.PutUint32(block, crc32.Checksum(block[checksum:], castagnoli))
	w.block = block
	w.number++
	return block
}

// blocks reads the blocks of a file.
type blocks struct {
	r      io.Reader
	at     int64 // offset of the next block
	number uint32
	stored []byte
	frames decompressor
}

// errCut is the reason why a block cannot be read if the file ends in it.
var errCut = errors.New("the file ends in the middle of a block")

// next returns the entries of the next block and the words of their records, which are valid
// until the next call. At the end of the file it returns io.EOF.
func (b *blocks) next() (entries, words []byte, err error) {
	var head [blockHeader]byte
	if n, err := io.ReadFull(b.r, head[:]); err != nil {
		if n == 0 && err == io.EOF {
			return nil, nil, io.EOF
		}
		return nil, nil, cutOr(err)
	}
	stored, size, of := order.Uint32(head[4:]), order.Uint32(head[8:]), order.Uint32(head[12:])
	if stored > mostBlock || size > mostBlock {
		return nil, nil, fmt.Errorf("a block says that it has %d bytes", max(stored, size))
	}
	if of > size {
		return nil, nil, fmt.Errorf("a block of %d bytes says that it has %d bytes of entries", size, of)
	}
	if err := b.read(int(stored)); err != nil {
		return nil, nil, cutOr(err)
	}
	sum := crc32.Update(crc32.Checksum(head[checksum:], castagnoli), castagnoli, b.stored)
	if sum != order.Uint32(head[:]) {
		return nil, nil, errors.New("the checksum of a block is wrong")
	}
	if n := order.Uint32(head[16:]); n != b.number {
		return nil, nil, fmt.Errorf("block %d is where block %d must be", n, b.number)
	}
	content, err := b.frames.decompress(b.stored, int(size))
	if err != nil {
		return nil, nil, err
	}
	b.number++
	b.at += blockHeader + int64(stored)
	return content[:of], content[of:], nil
}

// read reads n bytes into stored, whose memory grows with what there is.
func (b *blocks) read(n int) error {
	const step = 1 << 20
	b.stored = b.stored[:0]
	for len(b.stored) < n {
		from := len(b.stored)
		b.stored = append(b.stored, make([]byte, min(step, n-from))...)
		if _, err := io.ReadFull(b.r, b.stored[from:]); err != nil {
			return err
		}
	}
	return nil
}

func cutOr(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}
