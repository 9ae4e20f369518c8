package btfdump

import (
	"testing"

	"github.com/cilium/ebpf/btf"
)

func TestArrays(t *testing.T) {
	e := &btf.Enum{Name: "e", Size: 2, Values: []btf.EnumValue{{Name: "A", Value: 1}}}
	nested := structure("n", 8, member("p", 0, tPoint))
	run(t, compact, []textTest{
		{"full", array(tInt, 3), le(int32(1), int32(-2), int32(3)), "(int[3])[1,-2,3,]"},
		{"trailing zeros", array(tInt, 3), le(int32(1), int32(0), int32(0)), "(int[3])[1,]"},
		{"gaps", array(tShort, 8), le(int16(0), int16(0), int16(5), int16(6), int16(0), int16(7), int16(0), int16(0)), "(short[8])[[2] = 5,6,[5] = 7,]"},
		{"zero", array(tInt, 3), zeros(12), "(int[3])[]"},
		{"zero member", structure("s", 12, member("a", 0, array(tInt, 3))), zeros(12), "(struct s){}"},
		{"pointers", array(tVoidP, 3), le(uint64(0), uint64(0xff), uint64(0)), "(void *[3])[[1] = 0xff,]"},
		{"enums", array(e, 3), le(int16(1), int16(0), int16(2)), "(enum e[3])[A,[2] = 2,]"},
		{"two dimensions", array(array(tInt, 2), 3), le(int32(0), int32(0), int32(1), int32(2), int32(0), int32(3)), "(int[3][2])[[1] = [1,2,],[[1] = 3,],]"},
		{"structures keep names and lose casts", array(nested, 2), le(int32(0), int32(0), int32(0), int32(4)), "(struct n[2])[[1] = {.p = {.y = 4,},},]"},
		{"padding only", array(tPadded, 2), cat("\x00\x01\x02\x03", zeros(4), "\x05\x00\x00\x00", zeros(4)), "(struct padded[2])[[1] = {.c = 5,},]"},
		{"no elements", array(tInt, 0), nil, "(int[0])[]"},
		{"qualifiers around", &btf.Const{Type: array(&btf.Volatile{Type: tInt}, 1)}, le(int32(1)), "(int[1])[1,]"},
		{"mac", array(tU8, 6), []byte{0, 0x11, 0x22, 0x33, 0x44, 0xff}, "(unsigned char[6])[00 11 22 33 44 ff]"},
		{"signed bytes", array(tS8, 2), []byte{0xff, 0}, "(signed char[2])[ff 00]"},
		{"::1", structure("in6_addr", 16, member("s6_addr", 0, array(tU8, 16))), cat(zeros(15), "\x01"), "(struct in6_addr){.s6_addr = (unsigned char[16])[00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01],}"},
		{"zero bytes alone", array(tU8, 2), zeros(2), "(unsigned char[2])[00 00]"},
		{"rows of bytes", array(array(tU8, 2), 3), []byte{0, 0, 1, 2, 0, 0}, "(unsigned char[3][2])[[1] = [01 02],]"},
	})
}

func TestCharArrays(t *testing.T) {
	typedef := &btf.Typedef{Name: "name_t", Type: &btf.Const{Type: tChar}}
	clang := &btf.Int{Name: "int8", Size: 1, Encoding: btf.Char}
	run(t, compact, []textTest{
		{"name", array(tChar, 16), cat("lo", zeros(14)), `(char[16])"lo"`},
		{"without NUL", array(tChar, 4), []byte("comm"), `(char[4])"comm"`},
		{"escapes", array(tChar, 8), []byte("a\"\\\n\t\x00\x00\x00"), `(char[8])"a\"\\\n\t"`},
		{"empty", array(tChar, 4), zeros(4), `(char[4])""`},
		{"zero member", structure("s", 4, member("c", 0, array(tChar, 4))), zeros(4), "(struct s){}"},
		{"what follows the NUL is not hidden", array(tChar, 8), []byte("lo\x00x\xff\x00\x00\x00"), `(char[8])"lo\000x\377"`},
		{"abstract socket", array(tChar, 8), []byte("\x00/tmp/x\x00"), `(char[8])"\000/tmp/x"`},
		{"no text", array(tChar, 6), []byte{0, 'a', 0xff, 0, '\'', 2}, `(char[6])[[1] = 'a',-1,[4] = '\'',2,]`},
		{"no text after zeros", array(tChar, 4), []byte{0, 0, 1, 0}, `(char[4])[[2] = 1,]`},
		{"UTF-8", array(tChar, 8), []byte("h\u00e9\u6f22\x00\x00"), `(char[8])"hé漢"`},
		{"UTF-8 that was cut", array(tChar, 3), []byte("h\u6f22"), `(char[3])"h\346\274"`},
		{"latin-1", array(tChar, 2), []byte("\xe9!"), `(char[2])[-23,'!',]`},
		{"typedef", array(typedef, 2), []byte("ab"), `(name_t[2])"ab"`},
		{"by encoding", array(clang, 2), []byte("ab"), `(int8[2])"ab"`},
		{"list of names", array(array(tChar, 4), 3), []byte("\x00\x00\x00\x00eth0lo\x00\x00"), `(char[3][4])[[1] = "eth0","lo",]`},
	})

	run(t, Options{Compact: true}, []textTest{
		{"by element", array(tChar, 6), []byte("lo\x00x\x00\x00"), `(char[6])['l','o',[3] = 'x',]`},
		{"backslash", array(tChar, 2), []byte(`\'`), `(char[2])['\\','\'',]`},
	})
	run(t, Options{}, []textTest{
		{"on lines", array(tChar, 4), []byte{0, 1, 'x', 0}, "(char[4])[\n\t[1] = 1,\n\t'x',\n]"},
		{"on lines, cut", array(tChar, 4), []byte{0, 1, 'x'}, "(char[4])[\n\t[1] = 1,\n\t'x',\n\t/* 1 bytes cut */\n]"},
	})
	run(t, Options{EmitStrings: true, SkipNames: true, Compact: true, EmitZeroes: true}, []textTest{
		{"zero string", structure("s", 4, member("c", 0, array(tChar, 4))), zeros(4), `{"",}`},
		{"zero elements", array(tChar, 3), []byte{1, 0, 0}, "[1,0,0,]"},
	})
	run(t, Options{Compact: true, EmitZeroes: true}, []textTest{
		{"zero elements with names", array(tChar, 3), []byte{1, 0, 0}, "(char[3])[1,0,0,]"},
	})
}

