package btfdump

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
)

// asJSON returns a value as JSON. It fails the test if encoding/json refuses it.
func asJSON(t testing.TB, typ btf.Type, o Options, data []byte) string {
	t.Helper()
	d, err := New(typ, o)
	require.NoError(t, err)
	got := d.AppendJSON([]byte(" "), data)
	require.True(t, json.Valid(got), "%s", got)
	return string(got[1:])
}

func runJSON(t *testing.T, o Options, tests []textTest) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, asJSON(t, tt.typ, o, tt.data))
		})
	}
}

var stringsOn = Options{EmitStrings: true}

func TestJSONScalars(t *testing.T) {
	e := &btf.Enum{Name: "e", Size: 4, Signed: true, Values: []btf.EnumValue{{Name: "A", Value: 1}, {Name: "NEG", Value: math.MaxUint64}, {Name: `x"\`, Value: 3}}}
	e64 := &btf.Enum{Name: "e64", Size: 8, Values: []btf.EnumValue{{Name: "BIG", Value: 1 << 63}}}
	fn := &btf.Pointer{Target: tFunc}
	float := func(size uint32) *btf.Float { return &btf.Float{Name: "f", Size: size} }
	runJSON(t, stringsOn, []textTest{
		{"int", tInt, le(int32(-5)), "-5"},
		{"char", tChar, []byte("a"), "97"},
		{"unsigned 64", tULong, le(uint64(math.MaxUint64)), "18446744073709551615"},
		{"signed 64", tLong, le(int64(math.MinInt64)), "-9223372036854775808"},
		{"24 bits", &btf.Int{Name: "s24", Size: 3, Encoding: btf.Signed}, []byte{0xfe, 0xff, 0xff}, "-2"},
		{"128 bits", tU128, le(uint64(1), uint64(2)), `"0x20000000000000001"`},
		{"128 bits, zero", tU128, zeros(16), `"0x0"`},
		{"false", tBool, []byte{0}, "false"},
		{"true", tBool, []byte{1}, "true"},
		{"neither", tBool, []byte{2}, "2"},
		{"bool bit", structure("s", 1, bitfield("b", 3, 1, tBool)), []byte{8}, `{"b":true}`},
		{"enum", e, le(int32(1)), `"A"`},
		{"negative enumerator", e, le(int32(-1)), `"NEG"`},
		{"no enumerator", e, le(int32(-2)), "-2"},
		{"enumerator to escape", e, le(int32(3)), `"x\"\\"`},
		{"enum64", e64, le(uint64(1 << 63)), `"BIG"`},
		{"enum64 without the suffix of C", e64, le(uint64(7)), "7"},
		{"pointer", tVoidP, le(uint64(0xffff888003d0e000)), `"0xffff888003d0e000"`},
		{"null", tVoidP, zeros(8), `"0x0"`},
		{"function pointer without symbols", fn, le(uint64(0xffffffff81234560)), `"0xffffffff81234560"`},
		{"unsigned bitfield", structure("s", 2, bitfield("b", 3, 9, tUint)), le(uint16(0x1ff << 3)), `{"b":511}`},
		{"signed bitfield", structure("s", 1, bitfield("b", 0, 3, tInt)), []byte{7}, `{"b":-1}`},
		{"bitfield of 100 bits", structure("s", 16, bitfield("b", 0, 100, tU128)), le(uint64(0), uint64(1)), `{"b":"0x10000000000000000"}`},
		{"double", float(8), le(0.1), "0.1"},
		{"negative zero", float(8), le(math.Copysign(0, -1)), "-0"},
		{"largest", float(8), le(math.MaxFloat64), "1.7976931348623157e+308"},
		{"float", float(4), le(float32(0.1)), "0.1"},
		{"half", float(2), le(uint16(0x3e00)), "1.5"},
		{"NaN", float(4), le(float32(math.NaN())), `"NaN"`},
		{"infinity", float(8), le(math.Inf(1)), `"Infinity"`},
		{"negative infinity", float(2), le(uint16(0xfc00)), `"-Infinity"`},
		{"long double", float(16), cat(le(uint64(3)<<62, uint16(0x3fff)), zeros(6)), "1.5"},
		{"long double beyond double", float(16), cat(le(uint64(1)<<63, uint16(0xfffe)), zeros(6)), `"-0x8000000000000000p+16320"`},
		{"float of an unknown size", float(3), []byte{1, 2, 3}, `"0x30201"`},
	})
	runJSON(t, Options{BigEndian: true}, []textTest{
		{"big endian", tInt, []byte{0, 0, 1, 2}, "258"},
		{"big endian bitfield", structure("s", 1, bitfield("b", 0, 3, tUint)), []byte{0xa0}, `{"b":5}`},
		{"big endian 128 bits", tU128, cat(zeros(14), "\x01\x02"), `"0x102"`},
		{"big endian long double", float(16), cat("\x40", zeros(15)), `"0x40000000000000000000000000000000"`},
	})
	symbols := Options{Symbolize: func(a uint64) (string, uint64, bool) { return "do\"it\x1b", a & 0xf, a > 0xff }}
	runJSON(t, symbols, []textTest{
		{"symbol", fn, le(uint64(0x1000)), `"0x1000 <do\"it\u001b>"`},
		{"inside a function", fn, le(uint64(0x1004)), `"0x1004 <do\"it\u001b+0x4>"`},
		{"no symbol", fn, le(uint64(0x10)), `"0x10"`},
		{"no function", fn, zeros(8), `"0x0"`},
		{"pointer to data", tVoidP, le(uint64(0x1000)), `"0x1000 <do\"it\u001b>"`},
	})
}

func TestJSONStructures(t *testing.T) {
	lohi := structure("", 8, member("lo", 0, tInt), member("hi", 4, tInt))
	inner := &btf.Union{Size: 8, Members: []btf.Member{member("l", 0, tLong), member("", 0, lohi)}}
	outer := structure("outer", 24, member("", 0, inner), member("p", 8, tPoint), member("e", 16, tEmpty), member("n", 16, tInt))
	same := structure("same", 20, member("x", 0, tInt), member("x#2", 4, tInt), member("x", 8, tInt), member("", 12, structure("", 4, member("x", 0, tInt))), member(cutKey, 16, tInt))
	shared := structure("shared", 24, member("lo", 0, tInt), member("", 4, lohi), member("r", 12, structure("r", 8, member("", 0, lohi))))
	unnamed := structure("u", 8, member("", 0, tInt), member("", 4, array(tShort, 2)))
	a := &btf.Var{Name: "jiffies", Type: tULong}
	b := &btf.Var{Name: "p", Type: tPoint}
	sec := &btf.Datasec{Name: ".data", Vars: []btf.VarSecinfo{{Type: a}, {Type: b, Offset: 8}, {Type: &btf.Func{Name: "f", Type: tFunc}}}}
	runJSON(t, stringsOn, []textTest{
		{"members in order", tPoint, le(int32(2), int32(1)), `{"x":2,"y":1}`},
		{"zero members left out", tPoint, le(int32(0), int32(1)), `{"y":1}`},
		{"all zero", tPoint, zeros(8), `{}`},
		{"empty", tEmpty, nil, `{}`},
		{"only padding", structure("s", 16, member("p", 0, tPadded), member("z", 8, tPoint)), cat("\x00\xff\xff\xff", zeros(4), le(int32(0), int32(1))), `{"z":{"y":1}}`},
		{"anonymous members", outer, cat(le(int32(1), int32(2), int32(0), int32(3), int32(4)), zeros(4)), `{"l":8589934593,"lo":1,"hi":2,"p":{"y":3},"n":4}`},
		{"duplicate names", same, le(int32(1), int32(2), int32(3), int32(4), int32(5)), `{"x":1,"x#2":2,"x#3":3,"x#4":4,"$cut#2":5}`},
		{"one anonymous type in two structures", shared, le(int32(1), int32(2), int32(3), int32(4), int32(5), int32(0)), `{"lo":1,"lo#2":2,"hi":3,"r":{"lo":4,"hi":5}}`},
		{"members without names", unnamed, le(int32(1), int16(2), int16(3)), `{"":1,"#2":[2,3]}`},
		{"names from a hostile file", structure("s", 4, member("a\x1b\"\\\xff", 0, tInt)), le(int32(1)), `{"a?\"\\?":1}`},
		{"variable", b, le(int32(1), int32(0)), `{"x":1}`},
		{"section", sec, le(uint64(0), int32(1), int32(0)), `{"jiffies":0,"p":{"x":1},"f":null}`},
		{"empty section", &btf.Datasec{Name: ".bss"}, nil, `{}`},
	})
	require.Equal(t, `{"l":0,"lo":0,"hi":0,"p":{"x":0,"y":0},"e":{},"n":0}`, asJSON(t, outer, Options{EmitZeroes: true}, zeros(24)))
	require.Equal(t, `{"y":1}`, asJSON(t, tPoint, Options{SkipNames: true, Compact: true, Indent: "x", IndentLevel: 3}, le(int32(0), int32(1))))
}

func TestJSONArrays(t *testing.T) {
	flex := func(elem btf.Type) *btf.Struct {
		return structure("s", 4, member("n", 0, tInt), member("d", 4, array(elem, 0)))
	}
	runJSON(t, stringsOn, []textTest{
		{"ints", array(tInt, 3), le(int32(1), int32(-2), int32(3)), "[1,-2,3]"},
		{"zeros", array(tInt, 4), le(int32(0), int32(1), int32(0), int32(0)), "[0,1]"},
		{"all zero", array(tInt, 4), zeros(16), "[]"},
		{"zero member", structure("s", 8, member("a", 0, array(tInt, 2))), zeros(8), "{}"},
		{"structures", array(tPoint, 3), le(int32(0), int32(0), int32(0), int32(1), int32(0), int32(0)), `[{},{"y":1}]`},
		{"padding", array(tPadded, 3), cat("\x00\x01\x01\x01", zeros(4), "\x05\x01\x01\x01", zeros(4), "\x00\x01\x01\x01", zeros(4)), `[{},{"c":5}]`},
		{"two dimensions", array(array(tInt, 2), 3), le(int32(0), int32(0), int32(1), int32(2), int32(0), int32(0)), "[[],[1,2]]"},
		{"bools", array(tBool, 4), []byte{0, 1, 3, 0}, "[false,true,3]"},
		{"bytes, all of them", array(tU8, 6), []byte{0, 0x11, 0x22, 0x33, 0x44, 0}, `"001122334400"`},
		{"empty structures", array(tEmpty, 3), nil, "[]"},
		{"string", array(tChar, 16), cat("lo", zeros(14)), `"lo"`},
		{"empty string", array(tChar, 4), zeros(4), `""`},
		{"escapes", array(tChar, 8), []byte("a\"\\\n\t\r\x00\x00"), `"a\"\\\n\t\u000d"`},
		{"what follows the NUL", array(tChar, 8), []byte("lo\x00x\xff\x1b\x00\x00"), `"lo\u0000x\ufffd\u001b"`},
		{"UTF-8", array(tChar, 9), []byte("h\u00e9\u6f22\x00\x00\x00"), `"hé漢"`},
		{"UTF-8 that was cut", array(tChar, 3), []byte("h\u6f22"), `"h\ufffd\ufffd"`},
		{"hidden behind the NUL", array(tChar, 11), []byte("a\x00\u202e\u0085\U000e0001"), `"a\u0000\u202e\u0085\udb40\udc01"`},
		{"no text", array(tChar, 4), []byte{'a', 1, 0xff, 0}, "[97,1,-1]"},
		{"list of names", array(array(tChar, 4), 3), []byte("\x00\x00\x00\x00eth0lo\x00\x00"), `["","eth0","lo"]`},
		{"flexible", flex(tShort), cat(le(int32(1), int16(2), int16(0)), "\x01"), `{"n":1,"d":[2]}`},
		{"flexible, structures", flex(tPoint), le(int32(1), int32(2), int32(3), int32(4)), `{"n":1,"d":[{"x":2,"y":3}]}`},
		{"flexible string", flex(tChar), cat(le(int32(1)), "ab\x00"), `{"n":1,"d":"ab"}`},
		{"flexible bytes", flex(tU8), cat(le(int32(0)), "\x01\x00"), `{"d":"0100"}`},
		{"flexible without data", flex(tInt), le(int32(1)), `{"n":1}`},
	})
	runJSON(t, Options{EmitZeroes: true}, []textTest{
		{"zeroes", array(tInt, 2), zeros(8), "[0,0]"},
		{"zero structures", array(tPoint, 2), zeros(16), `[{"x":0,"y":0},{"x":0,"y":0}]`},
		{"chars", array(tChar, 3), []byte("a\x00\x00"), "[97,0,0]"},
		{"zero bools", array(tBool, 2), zeros(2), "[false,false]"},
		{"empty structures", array(tEmpty, 1<<30), nil, "[]"},
	})
}

func TestJSONCut(t *testing.T) {
	deep := structure("d", 12, member("i", 0, tInt), member("p", 4, tPoint))
	arms := &btf.Union{Name: "u", Size: 8, Members: []btf.Member{member("l", 0, tLong), member("i", 0, tInt), member("b", 0, array(tU8, 8))}}
	sec := &btf.Datasec{Name: ".data", Vars: []btf.VarSecinfo{{Type: &btf.Var{Name: "p", Type: tPoint}}, {Type: &btf.Var{Name: "q", Type: tPoint}, Offset: 8}}}
	runJSON(t, stringsOn, []textTest{
		{"scalar", tInt, le(int16(1)), `{"$cut":2}`},
		{"nothing of a structure", tPoint, nil, `{"$cut":8}`},
		{"inside a member", tPoint, le(int32(1), int16(2)), `{"x":1,"$cut":2}`},
		{"nested", deep, le(int32(1), int32(2)), `{"i":1,"p":{"x":2},"$cut":4}`},
		{"nested zeros", deep, zeros(8), `{"$cut":4}`},
		{"padding", tPadded, nil, `{"$cut":8}`},
		{"every arm that fits", arms, le(int32(1)), `{"i":1,"b":"01000000","$cut":4}`},
		{"array", array(tInt, 4), le(int32(0), int32(1), int16(2)), `{"$value":[0,1],"$cut":6}`},
		{"array of zeros and half an element", array(tInt, 4), cat(zeros(4), "\x01\x01"), `{"$value":[],"$cut":10}`},
		{"array of structures", array(tPoint, 1000), le(int32(1), int32(2), int32(3)), `{"$value":[{"x":1,"y":2},{"x":3}],"$cut":7988}`},
		{"string", array(tChar, 16), []byte("lo"), `{"$value":"lo","$cut":14}`},
		{"nothing of an array", array(tChar, 16), nil, `{"$cut":16}`},
		{"section", sec, le(int32(1), int32(2), int32(3)), `{"p":{"x":1,"y":2},"q":{"x":3},"$cut":4}`},
		{"section, between variables", sec, le(int32(1), int32(2)), `{"p":{"x":1,"y":2},"$cut":8}`},
		{"variable", &btf.Var{Name: "v", Type: tInt}, nil, `{"$cut":4}`},
	})
}

// TestJSONStrings checks that encoding/json reads back what was written, and that
// the JSON has no control characters.
func TestJSONStrings(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		s := string(r)
		out := appendJSONString(nil, []byte(s))
		var back string
		if err := json.Unmarshal(out, &back); err != nil || back != s {
			t.Fatalf("%U: %s reads back as %q, %v", r, out, back, err)
		}
		if strings.ContainsFunc(string(out), func(r rune) bool { return r != unicode.ReplacementChar && !unicode.IsPrint(r) }) {
			t.Fatalf("%U is not safe to show", r)
		}
	}
}

func TestJSONNoAllocation(t *testing.T) {
	s, data := wide()
	d, err := New(s, Options{EmitStrings: true, Symbolize: func(uint64) (string, uint64, bool) { return "f", 1, true }})
	require.NoError(t, err)
	dst := d.AppendJSON(nil, data)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		dst = d.AppendJSON(dst[:0], data)
		dst = d.AppendJSON(dst[:0], data[:77])
	}))
}
