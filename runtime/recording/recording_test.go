package recording

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/cgroup"
	"github.com/ksnoop/ksnoop/runtime/known"
	"github.com/ksnoop/ksnoop/runtime/userstack"
)

// TestPart verifies that values look the same by the types of a recording, and that
// what pointers point to is not among these.
func TestPart(t *testing.T) {
	integer := &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	char := &btf.Int{Name: "char", Size: 1, Encoding: btf.Signed}
	far := &btf.Struct{Name: "far", Size: 4, Members: []btf.Member{{Name: "a_secret", Type: integer}}}
	node := &btf.Struct{Name: "node", Size: 64}
	word := &btf.Typedef{Name: "word_t", Type: integer}
	colour := &btf.Enum{Name: "colour", Size: 4, Values: []btf.EnumValue{{Name: "RED", Value: 1}}}
	node.Members = []btf.Member{
		{Name: "next", Type: &btf.Pointer{Target: node}},
		{Name: "far", Type: &btf.Const{Type: &btf.Pointer{Target: &btf.Const{Type: &btf.Pointer{Target: far}}}}, Offset: 64},
		{Name: "run", Type: &btf.Pointer{Target: &btf.FuncProto{Return: word, Params: []btf.FuncParam{{Name: "x", Type: far}}}}, Offset: 128},
		{Name: "name", Type: &btf.Array{Index: integer, Type: char, Nelems: 8}, Offset: 192},
		{Name: "word", Type: &btf.Volatile{Type: word}, Offset: 256},
		{Name: "colour", Type: colour, Offset: 288},
		{Name: "bits", Type: integer, Offset: 320, BitfieldSize: 3},
		{Type: &btf.Union{Size: 8, Members: []btf.Member{{Name: "u", Type: integer}, {Name: "p", Type: &btf.Pointer{Target: &btf.Void{}}}}}, Offset: 384},
		{Name: "list", Type: &btf.Array{Index: integer, Type: &btf.Struct{Name: "pair", Size: 4, Members: []btf.Member{{Name: "a", Type: char}, {Name: "b", Type: char, Offset: 8}}}, Nelems: 2}, Offset: 448},
	}
	data := []byte("12345678abcdefgh\x01\x00\x00\x00\x00\xff\xff\xffeth0\x00\x00\x00\x00\x05\x00\x00\x00\x01\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x09\x00\x00\x00\x00\x00\x00\x00\x01\x02\x00\x00\x03\x04\x00\x00")
	p, err := newPart()
	require.NoError(t, err)
	id, err := p.id(node)
	require.NoError(t, err)
	again, err := p.id(node)
	require.NoError(t, err)
	require.Equal(t, id, again)
	raw, err := p.raw()
	require.NoError(t, err)
	require.NotContains(t, string(raw), "a_secret")
	all, err := readTypes(raw)
	require.NoError(t, err)
	for _, o := range []btfdump.Options{{EmitStrings: true, Indent: " "}, {Compact: true, EmitZeroes: true}} {
		want, err := btfdump.New(node, o)
		require.NoError(t, err)
		got, err := btfdump.New(all[id], o)
		require.NoError(t, err)
		require.Equal(t, string(want.AppendText(nil, data)), string(got.AppendText(nil, data)))
		require.Equal(t, string(want.AppendJSON(nil, data)), string(got.AppendJSON(nil, data)))
	}
}

// TestNames verifies that the symbols in a recording name each address in a record as all
// symbols do, wherever in the record it is.
func TestNames(t *testing.T) {
	const lines = `ffffffff81000000 T _stext
ffffffff81000000 T first
ffffffff81000010 t second
ffffffff81000020 t third
ffffffff81000040 T _etext
ffffffff82000000 D data
ffffffffc0000000 t init	[mod]
ffffffffc0000040 t exit	[mod]
ffffffffc0000080 t exit	[two]
`
	whole, err := kallsyms.Read(bytes.NewReader([]byte(lines)), nil)
	require.NoError(t, err)
	for base := uint64(0xffffffff80fffff0); base < 0xffffffffc0000100; base += 8 {
		if base == 0xffffffff81000100 {
			base = 0xffffffff81fffff0
		}
		if base == 0xffffffff82000100 {
			base = 0xffffffffbffffff0
		}
		for pad := range 3 {
			n := newNames(whole, "amd64")
			n.in(append(binary.LittleEndian.AppendUint64(make([]byte, pad), base), 0xff, 0xff, 0))
			part, err := kallsyms.Read(bytes.NewReader(n.lines), nil)
			require.NoError(t, err)
			for _, addr := range []uint64{base, base - 1} {
				want, wantOff, wantOK := whole.At(addr)
				got, off, ok := part.At(addr)
				require.Equal(t, wantOK, ok, "%#x", addr)
				if ok {
					require.Equal(t, want.Name, got.Name)
					require.Equal(t, want.Module, got.Module)
					require.Equal(t, wantOff, off)
					require.Equal(t, whole.Size(want), part.Size(got), "%#x", addr)
				}
			}
		}
	}
}

