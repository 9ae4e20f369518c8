package recording

import (
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// newCompressor returns a function that appends content to dst as a frame of zstd, at its
// fastest level. A block has a checksum of its own, and most blocks are smaller than the
// window. It returns a function, as the linker keeps every method of a type that a
// structure has.
func newCompressor() func(content, dst []byte) []byte {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false), zstd.WithWindowSize(512<<10), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // only wrong options are an error
	}
	return e.EncodeAll
}

// A decompressor reads frames of zstd, each as the compressed section of an ELF file in
// memory. The decoder of the compressor's module would add 0.2 MB to the program; that of
// the standard library is in it anyway, for the files by which user stacks are named, but
// only package debug/elf has it.
type decompressor struct{ file, content []byte }

var errCompressed = errors.New("a block cannot be decompressed")

// decompress returns the content of a frame, which has size bytes and is valid until the
// next call.
func (d *decompressor) decompress(frame []byte, size int) ([]byte, error) {
	d.file = append(append(d.file[:0], sectionOf(len(frame), size)...), frame...)
	f, err := elf.NewFile(bytes.NewReader(d.file))
	if err != nil {
		return nil, errCompressed
	}
	r := f.Sections[frameSection].Open()
	d.content = slices.Grow(d.content[:0], size)[:size]
	if _, err := io.ReadFull(r, d.content); err != nil {
		return nil, errCompressed
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return nil, errCompressed
	}
	return d.content, nil
}

// frameSection is the number of the section that holds the frame. Section 0 is empty in
// every file, and section 1 has the empty name that all sections have.
const frameSection = 2

// sectionOf returns the part of the file before the frame, which has frame bytes, and size
// bytes when decompressed.
func sectionOf(frame, size int) []byte {
	const header, name, compression = 64, 8, 24 // bytes of each, those of a section like those of the file
	const names = header * (1 + frameSection + 1)
	file := make([]byte, names+name+compression)
	copy(file, "\x7fELF\x02\x01\x01") // 64 bits, little-endian
	file[0x14] = byte(elf.EV_CURRENT)
	file[0x28], file[0x34], file[0x3a] = header, header, header // where sections are, the sizes of both headers
	file[0x3c], file[0x3e] = frameSection+1, 1                  // how many sections, and which has the names
	section := func(i int, kind elf.SectionType, flags elf.SectionFlag, offset, size int) {
		s := file[header*(1+i):]
		order.PutUint32(s[4:], uint32(kind))
		order.PutUint64(s[8:], uint64(flags))
		order.PutUint64(s[0x18:], uint64(offset))
		order.PutUint64(s[0x20:], uint64(size))
	}
	section(1, elf.SHT_STRTAB, 0, names, name)
	section(frameSection, elf.SHT_PROGBITS, elf.SHF_COMPRESSED, names+name, compression+frame)
	c := file[names+name:]
	order.PutUint32(c, uint32(elf.COMPRESS_ZSTD))
	order.PutUint64(c[8:], uint64(size))
	return file
}
