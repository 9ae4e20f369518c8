package btfdump

import (
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
)

func TestStructures(t *testing.T) {
	inner := &btf.Union{Size: 8, Members: []btf.Member{
		member("l", 0, tLong),
		member("", 0, structure("", 8, member("lo", 0, tInt), member("hi", 4, tInt))),
	}}
	outer := structure("outer", 24,
		member("", 0, inner),
		member("p", 8, tPoint),
		member("e", 16, tEmpty),
		member("n", 16, tInt),
	)
	run(t, compact, []textTest{
		{"members in order", tPoint, le(int32(1), int32(2)), "(struct point){.x = (int)1,.y = (int)2,}"},
		{"zero members left out", tPoint, le(int32(0), int32(2)), "(struct point){.y = (int)2,}"},
		{"all zero", tPoint, zeros(8), "(struct point){}"},
		{"empty", tEmpty, nil, "(struct empty){}"},
		{"anonymous members, all arms", outer, cat(le(int32(1), int32(2)), zeros(16)), "(struct outer){(union){.l = (long)8589934593,(struct){.lo = (int)1,.hi = (int)2,},},}"},
		{"later members", outer, cat(zeros(12), le(int32(3), int32(4), int32(0))), "(struct outer){.p = (struct point){.y = (int)3,},.n = (int)4,}"},
		{"more data than the type has", tPoint, le(int32(1), int32(2), int32(3)), "(struct point){.x = (int)1,.y = (int)2,}"},
		{"typedef of an anonymous structure", &btf.Typedef{Name: "kuid_t", Type: structure("", 4, member("val", 0, tUint))}, le(uint32(7)), "(kuid_t){.val = (unsigned int)7,}"},
		{"names from a hostile file", structure("a\x1b[2J", 4, member("m\n", 0, tInt)), le(int32(1)), "(struct a?[2J){.m? = (int)1,}"},
	})
}

// TestRecursion checks that a structure that points to itself can be compiled.
func TestRecursion(t *testing.T) {
	list := structure("list_head", 16)
	next := &btf.Pointer{Target: list}
	list.Members = []btf.Member{member("next", 0, next), member("prev", 8, next)}
	require.Equal(t, "(struct list_head){.next = (struct list_head *)0x1,.prev = (struct list_head *)0x2,}",
		text(t, list, compact, le(uint64(1), uint64(2))))
}

// TestWrongInLibbpf has a row for each fault of libbpf's dump.
func TestWrongInLibbpf(t *testing.T) {
	nested := structure("s", 12, member("p", 0, tPoint), member("z", 8, tInt))
	mac := structure("s", 6, member("addr", 0, array(tU8, 6)))
	flags := structure("s", 4, member("f", 0, array(tBool, 4)))
	names := structure("s", 14, member("a", 0, array(tChar, 4)), member("c", 4, tU8), member("b", 5, array(tChar, 4)), member("u", 9, array(tU8, 5)))
	e := &btf.Enum{Name: "e", Size: 4, Signed: true, Values: []btf.EnumValue{{Name: "A", Value: 1}}}
	oddEnum := structure("s", 5, member("c", 0, tU8), member("e", 1, e))
	twoEnums := structure("s", 8, member("e", 0, e), member("f", 4, e))
	high := &btf.Enum{Name: "h", Size: 4, Values: []btf.EnumValue{{Name: "H", Value: 1 << 31}}}
	flex := structure("s", 4, member("n", 0, tInt), member("tail", 4, array(tU8, 0)))
	padded := structure("s", 16, member("p", 0, tPadded), member("z", 8, tPoint))
	run(t, compact, []textTest{
		{"nested structure whose first member is zero", nested, le(int32(0), int32(5), int32(0)), "(struct s){.p = (struct point){.y = (int)5,},}"},
		{"padding does not make a structure non-zero", padded, cat("\x00\xff\xff\xff", zeros(4), le(int32(0), int32(1))), "(struct s){.z = (struct point){.y = (int)1,},}"},
		{"bytes keep their place", mac, []byte{0, 0x11, 0, 0, 0x44, 0}, "(struct s){.addr = (unsigned char[6])[00 11 00 00 44 00],}"},
		{"bools keep their place", flags, []byte{0, 1, 0, 2}, "(struct s){.f = (bool[4])[0 1 0 2],}"},
		{"no state after a text array", names, cat("ab\x00\x00", "x", "\x00\x00\x00\x00", "\x00\x00A\x00B"), `(struct s){.a = (char[4])"ab",.c = (unsigned char)120,.u = (unsigned char[5])[00 00 41 00 42],}`},
		{"null", tVoidP, zeros(8), "(void *)0x0"},
		{"enum at an odd address", oddEnum, cat("\x00", le(int32(1))), "(struct s){.e = (enum e)A,}"},
		{"unnamed value of a signed enum", twoEnums, le(int32(9), int32(-9)), "(struct s){.e = (enum e)9,.f = (enum e)-9,}"},
		{"unsigned enumerator above 2^31", high, le(uint32(1 << 31)), "(enum h)H"},
		{"signed bitfield", structure("s", 1, bitfield("b", 0, 3, tInt)), []byte{7}, "(struct s){.b = (int)-1,}"},
		{"array of empty structures", array(tEmpty, 3), nil, "(struct empty[3])[/* 3 empty elements */]"},
		{"cut array", array(tInt, 4), le(int32(1), int32(2), int16(3)), "(int[4])[1,2,/* 6 bytes cut */]"},
		{"cut array of structures", array(tPoint, 1000), le(int32(1), int32(2), int32(3)), "(struct point[1000])[{.x = 1,.y = 2,},{.x = 3,/* 7988 bytes cut */},]"},
		{"string in a structure is delimited", names, cat("ab\x00\x00", zeros(10)), `(struct s){.a = (char[4])"ab",}`},
		{"flexible array", flex, cat(le(int32(2)), "\x01\x02"), "(struct s){.n = (int)2,.tail = (unsigned char[0])[01 02],}"},
		{"two types of one name", structure("s", 8, member("a", 0, structure("x", 4, member("i", 0, tInt))), member("b", 4, structure("x", 4, member("j", 0, tInt)))),
			le(int32(1), int32(2)), "(struct s){.a = (struct x){.i = (int)1,},.b = (struct x){.j = (int)2,},}"},
	})
}

