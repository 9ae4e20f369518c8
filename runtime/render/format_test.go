package render

import (
	"strconv"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime"
)

// TestFormats covers the text of bytes in each format.
func TestFormats(t *testing.T) {
	integer := &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	long := &btf.Int{Name: "long", Size: 8, Encoding: btf.Signed}
	char := &btf.Int{Name: "char", Size: 1, Encoding: btf.Signed}
	u32 := &btf.Int{Name: "u32", Size: 4}
	be32 := &btf.Typedef{Name: "__be32", Type: u32}
	file := &btf.Pointer{Target: &btf.Struct{Name: "file"}}
	in6 := &btf.Struct{Name: "in6_addr", Size: 16}
	bytes := &btf.Array{Type: &btf.Int{Name: "u8", Size: 1}, Nelems: 8}
	for _, tc := range []struct {
		format string
		typ    btf.Type
		data   string
		want   string
	}{
		{"x", integer, "\x1f\x00\x00\x00", "(int)0x1f"},
		{"x", integer, "\xff\xff\xff\xff", "(int)0xffffffff"},
		{"x", file, "\x00\x10\x00\x81\xff\xff\xff\xff", "(struct file *)0xffffffff81001000"},
		{"x32", u32, "\x00\x00\x00\x80", "(u32)0x80000000"},
		{"d", u32, "\xfe\xff\xff\xff", "(u32)-2"},
		{"d", long, "\xfe\xff\xff\xff\xff\xff\xff\xff", "(long)-2"},
		{"u", integer, "\xfe\xff\xff\xff", "(int)4294967294"},
		{"u", char, "\xfe", "(char)254"},
		{"c", char, "a", "(char)'a'"},
		{"c", char, "\x00", `(char)'\0'`},
		{"c", char, "\n", `(char)'\n'`},
		{"c", char, "'", `(char)'\''`},
		{"c", char, `"`, `(char)'"'`},
		{"c", char, `\`, `(char)'\\'`},
		{"c", char, "\x1b", `(char)'\033'`},
		{"c", char, "\xff", `(char)'\377'`},
		{"c", integer, "a\x00\x00\x00", "(int)'a'"},
		{"c", integer, "\x00\x01\x00\x00", "(int)256"},
		{"c", integer, "\xff\xff\xff\xff", "(int)-1"},
		{"errno", integer, "\xf3\xff\xff\xff", "(int)-EACCES"},
		{"errno", integer, "\x6f\x00\x00\x00", "(int)ECONNREFUSED"},
		{"errno", file, "\xfe\xff\xff\xff\xff\xff\xff\xff", "(struct file *)-ENOENT"},
		{"errno", long, "\xff\xff\x00\x00\x00\x00\x00\x00", "(long)65535"},
		{"symbol", long, "\x05\x00\x00\x81\xff\xff\xff\xff", "(long)0xffffffff81000005 <vfs_read+0x5>"},
		{"symbol", file, "\x00\x01\x00\x81\xff\xff\xff\xff", "(struct file *)0xffffffff81000100 <exit_now>"},
		{"symbol", long, "\x05\x00\x00\x00\x00\x00\x00\x00", "(long)0x5"},
		{"ip4", be32, "\x7f\x00\x00\x01", "(__be32)127.0.0.1"},
		{"ip6", in6, "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01", "(struct in6_addr)2001:db8::1"},
		{"ip6", in6, "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x0a\x00\x00\x01", "(struct in6_addr)::ffff:10.0.0.1"},
		{"mac", &btf.Array{Type: char, Nelems: 6}, "\x00\x11\x22\xaa\xbb\xff", "(char[6])00:11:22:aa:bb:ff"},
		{"string", bytes, "eth0\x1b\x00??", `(u8[8])"eth0\033"`},
	} {
		v := &runtime.Value{Value: &compiler.Value{Name: "v", Type: tc.typ, Format: tc.format}, Data: []byte(tc.data)}
		got, ok := appendFormat([]byte(castOf(v.Value)), v, namesOf(namedSymbols))
		require.True(t, ok, tc.want)
		require.Equal(t, tc.want, string(got))
	}
}

// TestSpecialValues covers formats of values that are not plain numbers.
func TestSpecialValues(t *testing.T) {
	char := &btf.Int{Name: "char", Size: 1, Encoding: btf.Signed}
	bytes := func(n uint32) btf.Type { return &btf.Array{Type: &btf.Int{Name: "unsigned char", Size: 1}, Nelems: n} }
	comm := &compiler.Value{Type: &btf.Array{Type: char, Nelems: 16}}
	comm.Base.Builtin = compiler.Comm
	pointer := &btf.Pointer{Target: &btf.Void{}}
	for _, tc := range []struct {
		value *compiler.Value
		data  string
		want  string
	}{
		{comm, "a\x1b\"\x00junk", `(char[16])"a\033\""`},
		{&compiler.Value{Type: pointer, Pointee: char, Text: compiler.UserText, Format: "ustring"}, "/etc/x\n", `(char *)"/etc/x\n"`},
		{&compiler.Value{Type: pointer, Pointee: bytes(4), Format: "ip4"}, "\x0a\x00\x00\x02", "(unsigned char[4])10.0.0.2"},
		{&compiler.Value{Type: pointer, Pointee: bytes(6), Format: "mac"}, "\x02\x00\x00\x00\x00\x01", "(unsigned char[6])02:00:00:00:00:01"},
	} {
		got, ok := appendFormat([]byte(castOf(tc.value)), &runtime.Value{Value: tc.value, Data: []byte(tc.data)}, nil)
		require.True(t, ok, tc.want)
		require.Equal(t, tc.want, string(got))
	}
}

// TestElements verifies that elements of arrays look as the type of a kprobe_events
// line says.
func TestElements(t *testing.T) {
	u8 := &btf.Int{Name: "u8", Size: 1}
	u16 := &btf.Int{Name: "u16", Size: 2}
	s16 := &btf.Int{Name: "s16", Size: 2, Encoding: btf.Signed}
	u64 := &btf.Int{Name: "u64", Size: 8}
	for _, tc := range []struct {
		elem   *btf.Int
		format string
		load   compiler.Scalar
		data   string
		want   string
		json   string
	}{
		{u8, "u", compiler.Scalar{Size: 1}, "\x00\xff", "(u8[2]){0,255}", "[0,255]"},
		{s16, "d", compiler.Scalar{Size: 2, Signed: true}, "\x00\x00\xfe\xff", "(s16[2]){0,-2}", "[0,-2]"},
		{u16, "x16", compiler.Scalar{Size: 2}, "\x00\x00\xfe\xff", "(u16[2]){0x0,0xfffe}", `["0x0","0xfffe"]`},
		{u8, "c", compiler.Scalar{Size: 1}, "a\x00", `(u8[2]){'a','\0'}`, `["a","\\0"]`},
		{u16, "u", compiler.Scalar{Size: 2, Shift: 4, Bits: 9}, "\xff\xff\x10\x20", "(u16[2]){511,1}", "[511,1]"},
		{u64, "symbol", compiler.Scalar{Size: 8}, "\x05\x00\x00\x81\xff\xff\xff\xff\x05\x00\x00\x00\x00\x00\x00\x00",
			"(u64[2]){0xffffffff81000005 <vfs_read+0x5>,0x5}", `["0xffffffff81000005 <vfs_read+0x5>","0x5"]`},
		{u16, "u", compiler.Scalar{Size: 2}, "\x01\x00\x02", "(u16[2]){1}", "[1]"},
	} {
		v := &compiler.Value{Type: &btf.Array{Type: tc.elem, Nelems: 2}, Elem: &compiler.Value{Type: tc.elem, Format: tc.format, Load: &tc.load, Scalar: &tc.load}}
		shown := &runtime.Value{Value: v, Data: []byte(tc.data)}
		got, ok := appendFormat([]byte(castOf(v)), shown, namesOf(namedSymbols))
		require.True(t, ok, tc.want)
		require.Equal(t, tc.want, string(got))
		p := newJSON(Options{Values: btfdump.Options{}, Symbols: symbolsOf(namedSymbols)}, nil)
		require.NoError(t, p.value(shown, process{}))
		require.Equal(t, tc.json, string(p.text))
	}
}

// TestPlainValues covers values that are printed by their types.
func TestPlainValues(t *testing.T) {
	for _, format := range []string{"", "be", "u8", "u64", "s16"} {
		v := &runtime.Value{Value: &compiler.Value{Type: &btf.Int{Name: "u8", Size: 1}, Format: format}, Data: []byte{1}}
		got, ok := appendFormat(nil, v, nil)
		require.False(t, ok, format)
		require.Empty(t, got)
	}
}

// TestDurationRemark verifies that a duration has no units where something has made
// another number of it.
func TestDurationRemark(t *testing.T) {
	u64 := &btf.Int{Name: "u64", Size: 8}
	for _, tc := range []struct {
		format string
		swap   bool
		casts  []compiler.Scalar
		want   string
	}{
		{"", false, nil, "62.113µs"},
		{"x", false, nil, "62.113µs"},
		{"be", true, nil, ""},
		{"u16", false, []compiler.Scalar{{Size: 2}}, ""},
	} {
		v := &compiler.Value{Type: u64, Format: tc.format, Swap: tc.swap, Casts: tc.casts, Base: compiler.Base{Builtin: compiler.Duration}}
		require.Equal(t, tc.want, remark(&runtime.Value{Value: v, Data: []byte{0xa1, 0xf2, 0, 0, 0, 0, 0, 0}}), tc.format)
	}
}

// FuzzFormats verifies that any bytes and any names of symbols are printed without
// control characters.
func FuzzFormats(f *testing.F) {
	f.Add(uint8(3), []byte("\x1b[2J\x00\xff"), "vfs\x1b_read")
	f.Fuzz(func(t *testing.T, n uint8, data []byte, symbol string) {
		s := symbolsOf("ffffffff81000000 T " + symbol + "\n")
		v := &compiler.Value{Type: &btf.Int{Name: "u8", Size: 1}, Format: spec.Formats[int(n)%len(spec.Formats)]}
		got, _ := appendFormat(nil, &runtime.Value{Value: v, Data: data}, &names{symbols: s})
		got = append(got, s.caller(0xffffffff81000005)...)
		for _, r := range string(got) {
			require.True(t, strconv.IsPrint(r), "%q", got)
		}
	})
}
