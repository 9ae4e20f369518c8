package btfdump

import (
	"encoding/binary"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
)

// These types are shared by the tests.
var (
	tChar   = &btf.Int{Name: "char", Size: 1, Encoding: btf.Signed}
	tBool   = &btf.Int{Name: "bool", Size: 1, Encoding: btf.Bool}
	tU8     = &btf.Int{Name: "unsigned char", Size: 1}
	tS8     = &btf.Int{Name: "signed char", Size: 1, Encoding: btf.Signed}
	tShort  = &btf.Int{Name: "short", Size: 2, Encoding: btf.Signed}
	tInt    = &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	tUint   = &btf.Int{Name: "unsigned int", Size: 4}
	tLong   = &btf.Int{Name: "long", Size: 8, Encoding: btf.Signed}
	tULong  = &btf.Int{Name: "unsigned long", Size: 8}
	tU128   = &btf.Int{Name: "unsigned __int128", Size: 16}
	tVoid   = &btf.Void{}
	tVoidP  = &btf.Pointer{Target: tVoid}
	tSize   = &btf.Typedef{Name: "size_t", Type: tULong}
	tEmpty  = &btf.Struct{Name: "empty"}
	tPoint  = &btf.Struct{Name: "point", Size: 8, Members: []btf.Member{member("x", 0, tInt), member("y", 4, tInt)}}
	tPadded = &btf.Struct{Name: "padded", Size: 8, Members: []btf.Member{member("c", 0, tU8), member("i", 4, tInt)}}
	tFunc   = &btf.FuncProto{Return: tInt, Params: []btf.FuncParam{{Name: "sk", Type: &btf.Pointer{Target: &btf.Struct{Name: "sock"}}}, {Type: tInt}}}
)

// member places a member at an offset in bytes.
func member(name string, offset uint32, t btf.Type) btf.Member {
	return btf.Member{Name: name, Offset: btf.Bits(8 * offset), Type: t}
}

// bitfield places a member at an offset in bits.
func bitfield(name string, offset, width btf.Bits, t btf.Type) btf.Member {
	return btf.Member{Name: name, Offset: offset, BitfieldSize: width, Type: t}
}

func structure(name string, size uint32, members ...btf.Member) *btf.Struct {
	return &btf.Struct{Name: name, Size: size, Members: members}
}

func array(t btf.Type, n uint32) *btf.Array {
	return &btf.Array{Index: tInt, Type: t, Nelems: n}
}

// le returns numbers of any fixed sizes as little-endian bytes.
func le(values ...any) []byte {
	var b []byte
	for _, v := range values {
		b, _ = binary.Append(b, binary.LittleEndian, v)
	}
	return b
}

// cat concatenates bytes and strings.
func cat(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch v := p.(type) {
		case string:
			b = append(b, v...)
		case []byte:
			b = append(b, v...)
		}
	}
	return b
}

func zeros(n int) []byte { return make([]byte, n) }

// text returns the one-line form of a value.
func text(t testing.TB, typ btf.Type, o Options, data []byte) string {
	t.Helper()
	d, err := New(typ, o)
	require.NoError(t, err)
	return string(d.AppendText(nil, data))
}

// compact has the options to print values on one line and arrays of char as strings.
var compact = Options{Compact: true, EmitStrings: true}

type textTest struct {
	name string
	typ  btf.Type
	data []byte
	want string
}

// run checks a table of values in compact form.
func run(t *testing.T, o Options, tests []textTest) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, text(t, tt.typ, o, tt.data))
		})
	}
}