func TestLines(t *testing.T) {
	file := structure("file", 48,
		member("f_inode", 0, &btf.Pointer{Target: structure("inode", 8)}),
		member("f_path", 8, structure("path", 8, member("mnt", 0, &btf.Pointer{Target: structure("vfsmount", 8)}))),
		member("f_name", 16, array(tChar, 8)),
		member("f_pos", 24, array(tPoint, 3)),
	)
	data := cat(le(uint64(0xffff888003d0e000), uint64(0xffff888003d0f000)), "lo\x00\x00\x00\x00\x00\x00", le(int64(0), int32(1), int32(0), int64(-1)))
	want := `(struct file){
 .f_inode = (struct inode *)0xffff888003d0e000,
 .f_path = (struct path){
  .mnt = (struct vfsmount *)0xffff888003d0f000,
 },
 .f_name = (char[8])"lo",
 .f_pos = (struct point[3])[
  [1] = {
   .x = 1,
  },
  {
   .x = -1,
   .y = -1,
  },
 ],
}`
	require.Equal(t, want, text(t, file, Options{Indent: " ", EmitStrings: true}, data))

	indented := strings.Repeat(" ", 36) + strings.ReplaceAll(want, "\n", "\n"+strings.Repeat(" ", 36))
	require.Equal(t, indented, text(t, file, Options{Indent: " ", IndentLevel: 36, EmitStrings: true}, data))

	tabs := text(t, file, Options{EmitStrings: true}, data)
	require.Equal(t, strings.ReplaceAll(want, " ", ""), strings.NewReplacer("\t", "", " ", "").Replace(tabs))
	require.Contains(t, tabs, "\n\t\t\t.x = 1,\n")
}

// TestDeepLines checks lines that are deeper than the precomputed indentation.
func TestDeepLines(t *testing.T) {
	var typ btf.Type = tInt
	for range indented + 4 {
		typ = structure("s", 4, member("m", 0, typ))
	}
	got := text(t, typ, Options{Indent: "ab", IndentLevel: 1}, le(int32(1)))
	require.Contains(t, got, "\n"+strings.Repeat("ab", indented+5)+".m = (int)1,\n"+strings.Repeat("ab", indented+4)+"},")
}

