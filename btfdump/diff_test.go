package btfdump_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/btfdump"
)

// compared is a structure of 48 bytes with all that a structure can have: 3 bytes of
// padding, bitfields, an anonymous union, a union with a name, arrays.
func compared() btf.Type {
	char := &btf.Int{Name: "char", Size: 1, Encoding: btf.Signed}
	u8 := &btf.Int{Name: "unsigned char", Size: 1}
	s32 := &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	u32 := &btf.Typedef{Name: "u32", Type: &btf.Int{Name: "unsigned int", Size: 4}}
	state := &btf.Enum{Name: "state", Size: 4, Values: []btf.EnumValue{{Name: "CLOSE", Value: 7}, {Name: "OPEN", Value: 2}}}
	sign := &btf.Typedef{Name: "sign_t", Type: &btf.Enum{Name: "sign", Size: 4, Signed: true, Values: []btf.EnumValue{{Name: "NONE"}, {Name: "NEG", Value: math.MaxUint64}}}}
	pair := &btf.Struct{Name: "pair", Size: 8, Members: []btf.Member{{Name: "x", Type: s32}, {Name: "y", Type: u32, Offset: 32}}}
	return &btf.Struct{Name: "whole", Size: 48, Members: []btf.Member{
		{Name: "mark", Type: u8},
		{Name: "low", Type: s32, Offset: 32, BitfieldSize: 3},
		{Name: "high", Type: u32, Offset: 35, BitfieldSize: 26},
		{Name: "sign", Type: sign, Offset: 61, BitfieldSize: 3},
		{Type: &btf.Union{Size: 8, Members: []btf.Member{{Name: "word", Type: u32}, {Name: "pair", Type: pair}}}, Offset: 64},
		{Name: "either", Type: &btf.Union{Name: "u", Size: 4, Members: []btf.Member{{Name: "n", Type: s32}, {Name: "b", Type: &btf.Array{Type: u8, Nelems: 4}}}}, Offset: 128},
		{Name: "state", Type: state, Offset: 160},
		{Name: "name", Type: &btf.Array{Type: char, Nelems: 8}, Offset: 192},
		{Name: "pairs", Type: &btf.Array{Type: pair, Nelems: 2}, Offset: 256},
	}}
}

func shownChanges(t testing.TB, before, after []byte) string {
	return shownChangesOf(t, compared(), before, after)
}

func shownChangesOf(t testing.TB, of btf.Type, before, after []byte) string {
	var lines []string
	for _, c := range btfdump.Changes(of, before, after) {
		d, err := btfdump.New(c.Type, btfdump.Options{Compact: true, SkipNames: true, EmitStrings: true})
		require.NoError(t, err)
		require.NotEqual(t, c.Before, c.After, c.Member)
		lines = append(lines, fmt.Sprintf("%s: %s -> %s", c.Member, d.AppendText(nil, c.Before), d.AppendText(nil, c.After)))
	}
	return strings.Join(lines, "; ")
}

func TestChanges(t *testing.T) {
	before := make([]byte, 48)
	before[20] = 7
	copy(before[24:], "eth0")
	for _, tc := range []struct {
		at   int
		to   string
		want string
	}{
		{0, "\x01", "mark: 0 -> 1"},
		{1, "\x01", "(padding at 1): [00] -> [01]"},
		{1, "\x01\x00\x02", "(padding at 1): [00 00 00] -> [01 00 02]"},
		{4, "\x07", "low: 0 -> -1"},
		{4, "\x0a", "low: 0 -> 2; high: 0 -> 1"},
		{7, "\xe0", "sign: NONE -> NEG"},
		{8, "\x05", "word: 0 -> 5; pair.x: 0 -> 5"}, // of a union, all members
		{12, "\x05", "pair.y: 0 -> 5"},
		{16, "\x01\x02", "either.n: 0 -> 513; either.b[0]: 0 -> 1; either.b[1]: 0 -> 2"},
		{20, "\x02", "state: CLOSE -> OPEN"},
		{27, "1", `name: "eth0" -> "eth1"`},
		{44, "\xff\xff\xff\xff", "pairs[1].y: 0 -> 4294967295"},
		{0, "", ""},
	} {
		after := bytes.Clone(before)
		copy(after[tc.at:], tc.to)
		require.Equal(t, tc.want, shownChanges(t, before, after))
	}
	// What is missing is not compared.
	after := bytes.Clone(before)
	after[44], after[27] = 1, '1'
	require.Equal(t, `name: "eth0" -> "eth1"`, shownChanges(t, before[:46], after))
	require.Equal(t, `name: "eth0" -> "eth1"`, shownChanges(t, before[:30], after))
	require.Empty(t, shownChanges(t, before[:27], after))
	require.Empty(t, btfdump.Changes(&btf.Void{}, before, after))
}

// TestPaddingIn verifies that the offset of padding is in the structure whose name is shown,
// which is that around anonymous ones.
func TestPaddingIn(t *testing.T) {
	u8, u32 := &btf.Int{Name: "unsigned char", Size: 1}, &btf.Int{Name: "unsigned int", Size: 4}
	inner := &btf.Struct{Size: 8, Members: []btf.Member{{Name: "b", Type: u8}, {Name: "c", Type: u32, Offset: 32}}}
	union := &btf.Union{Size: 8, Members: []btf.Member{{Type: inner}}}
	outer := &btf.Struct{Name: "outer", Size: 20, Members: []btf.Member{{Name: "a", Type: u32}, {Type: union, Offset: 32}, {Name: "named", Type: inner, Offset: 96}}}
	pair := &btf.Struct{Name: "pair", Size: 44, Members: []btf.Member{{Name: "n", Type: u32}, {Name: "o", Type: &btf.Array{Type: outer, Nelems: 2}, Offset: 32}}}
	for _, tc := range []struct {
		of   btf.Type
		at   int
		want string
	}{
		{outer, 5, "(padding at 5): [00] -> [01]"},
		{outer, 15, "named.(padding at 3): [00] -> [01]"},
		{pair, 9, "o[0].(padding at 5): [00] -> [01]"},
		{pair, 31, "o[1].(padding at 7): [00] -> [01]"},
		{pair, 37, "o[1].named.(padding at 1): [00] -> [01]"},
	} {
		before, after := make([]byte, 44), make([]byte, 44)
		after[tc.at] = 1
		require.Equal(t, tc.want, shownChangesOf(t, tc.of, before, after))
	}
}

// FuzzChanges verifies that states with any difference have changes, that those of
// equal ones have none, and that each change differs.
func FuzzChanges(f *testing.F) {
	f.Add(bytes.Repeat([]byte{1}, 48), bytes.Repeat([]byte{2}, 48))
	f.Add(make([]byte, 48), append(make([]byte, 47), 1))
	f.Add(make([]byte, 5), make([]byte, 48))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		shown := shownChanges(t, before, after)
		if len(before) >= 48 && len(after) >= 48 {
			require.Equal(t, bytes.Equal(before[:48], after[:48]), shown == "", shown)
		}
	})
}