// TestMemory verifies that lists of a few bytes do not take much memory.
func TestMemory(t *testing.T) {
	c := &codec{buf: binary.AppendUvarint(nil, 1<<20), reading: true}
	c.buf = append(c.buf, make([]byte, 1<<20)...)
	var list [][1 << 10]byte
	each(c, &list, func(*[1 << 10]byte) { c.buf = c.buf[1:] })
	require.ErrorIs(t, c.err, errContent)
	require.LessOrEqual(t, len(list), mostTaken>>10)
}

// TestLimitedTexts verifies that a text that is too long is refused, and that what is
// kept of texts is bounded.
func TestLimitedTexts(t *testing.T) {
	long := strings.Repeat("x", mostName+1)
	for _, k := range []Container{
		{Container: cgroup.Container{Runtime: long}}, {Container: cgroup.Container{ID: long}}, {Container: cgroup.Container{Name: long}},
	} {
		w := &codec{}
		w.container(&k)
		r := &codec{buf: w.buf, reading: true}
		r.container(new(Container))
		require.ErrorIs(t, r.err, errText)
	}
	for _, f := range []Frame{{Frame: userstack.Frame{Symbol: long}}, {Frame: userstack.Frame{File: long}}, {Frame: userstack.Frame{BuildID: long}}} {
		w := &codec{}
		w.frame(&f)
		r := &codec{buf: w.buf, reading: true}
		r.frame(new(Frame))
		require.ErrorIs(t, r.err, errText)
	}
	w := &codec{}
	w.origin(&Origin{Specs: []string{strings.Repeat("x", mostText+1)}})
	r := &codec{buf: w.buf, reading: true}
	r.origin(new(Origin))
	require.ErrorIs(t, r.err, errText)

	var containers Containers
	name := strings.Repeat("x", mostName)
	most := known.MostTexts / mostName
	for id := range uint64(most + 1) {
		containers.Add(Container{id, cgroup.Container{Name: name}})
	}
	require.Equal(t, 1, containers.names.Len(), "the others are forgotten")
}

// TestSymbols verifies that lines that no recorder writes are refused.
func TestSymbols(t *testing.T) {
	var s symbols
	require.NoError(t, s.add([]byte("ffffffff81000000 T a\n")))
	require.ErrorIs(t, s.add([]byte("ffffffff81000000 T a")), errContent)
	s = symbols{}
	require.EqualError(t, s.add([]byte("a\n")), `parse symbol table, line 1: "a" is not an address, a type, a name and a module`)
	require.ErrorIs(t, s.add(bytes.Repeat([]byte("\n"), mostSymbols+1)), errContent)
}

// TestSymbolsInParts verifies that symbols that come in any order, a few at a time, are
// found as in the table that they are from, and that each line is parsed a few times.
func TestSymbolsInParts(t *testing.T) {
	var lines []byte
	for i := range uint64(3000) {
		at := 0xffffffff81000000 + i*64
		module := []string{"", "\t[mod]", "\t[two]"}[i/1000]
		switch {
		case i%7 == 0:
			lines = fmt.Appendf(lines, "%016x T alias%d%s\n", at, i, module)
		case i == 999:
			lines = fmt.Appendf(lines, "%016x T _etext\n", at)
			continue
		}
		lines = fmt.Appendf(lines, "%016x T f%d%s\n", at, i%100, module)
	}
	whole, err := kallsyms.Read(bytes.NewReader(lines), nil)
	require.NoError(t, err)
	n := newNames(whole, "amd64")
	var s symbols
	rnd := rand.New(rand.NewPCG(1, 2))
	var known []uint64
	for range 4000 {
		addr := 0xffffffff81000000 - 64 + rnd.Uint64N(3002*64)
		known = append(known, addr)
		if n.in(binary.LittleEndian.AppendUint64(nil, addr)); len(n.lines) > 0 {
			require.NoError(t, s.add(n.lines))
			n.lines = n.lines[:0]
		}
	}
	for _, addr := range known {
		want, wantOff, wantOK := whole.At(addr)
		got, off, ok := s.At(addr)
		require.Equal(t, wantOK, ok, "%#x", addr)
		require.Equal(t, want, got)
		require.Equal(t, wantOff, off)
		require.Equal(t, whole.Size(want), s.Size(got), "%#x", addr)
	}
	require.Subset(t, whole.Lookup("f7"), s.Lookup("f7"))
	require.LessOrEqual(t, s.parsed, 12*len(s.lines))
	require.LessOrEqual(t, len(s.parts), 12)
}

