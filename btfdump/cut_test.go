package btfdump

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
)

func TestCut(t *testing.T) {
	tail := structure("t", 16, member("a", 0, tLong), member("b", 8, tU8)) // 7 bytes of padding
	deep := structure("d", 12, member("i", 0, tInt), member("p", 4, tPoint))
	twoArms := &btf.Union{Name: "u", Size: 8, Members: []btf.Member{
		member("l", 0, tLong), member("i", 0, tInt), member("b", 0, array(tU8, 8)), member("m", 0, array(tU8, 6)),
	}}
	bits := structure("b", 8, bitfield("lo", 0, 8, tUint), bitfield("hi", 8, 20, tUint))
	run(t, compact, []textTest{
		{"scalar", tInt, le(int16(1)), "(int)/* 2 bytes cut */"},
		{"nothing of a structure", tPoint, nil, "(struct point){/* 8 bytes cut */}"},
		{"inside a member", tPoint, le(int32(1), int16(2)), "(struct point){.x = (int)1,/* 2 bytes cut */}"},
		{"between members", tPoint, le(int32(1)), "(struct point){.x = (int)1,/* 4 bytes cut */}"},
		{"only padding is missing", tail, le(int64(1), int8(1)), "(struct t){.a = (long)1,.b = (unsigned char)1,/* 7 bytes cut */}"},
		{"before a nested structure", deep, le(int32(1)), "(struct d){.i = (int)1,/* 8 bytes cut */}"},
		{"in a nested structure of zeros", deep, zeros(8), "(struct d){.p = (struct point){/* 4 bytes cut */},}"},
		{"every arm that fits", twoArms, le(int32(1)), "(union u){/* 4 bytes cut */.i = (int)1,.b = (unsigned char[8])[01 00 00 00],.m = (unsigned char[6])[01 00 00 00],}"},
		{"bytes", array(tU8, 6), []byte{0, 1}, "(unsigned char[6])[00 01 /* 4 bytes cut */]"},
		{"no bytes", array(tU8, 6), nil, "(unsigned char[6])[/* 6 bytes cut */]"},
		{"bools", array(tBool, 4), []byte{0, 1}, "(bool[4])[0 1 /* 2 bytes cut */]"},
		{"string", array(tChar, 16), []byte("lo"), `(char[16])"lo" /* 14 bytes cut */`},
		{"chars", array(tChar, 16), []byte{1, 'a'}, "(char[16])[1,'a',/* 14 bytes cut */]"},
		{"array of zeros", array(tInt, 4), zeros(8), "(int[4])[/* 8 bytes cut */]"},
		{"padding of an element", array(tail, 2), cat(le(int64(0), int64(0), int64(1), int8(0))), "(struct t[2])[[1] = {.a = 1,},/* 7 bytes cut */]"},
		{"bitfield whose own bytes are there", bits, []byte{1, 2, 3, 4}, "(struct b){.lo = (unsigned int)0x1,.hi = (unsigned int)0x40302,/* 4 bytes cut */}"},
		{"bitfield", bits, []byte{1, 2, 3}, "(struct b){.lo = (unsigned int)0x1,/* 5 bytes cut */}"},
		{"variable", &btf.Var{Name: "v", Type: tInt}, nil, "static int v = (int)/* 4 bytes cut */"},
	})

	require.Equal(t, "(struct d){\n\t.i = (int)1,\n\t.p = (struct point){\n\t\t.x = (int)2,\n\t\t/* 4 bytes cut */\n\t},\n}",
		text(t, deep, Options{}, le(int32(1), int32(2))))
}

// TestEveryCut cuts values at every byte. The number of missing bytes is marked
// exactly once.
func TestEveryCut(t *testing.T) {
	typ := structure("all", 64,
		member("p", 0, tPadded), member("a", 8, array(tPoint, 2)), member("s", 24, array(tChar, 8)),
		member("u", 32, &btf.Union{Size: 8, Members: []btf.Member{member("l", 0, tLong), member("b", 0, array(tU8, 8))}}),
		member("z", 40, array(tShort, 4)), bitfield("f", 8*48+3, 40, tULong), member("d", 56, &btf.Float{Name: "float", Size: 4}),
	)
	for _, fill := range []byte{0, 'a', 0xff} {
		data := []byte(strings.Repeat(string([]byte{fill}), 64))
		for n := range data {
			for _, o := range []Options{{}, compact, {EmitZeroes: true}, {SkipNames: true}} {
				got := text(t, typ, o, data[:n])
				require.Equal(t, 1, strings.Count(got, "cut"), got)
				require.Contains(t, got, fmt.Sprintf("/* %d bytes cut */", len(data)-n))
			}
		}
	}
}

func TestRefused(t *testing.T) {
	self := structure("self", 8)
	self.Members = []btf.Member{member("again", 0, self)}
	loop := &btf.Typedef{Name: "loop"}
	loop.Type = loop
	many := structure("many", 1)
	for range 2000 {
		many.Members = append(many.Members, member("m", 0, tU8))
	}
	more := structure("more", 1)
	for range 1000 {
		more.Members = append(more.Members, member("m", 0, many))
	}
	tests := []struct {
		name string
		typ  btf.Type
		err  string
	}{
		{"void", tVoid, "dump of void: type has no size"},
		{"nil", nil, "dump of void: type has no size"},
		{"function", &btf.Func{Name: "f", Type: tFunc}, "dump of int(struct sock *sk, int): type has no size"},
		{"forward declaration", &btf.Fwd{Name: "x", Kind: btf.FwdUnion}, "dump of union x: type has no size"},
		{"array of void", array(tVoid, 1), "dump of void[1]: element: type has no size"},
		{"member without size", structure("s", 8, member("a", 0, structure("t", 8, member("b", 0, tVoid)))), `dump of struct s: member "a": member "b": type has no size`},
		{"typedef of itself", loop, "dump of loop: type has no size"},
		{"structure in itself", self, "nested too deep"},
		{"huge array", array(array(tInt, 1<<20), 1<<20), "type too large"},
		{"huge int", &btf.Int{Name: "i", Size: 1 << 31}, "dump of i: type too large"},
		{"huge array of ints", array(tInt, 1<<31), "type too large"},
		{"2,000,000 values in one byte", more, "type too large"},
		{"member outside", structure("s", 4, member("a", 2, tInt)), `dump of struct s: member "a": lies outside the structure`},
		{"wide bitfield", structure("s", 4, bitfield("a", 0, 9, tU8)), `member "a": bitfield with an impossible type or width`},
		{"bitfield of a pointer", structure("s", 8, bitfield("a", 0, 9, tVoidP)), "bitfield with an impossible type"},
		{"variable", &btf.Var{Name: "v", Type: tVoid}, `dump of void: variable "v": type has no size`},
		{"section", &btf.Datasec{Name: ".bss", Vars: []btf.VarSecinfo{{Type: &btf.Var{Name: "v", Type: tVoid}}}}, `dump of .bss: variable "v": type has no size`},
		{"section too large", &btf.Datasec{Name: ".bss", Vars: []btf.VarSecinfo{{Type: &btf.Var{Name: "v", Type: tInt}, Offset: 1 << 31}}}, "type too large"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(tt.typ, Options{})
			require.ErrorContains(t, err, tt.err)
		})
	}
}