func TestFlexibleArrays(t *testing.T) {
	flex := func(elem btf.Type) *btf.Struct {
		return structure("s", 4, member("n", 0, tInt), member("d", 4, array(elem, 0)))
	}
	// The kernel's DECLARE_FLEX_ARRAY.
	wrapped := structure("w", 4, member("n", 0, tInt), member("", 4, &btf.Union{Members: []btf.Member{
		member("", 0, structure("", 0, member("__empty", 0, tEmpty), member("d", 0, array(tShort, 0)))),
	}}))
	marker := structure("m", 8, member("start", 0, array(tInt, 0)), member("a", 0, tInt), member("b", 4, tInt))
	nested := structure("o", 8, member("x", 0, tInt), member("s", 4, flex(tU8)))
	tight := structure("t", 8, member("n", 0, tInt), member("c", 4, tU8), member("d", 5, array(tU8, 0)))
	run(t, compact, []textTest{
		{"bytes", flex(tU8), cat(le(int32(3)), "\x01\x00\x03"), "(struct s){.n = (int)3,.d = (unsigned char[0])[01 00 03],}"},
		{"string", flex(tChar), cat(le(int32(3)), "abc\x00"), `(struct s){.n = (int)3,.d = (char[0])"abc",}`},
		{"ints, the last one incomplete", flex(tInt), le(int32(3), int32(0), int32(5), int16(1)), "(struct s){.n = (int)3,.d = (int[0])[[1] = 5,],}"},
		{"structures", flex(tPoint), le(int32(3), int32(1), int32(2)), "(struct s){.n = (int)3,.d = (struct point[0])[{.x = 1,.y = 2,},],}"},
		{"empty structures", flex(tEmpty), le(int32(3), int32(1)), "(struct s){.n = (int)3,}"},
		{"zero tail", flex(tInt), le(int32(3), int32(0), int32(0)), "(struct s){.n = (int)3,}"},
		{"no tail", flex(tInt), le(int32(3)), "(struct s){.n = (int)3,}"},
		{"cut before the tail", flex(tInt), le(int16(3)), "(struct s){/* 2 bytes cut */}"},
		{"wrapped", wrapped, le(int32(1), int16(2), int16(3)), "(struct w){.n = (int)1,(union){(struct){.d = (short[0])[2,3,],},},}"},
		{"nested at the end", nested, cat(le(int32(0), int32(0)), "\x07"), "(struct o){.s = (struct s){.d = (unsigned char[0])[07],},}"},
		{"in the padding", tight, cat(le(int32(1)), "\x02\x03\x04\x05\x06"), "(struct t){.n = (int)1,.c = (unsigned char)2,.d = (unsigned char[0])[03 04 05 06],}"},
		{"not at the end", marker, le(int32(1), int32(2), int32(3)), "(struct m){.a = (int)1,.b = (int)2,}"},
		{"not in an array", array(flex(tU8), 2), le(int32(1), int32(2), int32(3)), "(struct s[2])[{.n = 1,},{.n = 2,},]"},
		{"alone", array(tInt, 0), le(int32(1), int32(2)), "(int[0])[1,2,]"},
	})
}
