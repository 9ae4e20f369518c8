package rawbtf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
)

// file is invalid BTF, which package btf cannot write.
type file struct{ types, strings []byte }

func newFile() *file { return &file{strings: []byte{0}} }

func (f *file) name(s string) uint32 {
	at := len(f.strings)
	f.strings = append(append(f.strings, s...), 0)
	return uint32(at)
}

func (f *file) add(name uint32, k Kind, elements, third uint32, more ...uint32) {
	for _, w := range append([]uint32{name, uint32(k)<<24 | elements, third}, more...) {
		f.types = binary.LittleEndian.AppendUint32(f.types, w)
	}
}

func (f *file) bytes() []byte {
	var b []byte
	for _, w := range []int{magic | 1<<16, fileHeader, 0, len(f.types), len(f.types), len(f.strings)} {
		b = binary.LittleEndian.AppendUint32(b, uint32(w))
	}
	return append(append(b, f.types...), f.strings...)
}

// TestLoadSentence verifies that an error of package btf is one line, whatever the names
// of the types are.
func TestLoadSentence(t *testing.T) {
	f := newFile()
	f.add(f.name("file\n\x1b[2J"), Struct, 1, 8, f.name("x")+1000, 0, 0)
	_, err := Load(f.bytes(), bytes.NewReader(f.bytes()))
	require.ErrorContains(t, err, "its name is at")

	f = newFile()
	f.strings = append(f.strings, "member\x00file\n\x1b[2J\x00"...)
	f.add(uint32(bytes.Index(f.strings, []byte("file"))), Struct, 1, 8, 3, 0, 0) // within "member"
	_, err = Load(f.bytes(), bytes.NewReader(f.bytes()))
	require.ErrorContains(t, err, "struct file??[2J")
	require.NotContains(t, err.Error(), "\n")
	var loaded lineError
	require.ErrorAs(t, err, &loaded)
	require.Error(t, loaded.Unwrap())
}

// TestRefused checks that all functions of the package refuse bytes that are not
// BTF.
func TestRefused(t *testing.T) {
	good := raw(t, function("f", btf.FuncParam{Name: "node", Type: &btf.Pointer{Target: node()}}))
	broken := func(at int, b byte) []byte {
		bad := bytes.Clone(good)
		bad[at] = b
		return bad
	}
	short := newFile()
	short.add(0, Struct, 3, 0, 0, 0, 0)
	cut := newFile()
	cut.types = make([]byte, 8)
	for _, tc := range []struct {
		raw  []byte
		want string
	}{
		{nil, "it is neither BTF nor ELF"},
		{good[:fileHeader-1], "it is neither BTF nor ELF"},
		{broken(0, 0xec), "it is neither BTF nor ELF"},
		{good[:len(good)-1], "it ends too early"},
		{broken(len(good)-1, 'x'), "its last name does not end"},
		{broken(fileHeader+7, 31), "type #1: there is no kind 31"},
		{short.bytes(), "type #1: it ends too early"},
		{cut.bytes(), "type #1: it ends too early"},
	} {
		_, err := Take(tc.raw, Want{Names: []string{"f"}})
		require.EqualError(t, err, tc.want)
		_, err = Index(tc.raw, nil)
		require.EqualError(t, err, tc.want)
		require.EqualError(t, Check(tc.raw), tc.want)
	}
}

// TestCheck checks that Check refuses BTF for which package btf would need too much
// time or memory.
func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		make func(f *file)
		want string // "" if it is valid
	}{
		{func(f *file) { f.add(f.name("int"), Int, 0, 4, 32) }, ""},
		{func(f *file) { f.add(99, Typedef, 0, 0) }, "type #1: its name is at 99 of 1"},
		{func(f *file) { f.add(0, Enum, 1, 4, 99, 0) }, "type #1: its name is at 99 of 1"},
		{func(f *file) { f.add(0, Pointer, 0, 77) }, "type #1: there is no type #77"},
		{func(f *file) { f.add(0, Array, 0, 0, 0, 2, 1) }, "type #1: there is no type #2"},
		{func(f *file) { f.add(0, Datasec, 1, 0, 9, 0, 0) }, "type #1: there is no type #9"},
		{func(f *file) { f.add(0, Pointer, 0, 1) }, ""},
		{func(f *file) {
			for i := range uint32(maxDepth) {
				f.add(0, Pointer, 0, i+2)
			}
			f.add(0, Pointer, 0, 0)
		}, "type #1: more than 20000 types need each other"},
		{func(f *file) { f.add(0, DeclTag, 0, 9, 0) }, "type #1: there is no type #9"},
		{func(f *file) {
			f.add(0, Struct, 0, 0)
			f.add(f.name("tag"), DeclTag, 0, 1, 0)
		}, ""},
		{func(f *file) {
			long := f.name(strings.Repeat("x", 1<<20))
			for range 100 {
				f.add(0, Enum, 1, 4, long, 0)
			}
		}, "type #65: the names have more than 64 MB"},
		{func(f *file) {
			for i := range maxNamesakes + 1 {
				f.add(f.name(fmt.Sprintf("f___%d", i)), Typedef, 0, 0)
			}
		}, "type #2001: more than 2000 types are called \"f\""},
	} {
		f := newFile()
		tc.make(f)
		err := Check(f.bytes())
		if tc.want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, tc.want)
	}
	if vmlinux, err := os.ReadFile(vmlinux); err == nil {
		require.NoError(t, Check(vmlinux))
	}
}

// FuzzCheck checks that BTF that Check accepts can be indexed, and that package btf
// reads it or returns an error.
func FuzzCheck(f *testing.F) {
	f.Add(raw(f, function("f", btf.FuncParam{Name: "node", Type: &btf.Pointer{Target: node()}})))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if Check(raw) != nil {
			return
		}
		_, err := Index(raw, nil)
		require.NoError(t, err)
		types, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
		if err != nil {
			return
		}
		for _, err := range types.All() {
			if err != nil {
				return
			}
		}
	})
}

// FuzzRead checks that for any bytes after ELF's magic number Read returns types or
// an error.
func FuzzRead(f *testing.F) {
	f.Add([]byte{byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)})
	f.Fuzz(func(t *testing.T, content []byte) {
		if raw, _, err := Read(bytes.NewReader(append([]byte(elf.ELFMAG), content...))); err == nil {
			require.LessOrEqual(t, len(raw), maxBytes)
		}
	})
}
