package btfdump

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
)

func TestInts(t *testing.T) {
	run(t, compact, []textTest{
		{"unsigned 1", tU8, le(uint8(200)), "(unsigned char)200"},
		{"signed 1", tS8, le(int8(-2)), "(signed char)-2"},
		{"signed 2", tShort, le(int16(-30000)), "(short)-30000"},
		{"signed 4", tInt, le(int32(-1)), "(int)-1"},
		{"unsigned 4", tUint, le(int32(-1)), "(unsigned int)4294967295"},
		{"signed 8", tLong, le(int64(math.MinInt64)), "(long)-9223372036854775808"},
		{"unsigned 8", tULong, le(int64(-1)), "(unsigned long)18446744073709551615"},
		{"char alone is a number", tChar, []byte("/"), "(char)47"},
		{"bool", tBool, le(uint8(1)), "(bool)1"},
		{"bool that is none", tBool, le(uint8(255)), "(bool)255"},
		{"typedef", tSize, le(uint64(5)), "(size_t)5"},
		{"qualified", &btf.Const{Type: &btf.Volatile{Type: tInt}}, le(int32(7)), "(int)7"},
		{"type tag", &btf.TypeTag{Value: "x", Type: tInt}, le(int32(7)), "(int)7"},
		{"128 bits, low half", tU128, le(uint64(0xabc), uint64(0)), "(unsigned __int128)0xabc"},
		{"128 bits, both halves", tU128, le(uint64(0xabc), uint64(0x10)), "(unsigned __int128)0x100000000000000abc"},
		{"128 bits, zero", tU128, zeros(16), "(unsigned __int128)0x0"},
		{"3 bytes", &btf.Int{Name: "u24", Size: 3}, []byte{3, 2, 1}, "(u24)0x10203"},
		{"7 bytes", &btf.Int{Name: "u56", Size: 7}, []byte{0, 0, 0, 0x20, 0, 0, 0}, "(u56)0x20000000"},
	})
}

func TestPointers(t *testing.T) {
	o := compact
	o.Symbolize = func(addr uint64) (string, uint64, bool) {
		base := uint64(0xffffffff81234560)
		if addr < base {
			return "", 0, false
		}
		return "tcp_v4\x1bconnect", addr - base, true
	}
	fn := &btf.Pointer{Target: &btf.Const{Type: tFunc}}
	run(t, o, []textTest{
		{"object", &btf.Pointer{Target: tPoint}, le(uint64(0xffff888003d0e000)), "(struct point *)0xffff888003d0e000"},
		{"null", tVoidP, zeros(8), "(void *)0x0"},
		{"function", fn, le(uint64(0xffffffff81234560)), "(int (*)(struct sock *sk, int))0xffffffff81234560 <tcp_v4?connect>"},
		{"inside a function", fn, le(uint64(0xffffffff81234570)), "(int (*)(struct sock *sk, int))0xffffffff81234570 <tcp_v4?connect+0x10>"},
		{"no function there", fn, le(uint64(5)), "(int (*)(struct sock *sk, int))0x5"},
		{"null function", fn, zeros(8), "(int (*)(struct sock *sk, int))0x0"},
		{"object pointers have symbols, too", tVoidP, le(uint64(0xffffffff81234560)), "(void *)0xffffffff81234560 <tcp_v4?connect>"},
	})
}

func TestEnums(t *testing.T) {
	values := []btf.EnumValue{{Name: "NONE", Value: 0}, {Name: "ZERO", Value: 0}, {Name: "HIGH", Value: 0x80000000}, {Name: "MINUS", Value: math.MaxUint64}}
	signed := &btf.Enum{Name: "e", Size: 4, Signed: true, Values: values}
	unsigned := &btf.Enum{Name: "e", Size: 4, Values: values[:3]}
	old := []btf.EnumValue{{Name: "MINUS", Value: 0xffffffff}, {Name: "ONE", Value: 1}}
	long := &btf.Enum{Name: "l", Size: 8, Values: []btf.EnumValue{{Name: "TOP", Value: 1 << 63}}}
	half := &btf.Enum{Name: "l", Size: 8, Values: []btf.EnumValue{{Name: "TOP", Value: 0}, {Name: "SHIFT", Value: 56}}}
	run(t, compact, []textTest{
		{"first of equal names", signed, le(int32(0)), "(enum e)NONE"},
		{"negative", signed, le(int32(-1)), "(enum e)MINUS"},
		{"unknown negative", signed, le(int32(-2)), "(enum e)-2"},
		{"above 2^31", unsigned, le(uint32(1 << 31)), "(enum e)HIGH"},
		{"unknown unsigned", unsigned, le(int32(-2)), "(enum e)4294967294"},
		{"stored negative without sign", &btf.Enum{Name: "e", Size: 4, Values: old}, le(int32(-1)), "(enum e)MINUS"},
		{"the same, packed", &btf.Enum{Name: "e", Size: 1, Values: old}, le(int8(-1)), "(enum e)MINUS"},
		{"packed, unknown", &btf.Enum{Name: "e", Size: 1, Values: old}, le(int8(-2)), "(enum e)254"},
		{"enum64", long, le(uint64(1 << 63)), "(enum l)TOP"},
		{"enum64 unknown", long, le(uint64(3)), "(enum l)3ULL"},
		{"enum64 signed unknown", &btf.Enum{Name: "l", Size: 8, Signed: true}, le(int64(-3)), "(enum l)-3LL"},
		{"enum64 in BTF with 32 bits", half, le(uint64(0)), "(enum l)0ULL"},
		{"the same, not zero", half, le(uint64(56)), "(enum l)56ULL"},
		{"without a name", &btf.Enum{Size: 4}, le(int32(3)), "(enum)3"},
	})
}

