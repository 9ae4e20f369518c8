// Package rawtest writes BTF for tests, also such that no builder would write.
package rawtest

import (
	"encoding/binary"
	"fmt"

	"github.com/ksnoop/ksnoop/btfdump/rawbtf"
)

// File is a BTF file in the making. Types may hold anything.
type File struct {
	Types   []byte // in little-endian order
	Strings []byte
	Number  uint32 // of the last type that was added
}

const (
	magic      = 0xeb9f
	version    = 1
	headerSize = 24
)

// New returns a file without types.
func New() *File { return &File{Strings: []byte{0}} }

// Read returns a file that a builder wrote in little-endian order.
func Read(raw []byte) *File {
	types := binary.LittleEndian.Uint32(raw[12:])
	return &File{Types: raw[headerSize:][:types], Strings: raw[headerSize+types:]}
}

// Name adds a string and returns its offset.
func (f *File) Name(s string) uint32 {
	at := len(f.Strings)
	f.Strings = append(append(f.Strings, s...), 0)
	return uint32(at)
}

// Add adds a type, whose third word is its size or the type that it refers to, and
// returns its number.
func (f *File) Add(name uint32, kind rawbtf.Kind, elements, third uint32, more ...uint32) uint32 {
	for _, w := range append([]uint32{name, uint32(kind)<<24 | elements, third}, more...) {
		f.Types = binary.LittleEndian.AppendUint32(f.Types, w)
	}
	f.Number++
	return f.Number
}

// Integer adds a signed integer.
func (f *File) Integer(name string, size uint32) uint32 {
	return f.Add(f.Name(name), rawbtf.Int, 0, size, 1<<24|8*size)
}

// Function adds a function with parameters named a0, a1 and so on.
func (f *File) Function(name string, params ...uint32) {
	var words []uint32
	for i, p := range params {
		words = append(words, f.Name(fmt.Sprintf("a%d", i)), p)
	}
	f.Add(f.Name(name), rawbtf.Func, 1, f.Add(0, rawbtf.FuncProto, uint32(len(params)), 0, words...))
}

// Bytes returns the whole file.
func (f *File) Bytes() []byte {
	return append(append(f.header(binary.LittleEndian), f.Types...), f.Strings...)
}

// BigEndian returns the whole file in the other byte order. Types that are cut lose
// their last bytes.
func (f *File) BigEndian() []byte {
	b := f.header(binary.BigEndian)
	for at := 0; at+4 <= len(f.Types); at += 4 {
		b = binary.BigEndian.AppendUint32(b, binary.LittleEndian.Uint32(f.Types[at:]))
	}
	return append(b, f.Strings...)
}

func (f *File) header(order binary.AppendByteOrder) []byte {
	b := append(order.AppendUint16(nil, magic), version, 0)
	for _, w := range []int{headerSize, 0, len(f.Types), len(f.Types), len(f.Strings)} {
		b = order.AppendUint32(b, uint32(w))
	}
	return b
}