// TestManySymbols verifies that a table that almost fills a block is read again, though its
// symbols do not fit in the same block.
func TestManySymbols(t *testing.T) {
	const symbols, start = 40_000, uint64(0xffffffff81000000)
	var lines []byte
	for i := range uint64(symbols) {
		lines = fmt.Appendf(lines, "%016x t a_function_of_the_kernel_%d\n", start+64*i, i)
	}
	finder, err := kallsyms.Read(bytes.NewReader(lines), nil)
	require.NoError(t, err)
	key := &compiler.Value{Name: "$kstack", Type: &btf.Int{Name: "u64", Size: 8}, Base: compiler.Base{Builtin: compiler.KernelStack}}
	count := &compiler.Aggregate{Kind: compiler.Count, Name: "count()"}
	p := &compiler.Probe{Func: &compiler.Function{Name: "f", Symbol: "f"}, Measure: compiler.Tables, Key: []*compiler.Value{key}, Aggregates: []*compiler.Aggregate{count}}
	unit := &compiler.Unit{Events: []*compiler.EventType{{Kind: compiler.EntryEvent, Probe: p}}, Tables: []*compiler.TableLayout{{Function: -1, Events: []int{0}}}}
	stacks := make([]byte, mostEntry-1<<16)
	for at := 0; at < len(stacks); at += 8 {
		order.PutUint64(stacks[at:], start+64*uint64(at/8%symbols))
	}
	table := &runtime.Table{Label: "f", Key: p.Key, Aggregates: p.Aggregates}
	for data := range slices.Chunk(stacks, 1<<16) {
		table.Rows = append(table.Rows, runtime.Row{Calls: 1, Key: []runtime.Value{{Value: key, Data: data, Full: len(data)}}, Cells: make([]runtime.Cell, 1)})
	}
	var file bytes.Buffer
	w, err := NewWriter(&file, unit, Origin{Arch: "amd64"}, finder)
	require.NoError(t, err)
	require.NoError(t, w.Tables([]*runtime.Table{table}))
	require.NoError(t, w.End(runtime.SessionCounts{Events: make([]runtime.Counts, 1)}))
	r, err := NewReader(&file)
	require.NoError(t, err)
	item, err := r.Next()
	require.NoError(t, err)
	require.NotNil(t, item.Table)
	require.Len(t, item.Table.Rows, len(table.Rows))
	s, _, ok := r.symbols.At(start + 64*(symbols-1))
	require.True(t, ok)
	require.Equal(t, fmt.Sprint("a_function_of_the_kernel_", symbols-1), s.Name)
	item, err = r.Next()
	require.NoError(t, err)
	require.NotNil(t, item.End)
}

// discard counts what is written.
type discard int64

func (d *discard) Write(p []byte) (int, error) {
	*d += discard(len(p))
	return len(p), nil
}

// BenchmarkRecord measures what a record of a number costs besides reading it from the
// ring buffer.
func BenchmarkRecord(b *testing.B) {
	integer := &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	v := &compiler.Value{Name: "n", Type: integer, Scalar: &compiler.Scalar{Size: 4, Signed: true}}
	ev := &compiler.EventType{
		Probe: &compiler.Probe{Func: &compiler.Function{Name: "f"}}, Kind: compiler.EntryEvent, Items: []*compiler.Value{v},
		Layout: compiler.Layout{Size: 64, Faults: 48, Slots: []compiler.Slot{{Off: 56, Data: 56, Cap: 4, Full: 4}}},
	}
	symbols, err := kallsyms.Read(bytes.NewReader([]byte("ffffffff81000000 T f\n")), nil)
	require.NoError(b, err)
	var to discard
	w, err := NewWriter(&to, &compiler.Unit{Events: []*compiler.EventType{ev}}, Origin{}, symbols)
	require.NoError(b, err)
	rec := make([]byte, 64)
	copy(rec[compiler.HeaderComm:], "traffic")
	order.PutUint64(rec[compiler.HeaderCall:], 0xffffc90000123450)
	n := uint64(0)
	rnd := rand.New(rand.NewPCG(1, 1))
	var step [1 << 16]uint64
	for i := range step {
		step[i] = 1000 + rnd.Uint64N(500)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		n += step[i%len(step)]
		i++
		binary.LittleEndian.PutUint64(rec[compiler.HeaderTime:], n)
		if err := w.Record(rec); err != nil {
			b.Fatal(err)
		}
	}
	require.NoError(b, w.End(runtime.SessionCounts{Events: []runtime.Counts{{EventType: ev}}}))
	b.ReportMetric(float64(to)/float64(b.N), "bytes/record")
}

// TestCounts verifies that all counts of an event are in a recording.
func TestCounts(t *testing.T) {
	var counts runtime.Counts
	next := uint64(1)
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		for i := range v.NumField() {
			switch f := v.Field(i); f.Kind() {
			case reflect.Uint64:
				f.SetUint(next)
				next++
			case reflect.Struct:
				fill(f)
			}
		}
	}
	fill(reflect.ValueOf(&counts).Elem())
	require.Greater(t, next, uint64(10))
	w := &codec{}
	w.counts(&counts)
	var read runtime.Counts
	r := &codec{buf: w.buf, reading: true}
	r.counts(&read)
	require.NoError(t, r.err)
	require.Equal(t, counts, read)
}
