package kallsyms

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParsePlace(t *testing.T) {
	const addr = 0xffffffff81000204
	at := func(offset uint64, name, module string, size uint64) Place {
		return Place{Symbol{Addr: addr - offset, Name: name, Module: module}, offset, size}
	}
	for text, want := range map[string]Place{
		"vfs_read+0x4/0x370":                     at(4, "vfs_read", "", 0x370),
		"vfs_read+0x0/0x370":                     at(0, "vfs_read", "", 0x370),
		"m_start+0x1f/0x20 [ext4]":               at(0x1f, "m_start", "ext4", 0x20),
		"a+b.cold+0x4/0x10":                      at(4, "a+b.cold", "", 0x10),
		"table+0x8/0xfffffffffffff000 [ext4]":    at(8, "table", "ext4", 0),
		"_etext+0x0/0x1000":                      at(0, "_etext", "", 0x1000),
		"bpf_prog_put+0x4/0x20":                  at(4, "bpf_prog_put", "", 0x20),
		"bpf_prog_6deef7357e7b4530_foo+0x4/0x20": at(4, "bpf_prog_6deef7357e7b4530_foo", "bpf", 0x20),
		"bpf_prog_6deef7357e7b4530+0x4/0x20":     at(4, "bpf_prog_6deef7357e7b4530", "bpf", 0x20),
		"bpf_trampoline_6442455433+0x4/0x1000":   at(4, "bpf_trampoline_6442455433", "bpf", 0x1000),
		"bpf_trampoline_link_prog+0x4/0x20":      at(4, "bpf_trampoline_link_prog", "", 0x20),
	} {
		got, ok := ParsePlace(text, addr)
		require.True(t, ok, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "0xffffffff81000204", "+0x4/0x20", "a", "a+4/0x20", "a+0x4", "a+0x4/", "a+0x4/20", "a+0x4/0x20 [", "a+0x4/0x20 []", "a+0x4/0x20 [m",
		"_etext+0x4/0x20", "__end_x+0x4/0x20", "a+0x100000/0x200000", "a b+0x4/0x20", "a+0xfffffffffffffffff/0x1"} {
		_, ok := ParsePlace(text, addr)
		require.False(t, ok, text)
	}
}

func TestTableFinder(t *testing.T) {
	hidden, err := Read(strings.NewReader("0 T a\n"), nil)
	require.NoError(t, err)
	f, err := hidden.Finder()
	require.ErrorIs(t, err, ErrHidden)
	require.Nil(t, f)
	shown, err := Read(strings.NewReader("1 T a\n"), nil)
	require.NoError(t, err)
	f, err = shown.Finder()
	require.NoError(t, err)
	require.Equal(t, shown, f)
}

// FuzzParsePlace checks that a place is one that the kernel would print as the text.
func FuzzParsePlace(f *testing.F) {
	f.Add("vfs_read+0x4/0x370", uint64(0xffffffff81000204))
	f.Add("m_start+0x1f/0x20 [ext4]", uint64(0xffffffffc0000000))
	f.Add("bpf_prog_6deef7357e7b4530_foo+0x0/0x20", uint64(0))
	f.Fuzz(func(t *testing.T, text string, addr uint64) {
		p, ok := ParsePlace(text, addr)
		if !ok {
			return
		}
		require.Equal(t, addr, p.Symbol.Addr+p.Offset)
		require.Less(t, p.Offset, uint64(Reach))
		again := fmt.Sprintf("%s+%#x/%#x", p.Symbol.Name, p.Offset, p.Size)
		if p.Symbol.Module != "" {
			again += " [" + p.Symbol.Module + "]"
		}
		same, ok := ParsePlace(again, addr)
		require.True(t, ok, again)
		require.Equal(t, p, same)
	})
}
