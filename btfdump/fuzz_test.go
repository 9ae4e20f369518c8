package btfdump

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
)

// FuzzAppendText makes a type from a seed and prints any bytes as a value of it.
// The text is always safe to print, has a bounded size, marks missing bytes exactly
// once, and is the same in several goroutines.
func FuzzAppendText(f *testing.F) {
	f.Add(uint64(1), []byte("\x01\x02\x03\x04\x00\x00\x00\x00abc"), uint8(0))
	f.Add(uint64(7), []byte{}, uint8(0xff))
	f.Fuzz(func(t *testing.T, seed uint64, data []byte, options uint8) {
		g := typeGen{rand.New(rand.NewPCG(seed, 0))}
		typ := g.root()
		o := g.options(options)
		require.True(t, utf8.ValidString(Decl(typ, "name")+TypeName(typ)))
		d, err := New(typ, o)
		if err != nil {
			return
		}

		var outs [3]string
		var wg sync.WaitGroup
		for i := range outs {
			wg.Go(func() { outs[i] = string(d.AppendText([]byte("> "), data)) })
		}
		wg.Wait()
		require.Equal(t, outs[0], outs[1])
		require.Equal(t, outs[0], outs[2])
		requireSafe(t, outs[0])

		cuts := 0
		if len(data) < int(d.root.size) {
			cuts = 1
		}
		require.Equal(t, cuts, strings.Count(outs[0], " bytes cut */"), "%s", outs[0])
		line := 400 + len(o.Indent)*(o.IndentLevel+maxNested)
		require.LessOrEqual(t, len(outs[0]), 2*line*(values(d, &d.root)+1)*(len(data)+2))
	})
}

func requireSafe(t *testing.T, s string) {
	t.Helper()
	require.True(t, utf8.ValidString(s), "%q", s)
	for _, r := range s {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			t.Fatalf("control character %q in %q", r, s)
		}
	}
}

// values returns the greatest number of values that one pass over the code prints.
func values(d *Dumper, o *op) int {
	n := 1
	switch o.kind {
	case kindStructure, kindSection:
		for i := range o.n {
			n += values(d, &d.ops[o.first+i])
		}
	case kindArray:
		n += values(d, &d.ops[o.first])
	}
	return n
}

// typeGen generates types, most of them valid.
type typeGen struct{ *rand.Rand }

func (g typeGen) options(bits uint8) Options {
	o := Options{
		Compact: bits&1 != 0, SkipNames: bits&2 != 0, EmitZeroes: bits&4 != 0,
		EmitStrings: bits&8 != 0, BigEndian: bits&16 != 0, IndentLevel: g.IntN(40),
	}
	if bits&32 != 0 {
		o.Indent = " "
	}
	if bits&64 != 0 {
		o.Symbolize = func(a uint64) (string, uint64, bool) { return "sym\x1b\xff", a & 0xff, a&1 == 0 }
	}
	return o
}

func (g typeGen) name() string {
	return []string{"", "a", "name", "x\x1b[2J", "\xff\x00", "h\u00e9"}[g.IntN(6)]
}

func (g typeGen) root() btf.Type {
	switch g.IntN(8) {
	case 0:
		return &btf.Var{Name: g.name(), Type: g.typ(3), Linkage: btf.VarLinkage(g.IntN(4))}
	case 1:
		ds := &btf.Datasec{Name: g.name(), Size: g.Uint32N(64)}
		for range g.IntN(4) {
			v := &btf.Var{Name: g.name(), Type: g.typ(3)}
			ds.Vars = append(ds.Vars, btf.VarSecinfo{Type: v, Offset: g.Uint32N(64)})
		}
		return ds
	}
	return g.typ(4)
}

func (g typeGen) typ(depth int) btf.Type {
	if depth == 0 || g.IntN(3) == 0 {
		return g.scalar()
	}
	switch g.IntN(9) {
	case 0, 1, 2:
		size, members := g.members(depth, false)
		return &btf.Struct{Name: g.name(), Size: size, Members: members}
	case 3:
		size, members := g.members(depth, true)
		return &btf.Union{Name: g.name(), Size: size, Members: members}
	case 4, 5:
		return array(g.typ(depth-1), g.Uint32N(6))
	case 6:
		return &btf.Typedef{Name: g.name(), Type: g.typ(depth - 1)}
	case 7:
		return &btf.Const{Type: &btf.Volatile{Type: &btf.Restrict{Type: g.typ(depth - 1)}}}
	}
	return &btf.TypeTag{Value: "rcu", Type: g.typ(depth - 1)}
}

func (g typeGen) scalar() btf.Type {
	switch g.IntN(8) {
	case 0, 1, 2:
		sizes := []uint32{1, 1, 2, 3, 4, 8, 16, 0, 40}
		return &btf.Int{Name: []string{"char", "int", "u8"}[g.IntN(3)], Size: sizes[g.IntN(len(sizes))], Encoding: btf.IntEncoding(g.IntN(8))}
	case 3:
		e := &btf.Enum{Name: g.name(), Size: 1 << g.IntN(5), Signed: g.IntN(2) == 0}
		for range g.IntN(4) {
			e.Values = append(e.Values, btf.EnumValue{Name: g.name(), Value: g.Uint64() >> g.IntN(64)})
		}
		return e
	case 4:
		return &btf.Float{Name: "f", Size: []uint32{0, 2, 4, 8, 12, 16, 32}[g.IntN(7)]}
	case 5:
		return ptr(proto(g.scalar(), param(g.name(), g.scalar()), param("", tVoid)))
	case 6:
		return ptr(g.scalar())
	}
	return []btf.Type{tVoid, tEmpty, &btf.Fwd{Name: "f"}, array(tChar, 8), array(tU8, 6), array(tBool, 3)}[g.IntN(6)]
}

// members places members one after the other, or all at the start for a union, and
// sometimes at wrong offsets.
func (g typeGen) members(depth int, union bool) (size uint32, members []btf.Member) {
	var at uint32
	for i := range g.IntN(6) {
		m := member(fmt.Sprintf("%s%d", g.name(), i), at, g.typ(depth-1))
		n, _ := btf.Sizeof(m.Type)
		if i, ok := m.Type.(*btf.Int); ok && g.IntN(2) == 0 {
			m.BitfieldSize = btf.Bits(g.Uint32N(8*min(i.Size, 20) + 1))
			m.Offset += btf.Bits(g.IntN(8))
			n++
		}
		members = append(members, m)
		size = max(size, at+uint32(n))
		if !union {
			at += uint32(n)
		}
	}
	if g.IntN(20) == 0 {
		return size / 2, members
	}
	return size + g.Uint32N(3), members
}

// FuzzAppendString checks that quoted text is safe to print for any bytes and that
// its length is bounded.
func FuzzAppendString(f *testing.F) {
	f.Add([]byte("eth0\x1b[2J\xff\u202e"))
	f.Fuzz(func(t *testing.T, s []byte) {
		out := string(AppendString(nil, s))
		requireSafe(t, out)
		require.NotContains(t, out, "\n")
		require.LessOrEqual(t, len(out), 4*len(s)+2)
	})
}
