package rawbtf_test

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/btfdump/rawbtf"
	"github.com/ksnoop/ksnoop/btfdump/rawbtf/rawtest"
)

// TestLoadSentence verifies that an error of package btf is one line, whatever the names
// of the types are.
func TestLoadSentence(t *testing.T) {
	f := rawtest.New()
	f.Add(f.Name("file\n\x1b[2J"), rawbtf.Struct, 1, 8, f.Name("x")+1000, 0, 0)
	_, err := rawbtf.Load(f.Bytes(), bytes.NewReader(f.Bytes()))
	require.ErrorContains(t, err, "its name is at")

	f = rawtest.New()
	f.Strings = append(f.Strings, "member\x00file\n\x1b[2J\x00"...)
	f.Add(uint32(bytes.Index(f.Strings, []byte("file"))), rawbtf.Struct, 1, 8, 3, 0, 0) // within "member"
	_, err = rawbtf.Load(f.Bytes(), bytes.NewReader(f.Bytes()))
	require.ErrorContains(t, err, "struct file??[2J")
	require.NotContains(t, err.Error(), "\n")
	require.Error(t, errors.Unwrap(err))
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
	short := rawtest.New()
	short.Add(0, rawbtf.Struct, 3, 0, 0, 0, 0)
	unknown := rawtest.New()
	unknown.Add(0, 31, 0, 0)
	cut := rawtest.New()
	cut.Types = make([]byte, 8)
	for _, tc := range []struct {
		raw  []byte
		want string
	}{
		{nil, "it is neither BTF nor ELF"},
		{good[:23], "it is neither BTF nor ELF"},
		{broken(0, 0xec), "it is neither BTF nor ELF"},
		{good[:len(good)-1], "it ends too early"},
		{broken(len(good)-1, 'x'), "its last name does not end"},
		{unknown.Bytes(), "type #1: there is no kind 31"},
		{short.Bytes(), "type #1: it ends too early"},
		{cut.Bytes(), "type #1: it ends too early"},
	} {
		_, err := rawbtf.Take(tc.raw, rawbtf.Want{Names: []string{"f"}})
		require.EqualError(t, err, tc.want)
		_, err = rawbtf.Index(tc.raw, nil)
		require.EqualError(t, err, tc.want)
		require.EqualError(t, rawbtf.Check(tc.raw), tc.want)
	}
}

// TestCheck checks that Check refuses BTF for which package btf would need too much
// time or memory.
func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		make func(f *rawtest.File)
		want string // "" if it is valid
	}{
		{func(f *rawtest.File) { f.Add(f.Name("int"), rawbtf.Int, 0, 4, 32) }, ""},
		{func(f *rawtest.File) { f.Add(99, rawbtf.Typedef, 0, 0) }, "type #1: its name is at 99 of 1"},
		{func(f *rawtest.File) { f.Add(0, rawbtf.Enum, 1, 4, 99, 0) }, "type #1: its name is at 99 of 1"},
		{func(f *rawtest.File) { f.Add(0, rawbtf.Pointer, 0, 77) }, "type #1: there is no type #77"},
		{func(f *rawtest.File) { f.Add(0, rawbtf.Array, 0, 0, 0, 2, 1) }, "type #1: there is no type #2"},
		{func(f *rawtest.File) { f.Add(0, rawbtf.Datasec, 1, 0, 9, 0, 0) }, "type #1: there is no type #9"},
		{func(f *rawtest.File) { f.Add(0, rawbtf.Pointer, 0, 1) }, ""},
		{func(f *rawtest.File) {
			for i := range uint32(20_000) {
				f.Add(0, rawbtf.Pointer, 0, i+2)
			}
			f.Add(0, rawbtf.Pointer, 0, 0)
		}, "type #1: more than 20000 types need each other"},
		{func(f *rawtest.File) { f.Add(0, rawbtf.DeclTag, 0, 9, 0) }, "type #1: there is no type #9"},
		{func(f *rawtest.File) {
			f.Add(0, rawbtf.Struct, 0, 0)
			f.Add(f.Name("tag"), rawbtf.DeclTag, 0, 1, 0)
		}, ""},
		{func(f *rawtest.File) {
			long := f.Name(strings.Repeat("x", 1<<20))
			for range 100 {
				f.Add(0, rawbtf.Enum, 1, 4, long, 0)
			}
		}, "type #65: the names have more than 64 MB"},
		{func(f *rawtest.File) {
			for i := range 2001 {
				f.Add(f.Name(fmt.Sprintf("f___%d", i)), rawbtf.Typedef, 0, 0)
			}
		}, "type #2001: more than 2000 types are called \"f\""},
	} {
		f := rawtest.New()
		tc.make(f)
		err := rawbtf.Check(f.Bytes())
		if tc.want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, tc.want)
	}
	if vmlinux, err := os.ReadFile(vmlinux); err == nil {
		require.NoError(t, rawbtf.Check(vmlinux))
	}
}

// FuzzCheck checks that BTF that Check accepts can be indexed, and that package btf
// reads it or returns an error.
func FuzzCheck(f *testing.F) {
	f.Add(raw(f, function("f", btf.FuncParam{Name: "node", Type: &btf.Pointer{Target: node()}})))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if rawbtf.Check(raw) != nil {
			return
		}
		_, err := rawbtf.Index(raw, nil)
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
		if raw, _, err := rawbtf.Read(bytes.NewReader(append([]byte(elf.ELFMAG), content...))); err == nil {
			require.LessOrEqual(t, len(raw), 32<<20)
		}
	})
}