func TestOptions(t *testing.T) {
	s := structure("s", 28,
		member("p", 0, tPoint),
		member("a", 8, array(tShort, 2)),
		member("e", 12, tEmpty),
		member("c", 12, array(tChar, 4)),
		member("u", 16, array(tU8, 2)),
		bitfield("b", 144, 3, tUint),
		member("q", 20, array(tPoint, 1)),
	)
	data := cat(le(int32(0), int32(1), int16(0), int16(2)), "hi\x00\x00", zeros(12))
	tests := []struct {
		name string
		o    Options
		want string
	}{
		{"none", Options{}, "(struct s){\n\t.p = (struct point){\n\t\t.y = (int)1,\n\t},\n\t.a = (short[2])[\n\t\t[1] = 2,\n\t],\n\t.c = (char[4])[\n\t\t'h',\n\t\t'i',\n\t],\n}"},
		{"compact", Options{Compact: true}, "(struct s){.p = (struct point){.y = (int)1,},.a = (short[2])[[1] = 2,],.c = (char[4])['h','i',],}"},
		{"indentation is nothing in compact", Options{Compact: true, Indent: "xx", IndentLevel: 9, EmitStrings: true}, `(struct s){.p = (struct point){.y = (int)1,},.a = (short[2])[[1] = 2,],.c = (char[4])"hi",}`},
		{"skip names", Options{Compact: true, SkipNames: true}, "{{1,},[[1] = 2,],['h','i',],}"},
		{"zeroes", Options{Compact: true, EmitZeroes: true, EmitStrings: true}, `(struct s){.p = (struct point){.x = (int)0,.y = (int)1,},.a = (short[2])[0,2,],.e = (struct empty){},.c = (char[4])"hi",.u = (unsigned char[2])[00 00],.b = (unsigned int)0x0,.q = (struct point[1])[{.x = 0,.y = 0,},],}`},
		{"negative level", Options{IndentLevel: -3, SkipNames: true, Indent: " "}, "{\n {\n  1,\n },\n [\n  [1] = 2,\n ],\n [\n  'h',\n  'i',\n ],\n}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, text(t, s, tt.o, data))
		})
	}
}

func TestVariables(t *testing.T) {
	a := &btf.Var{Name: "jiffies", Type: tULong, Linkage: btf.GlobalVar}
	b := &btf.Var{Name: "p", Type: tPoint, Linkage: btf.StaticVar}
	c := &btf.Var{Name: "fmt", Type: &btf.Const{Type: array(tChar, 4)}, Linkage: btf.ExternVar}
	sec := &btf.Datasec{Name: ".data", Vars: []btf.VarSecinfo{
		{Type: a, Offset: 0, Size: 8}, {Type: b, Offset: 8, Size: 8}, {Type: c, Offset: 16, Size: 4},
	}}
	ksyms := &btf.Datasec{Name: ".ksyms", Vars: []btf.VarSecinfo{{Type: &btf.Func{Name: "f", Type: tFunc}}}}
	data := cat(le(uint64(0), int32(1), int32(0)), "GPL\x00")
	run(t, compact, []textTest{
		{"global, shown though zero", a, zeros(8), "unsigned long jiffies = (unsigned long)0"},
		{"static", b, data[8:], "static struct point p = (struct point){.x = (int)1,}"},
		{"extern", c, data[16:], `extern char[4] fmt = (char[4])"GPL"`},
		{"section", sec, data, `SEC(".data") unsigned long jiffies = (unsigned long)0;static struct point p = (struct point){.x = (int)1,};extern char[4] fmt = (char[4])"GPL";`},
		{"section, cut in a variable", sec, data[:12], `SEC(".data") unsigned long jiffies = (unsigned long)0;static struct point p = (struct point){.x = (int)1,/* 8 bytes cut */};`},
		{"section, cut between variables", sec, data[:16], `SEC(".data") unsigned long jiffies = (unsigned long)0;static struct point p = (struct point){.x = (int)1,};/* 4 bytes cut */`},
		{"section of functions", ksyms, nil, `SEC(".ksyms") int f(struct sock *sk, int);`},
	})
	require.Equal(t, `SEC(".data") unsigned long jiffies = 0;static struct point p = {1,};extern char[4] fmt = "GPL";`,
		text(t, sec, Options{Compact: true, SkipNames: true, EmitStrings: true}, data), "a declaration is no member name")
	require.Equal(t, " SEC(\".data\") unsigned long jiffies = (unsigned long)0;\n static struct point p = (struct point){\n  .x = (int)1,\n };\n extern char[4] fmt = (char[4])\"GPL\";",
		text(t, sec, Options{Indent: " ", IndentLevel: 1, EmitStrings: true}, data))
}