func TestBitfields(t *testing.T) {
	e := &btf.Enum{Name: "e", Size: 4, Signed: true, Values: []btf.EnumValue{{Name: "MINUS", Value: math.MaxUint64}, {Name: "TWO", Value: 2}}}
	s := structure("s", 4,
		bitfield("u", 0, 3, tUint),
		bitfield("s", 3, 4, tInt),
		bitfield("b", 7, 1, tBool),
		bitfield("e", 8, 3, e),
		bitfield("w", 11, 21, tInt),
	)
	odd := btf.Member{Name: "b", Offset: 4, Type: tU8}
	run(t, compact, []textTest{
		{"unsigned hex, signed decimal", s, []byte{0b1_1110_101, 0b010, 0, 0}, "(struct s){.u = (unsigned int)0x5,.s = (int)-2,.b = (bool)0x1,.e = (enum e)TWO,}"},
		{"negative enumerator, wide", s, []byte{0, 0xff, 0xff, 0xff}, "(struct s){.e = (enum e)MINUS,.w = (int)-1,}"},
		{"no width, but not at a byte", structure("o", 2, odd), []byte{0x50, 0x0a}, "(struct o){.b = (unsigned char)0xa5,}"},
	})
}

// TestBitfieldPlaces compares every kind of place and width with arithmetic on
// one large number.
func TestBitfieldPlaces(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 5000 {
		width := 1 + rnd.IntN(128)
		offset := rnd.IntN(256 - width)
		big := rnd.IntN(2) == 0
		i := &btf.Int{Name: "i", Size: 16}
		if rnd.IntN(2) == 0 && width <= 64 {
			i.Encoding = btf.Signed
		}
		data := make([]byte, 32)
		for j := range data {
			data[j] = byte(rnd.Uint32())
		}
		o := Options{Compact: true, SkipNames: true, EmitZeroes: true, BigEndian: big}
		s := structure("s", 32, bitfield("b", btf.Bits(offset), btf.Bits(width), i))
		require.Equal(t, "{"+wantBits(data, offset, width, i.Encoding == btf.Signed, big)+",}", text(t, s, o, data),
			"offset %d width %d big %v", offset, width, big)
	}
}

func wantBits(data []byte, offset, width int, signed, bigEndian bool) string {
	b := append([]byte(nil), data...)
	shift := len(data)*8 - offset - width
	if !bigEndian {
		shift = offset
		for i := range b {
			b[i] = data[len(data)-1-i]
		}
	}
	v := new(big.Int).SetBytes(b)
	v.Rsh(v, uint(shift))
	v.And(v, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(width)), big.NewInt(1)))
	if !signed {
		return "0x" + v.Text(16)
	}
	if v.Bit(width-1) == 1 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(width)))
	}
	return v.String()
}

func TestFloats(t *testing.T) {
	float := &btf.Float{Name: "float", Size: 4}
	double := &btf.Float{Name: "double", Size: 8}
	half := &btf.Float{Name: "_Float16", Size: 2}
	long := &btf.Float{Name: "long double", Size: 16}
	ext := func(mantissa uint64, signExp uint16) []byte { return cat(le(mantissa, signExp), zeros(6)) }
	run(t, compact, []textTest{
		{"float", float, le(float32(1.5)), "(float)1.500000"},
		{"double", double, le(-1234.5678), "(double)-1234.567800"},
		{"zero", double, zeros(8), "(double)0.000000"},
		{"minus zero is not zero", structure("s", 8, member("d", 0, double)), le(math.Copysign(0, -1)), "(struct s){.d = (double)-0.000000,}"},
		{"nan", double, le(math.NaN()), "(double)nan"},
		{"minus nan", float, le(uint32(0xffc00000)), "(float)-nan"},
		{"inf", double, le(math.Inf(1)), "(double)inf"},
		{"minus inf", float, le(float32(math.Inf(-1))), "(float)-inf"},
		{"half", half, le(uint16(0x3e00)), "(_Float16)1.500000"},
		{"half, minus inf", half, le(uint16(0xfc00)), "(_Float16)-inf"},
		{"half, nan", half, le(uint16(0x7c01)), "(_Float16)nan"},
		{"half, denormal", half, le(uint16(0x0200)), "(_Float16)0.000031"},
		{"long double", long, ext(0xc000000000000000, 16383), "(long double)1.500000"},
		{"long double, negative", long, ext(1<<63, 16384|0x8000), "(long double)-2.000000"},
		{"long double, inf", long, ext(1<<63, 0x7fff), "(long double)inf"},
		{"long double, nan", long, ext(3<<62, 0x7fff), "(long double)nan"},
		{"long double, beyond double", long, ext(1<<63, 0xfffe), "(long double)-0x8000000000000000p+16320"},
		{"of no known size", &btf.Float{Name: "f", Size: 3}, []byte{1, 0, 2}, "(f)0x20001"},
	})
}

func TestBigEndian(t *testing.T) {
	o := compact
	o.BigEndian = true
	run(t, o, []textTest{
		{"int", tInt, []byte{0xff, 0xff, 0xff, 0xfe}, "(int)-2"},
		{"short", tShort, []byte{1, 2}, "(short)258"},
		{"pointer", tVoidP, []byte{0, 0, 0, 0, 0, 0, 1, 2}, "(void *)0x102"},
		{"3 bytes", &btf.Int{Name: "u24", Size: 3}, []byte{1, 2, 3}, "(u24)0x10203"},
		{"128 bits", tU128, cat(zeros(7), "\x01", zeros(7), "\x02"), "(unsigned __int128)0x10000000000000002"},
		{"long double in one of several formats", &btf.Float{Name: "ld", Size: 16}, cat("\x3f\xff", zeros(14)), "(ld)0x3fff" + strings.Repeat("0", 28)},
	})
}
