package recording

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/klauspost/compress/s2"
)

// Magic begins every recording. After it comes the version of the format, which changes
// when an older reader would misunderstand a file.
const Magic = "ksnoop-record\x00\x00"

const magic = Magic + "\x01"

// A block has a header of four numbers of 4 bytes, then what is stored: the
// checksum of all that follows in the block, the number of bytes that are stored, how
// many they are when they are not compressed, and the number of the block.
const (
	blockHeader = 16
	checksum    = 4 // bytes of it
)

// mostBlock is the largest size of a block in bytes that is accepted, stored or not.
const mostBlock = 32 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendBlock appends a block with a content.
func appendBlock(dst []byte, number uint32, content []byte) []byte {
	from, most := len(dst), blockHeader+s2.MaxEncodedLen(len(content))
	dst = slices.Grow(dst, most)[:from+most]
	stored := s2.Encode(dst[from+blockHeader:], content)
	dst = dst[:from+blockHeader+len(stored)]
	block := dst[from:]
	order.PutUint32(block[4:], uint32(len(stored)))
	order.PutUint32(block[8:], uint32(len(content)))
	order.PutUint32(block[12:], number)
	order.PutUint32(block, crc32.Checksum(block[checksum:], castagnoli))
	return dst
}

// blocks reads the blocks of a file.
type blocks struct {
	r       io.Reader
	at      int64 // offset of the next block
	number  uint32
	stored  []byte
	content []byte
}

// errCut is the reason why a block cannot be read if the file ends in it.
var errCut = errors.New("the file ends in the middle of a block")

// next returns the content of the next block, which is valid until the next call. At
// the end of the file it returns io.EOF.
func (b *blocks) next() ([]byte, error) {
	var head [blockHeader]byte
	if n, err := io.ReadFull(b.r, head[:]); err != nil {
		if n == 0 && err == io.EOF {
			return nil, io.EOF
		}
		return nil, cutOr(err)
	}
	stored, size := order.Uint32(head[4:]), order.Uint32(head[8:])
	if stored > mostBlock || size > mostBlock {
		return nil, fmt.Errorf("a block says that it has %d bytes", max(stored, size))
	}
	if err := b.read(int(stored)); err != nil {
		return nil, cutOr(err)
	}
	sum := crc32.Update(crc32.Checksum(head[checksum:], castagnoli), castagnoli, b.stored)
	if sum != order.Uint32(head[:]) {
		return nil, errors.New("the checksum of a block is wrong")
	}
	if n := order.Uint32(head[12:]); n != b.number {
		return nil, fmt.Errorf("block %d is where block %d must be", n, b.number)
	}
	if n, err := s2.DecodedLen(b.stored); err != nil || n != int(size) {
		return nil, errors.New("a block cannot be decompressed")
	}
	var err error
	if b.content, err = s2.Decode(b.content[:cap(b.content)], b.stored); err != nil {
		return nil, errors.New("a block cannot be decompressed")
	}
	b.number++
	b.at += blockHeader + int64(stored)
	return b.content, nil
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
