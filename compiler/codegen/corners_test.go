package codegen

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
)

// A condition may combine very many predicates of both sides.
func TestManyAlternatives(t *testing.T) {
	var predicates []string
	for i := range 40 {
		predicates = append(predicates, fmt.Sprintf("count == %d", 100+i))
	}
	text := "read(count) if return == 3 || " + strings.Join(predicates, " || ")
	backEnds(t, func(t *testing.T, f compiler.Features) {
		r := newRig(t, f, compiler.Options{}, text)
		for count := uint64(99); count <= 140; count++ {
			r.do(call{args: []uint64{0, 0, count, 0}, result: []uint64{4}})
		}
		require.Len(t, r.records, 40)
	})
}

// An option out of its range is refused, whatever is traced.
func TestRefusedOptions(t *testing.T) {
	for want, o := range map[string]compiler.Options{
		"compile with MaxBytes of -1: it must be 0 to 1048576":                    {MaxBytes: -1},
		"compile with MaxBytes of 1048577: it must be 0 to 1048576":               {MaxBytes: 1<<20 + 1},
		"compile with Keys of -1: it must be 0 to 2147483647":                     {Keys: -1},
		"compile with Keys of 1099511627776: it must be 0 to 2147483647":          {Keys: 1 << 40},
		"compile with Rate of 4294967295: it must be 0 to 1000000000":             {Rate: 1<<32 - 1},
		"compile with RingBytes of 4097: it must be a power of two from 4096 up":  {RingBytes: 4097},
		"compile with RingBytes of 12288: it must be a power of two from 4096 up": {RingBytes: 3 * 4096},
		"compile with RingBytes of 2048: it must be a power of two from 4096 up":  {RingBytes: 2048},
	} {
		_, err := Compile(nil, o)
		require.EqualError(t, err, want)
	}
	_, err := Compile(nil, compiler.Options{MaxBytes: compiler.MostBytes, Keys: compiler.MostKeys, Rate: compiler.MostRate, RingBytes: 1 << 31})
	require.NoError(t, err)
}

// Saved values of predicates leave enough room on the stack for everything else.
func TestManyPredicates(t *testing.T) {
	var predicates []string
	for _, value := range []string{"buf->len", "buf->err", "buf->hash", "buf->peek", "buf->type", "buf->delta", "count"} {
		for _, format := range []string{"x8", "x16", "x32", "x64", "s8", "s16", "s32"} {
			predicates = append(predicates, fmt.Sprintf("%s:%s != 1", value, format))
		}
	}
	const values = "buf->len, buf->err, buf->type, buf->delta, buf->ready, buf->peek, buf->stamp.tv_sec, count"
	cond := strings.Join(predicates, " && ") + ` && buf->dev->name == "eth0"`
	for _, text := range []string{"read(" + values + ") if " + cond, "read(" + values + ", return) if " + cond, "read(count) if return == 0 && " + cond} {
		backEnds(t, func(t *testing.T, f compiler.Features) {
			for _, m := range []compiler.Measure{compiler.NoMeasure, compiler.Calls, compiler.Durations} {
				r := newMeasured(t, f, m, text)
				buf, _ := bufAndDev(r.machine)
				r.do(call{args: []uint64{buf, 0, 5, 0}, result: []uint64{0}})
				require.Equal(t, m == compiler.NoMeasure, len(r.records) == 1)
				require.Equal(t, m != compiler.NoMeasure, r.counters(0).Matched == 1)
			}
		})
	}
	backEnds(t, func(t *testing.T, f compiler.Features) {
		r := chainRig(t, f, "send", "read(return) if "+cond+" && return == 0")
		buf, _ := bufAndDev(r.machine)
		r.nest(stackSend(0), r.nest(call{fn: "read", args: []uint64{buf, 0, 5, 0}, result: []uint64{0}}))()
		require.NotEmpty(t, r.chainShown())
	})
}

// A fault of a predicate at entry is counted even if the call is rejected at return.
func TestUnreadableAtEntryIsCounted(t *testing.T) {
	backEnds(t, func(t *testing.T, f compiler.Features) {
		r := newRig(t, f, compiler.Options{}, "read(count) if return == 4 || buf->len == 104")
		r.do(call{args: []uint64{0, 0, 5, 0}, result: []uint64{3}})
		require.Empty(t, r.shown())
		require.Equal(t, uint64(1), r.counters(0).Unreadable)
		r.do(call{args: []uint64{0, 0, 5, 0}, result: []uint64{4}})
		require.Len(t, r.shown(), 1)
		require.Equal(t, uint64(1), r.counters(0).Unreadable)
	})
}

// Of conditions that must all hold, one that does not hides what could not be read in
// those to its right, and one that reads no memory also in those to its left.
func TestFalseHidesUnreadable(t *testing.T) {
	for _, tc := range []struct {
		cond       string
		unreadable uint64
	}{
		{`$comm == "cat" && buf->dev->index == 5`, 0},
		{`buf->dev->index == 5 && $comm == "cat"`, 0},
		{`buf->dev->index == 5 && count == 6`, 0},
		{`buf->dev->index == 5 && $task->comm == "cat"`, 0},
		{`ubuf == "other" && buf->dev->index == 5`, 0},
		{`buf->dev->index == 5 && ubuf == "other"`, 1},
		{`buf->dev->index == 5 && buf->len == 7`, 1},
		{`buf->dev->index == 5 && buf->dev != NULL`, 0}, // what reads buf->dev can be read wherever the first can
		{`buf->len == 7 && buf->dev->index == 5`, 0},
		{`(count == 6 || return == 3) && buf->dev->index == 5`, 1}, // at entry
		{`(count == 6 || return == 3) && after(buf->dev->index) == 5`, 0},
		{`(buf->dev->index == 5 && count == 6) || count == 7`, 0},
		{`(buf->dev->index == 5 && (count == 6 || $pid == 1)) || count == 7`, 0},
		{`(count == 7 || (buf->dev->index == 5 && count == 6) || $pid == 1) && count > 5`, 0},
		{`!(!((count == 7 || (buf->dev->index == 5 && count == 8)) && buf->dev->index == 5) && count == 5)`, 0},
		{`(buf->dev->index == 5 && buf->len == 7) || count == 7`, 1},
		{`(buf->dev->index == 5 && count == 6) || return == 7`, 0},
		{`(after(buf->dev->index) == 5 && return == 6) || return == 7`, 0},
		{`$duration > 1s && after(buf->dev->index) == 5`, 0},
		{`after(buf->len) > *pos && after(buf->dev->index) == 5`, 0},
		{`after(buf->dev->index) == 5 && after(buf->len) > *pos`, 1},
		{`diff(*pos) && after(buf->dev->index) == 5`, 0},
		{`after(buf->dev->index) == 5 && diff(*pos)`, 1},
	} {
		t.Run(tc.cond, func(t *testing.T) {
			backEnds(t, func(t *testing.T, f compiler.Features) {
				r := newRig(t, f, compiler.Options{}, "read(count) if "+tc.cond)
				buf, text, pos := r.alloc(make([]byte, 64)), r.alloc([]byte("text\x00")), r.alloc(le(uint64(1)))
				r.do(call{args: []uint64{buf, text, 5, pos}, result: []uint64{0}})
				require.Empty(t, r.shown())
				require.Equal(t, tc.unreadable, r.counters(0).Unreadable)
			})
		})
	}
}

// So does one that needs what was kept of the entry, of what only the return knows.
func TestFalseOfBothSidesHidesUnreadable(t *testing.T) {
	for cond, unreadable := range map[string]uint64{
		"(dfd == 6 || return == NULL) && return->len == 5": 0,
		"return->len == 5 && (dfd == 6 || return == NULL)": 0,
		"(return->len == 5 || dfd == 5) && $duration > 1s": 0,
		"return->len == 5 && (path == NULL || dfd == 5)":   1,
	} {
		t.Run(cond, func(t *testing.T) {
			backEnds(t, func(t *testing.T, f compiler.Features) {
				r := newRig(t, f, compiler.Options{}, "open(dfd) if "+cond)
				r.do(call{fn: "open", args: []uint64{5, 0}, result: []uint64{16}})
				require.Empty(t, r.shown())
				require.Equal(t, unreadable, r.counters(0).Unreadable)
			})
		})
	}
}

// A value that cannot be read in an "or" that holds in spite of it does not count if
// something else is false.
func TestFalseAfterOr(t *testing.T) {
	const holds, unknown, deep = "(buf->dev->index == 5 || count == 5)", "(buf->dev->index == 5 || count == 6)", 11
	conds := map[string]uint64{
		holds + " && buf->len == 7":                                        0,
		holds + " && (buf->len == 7 || count == 6)":                        0,
		holds + " && (buf->len == 7 || " + unknown + ")":                   1,
		unknown + " && count == 5":                                         1,
		"count == 6 || " + holds + " && buf->len == 7":                     0,
		"buf->dev->index == 6 || " + holds + " && buf->len == 7":           1,
		holds + " && after(buf->len) == 7":                                 0,
		"(buf->dev->index == 5 || return == 0) && after(buf->len) == 7":    0,
		"(buf->dev->index == 5 || return == 0) && (count == 6 || return)":  0,
		"(count == 6 || return == 0) && (buf->dev->index == 5 || return)":  1,
		"(buf->len == 0 || return) && (buf->dev->index == 5 || return)":    1,
		"(" + holds + " && buf->len == 7) || return":                       0,
		"(" + unknown + " && buf->len == 0) || return":                     1,
		"(buf->len == 0 && " + holds + " && return == 0) && buf->len == 7": 0,
	}
	for nested, unreadable := range map[string]uint64{
		"(buf->dev->index == 6 || (" + holds + " && buf->len == 7))":          1,
		"(count == 6 || ((buf->len == 7 || buf->err == 7) && buf->len == 0))": 0,
	} {
		for range deep {
			conds[nested] = unreadable
			nested = "(buf->len == 7 || (buf->len == 0 && " + nested + "))"
		}
	}
	for cond, unreadable := range conds {
		t.Run(cond, func(t *testing.T) {
			backEnds(t, func(t *testing.T, f compiler.Features) {
				r := newRig(t, f, compiler.Options{}, "read(count) if "+cond)
				r.do(call{args: []uint64{r.alloc(make([]byte, 64)), 0, 5, 0}, result: []uint64{0}})
				require.Empty(t, r.shown())
				require.Equal(t, unreadable, r.counters(0).Unreadable)
			})
		})
	}
}

// The name of a thread is shown completely, even if MaxBytes is small.
func TestCommIsWhole(t *testing.T) {
	r := newRig(t, compilertest.WithTrampoline, compiler.Options{MaxBytes: 4}, "read($comm)")
	r.comm = "fifteen letters"
	r.do(call{args: []uint64{0, 0, 0, 0}})
	require.Equal(t, []string{`entry $comm="fifteen letters"`}, r.shown())
}

// If a string is too long to match completely, a failure in its first part
// still counts.
func TestGlobOfLongString(t *testing.T) {
	for text, want := range map[string][]string{
		`read(count) if ubuf ~ "y*"`:     {"entry count=5"},
		`read(count) if !(ubuf ~ "x*")`:  {"entry count=5"},
		`read(count) if ubuf ~ "x*"`:     nil,
		`read(count) if !(ubuf ~ "*x")`:  nil,
		`read(count) if !(ubuf ~ "y*")`:  nil,
		`read(count) if !(ubuf ~ "yyy")`: {"entry count=5"},
	} {
		r := newRig(t, compilertest.WithTrampoline, compiler.Options{}, text)
		long := r.alloc([]byte(strings.Repeat("y", 3000) + "\x00"))
		r.do(call{args: []uint64{0, long, 5, 0}})
		require.Equal(t, want, r.shown(), text)
	}
}

// A string of as many characters as can be matched is whole.
func TestGlobOfLongestString(t *testing.T) {
	shown := []string{"entry count=5"}
	for _, test := range []struct {
		spec string
		size int
		want []string
	}{
		{`read(count) if ubuf ~ "*x"`, 1019, shown},
		{`read(count) if ubuf ~ "*x"`, 1020, shown},
		{`read(count) if ubuf ~ "*x"`, 1021, nil},
		{`read(count) if !(ubuf ~ "*y")`, 1020, shown},
		{`read(count) if !(ubuf ~ "*y")`, 1021, nil},
		{`read(count) if ubuf ~ "x*"`, 1021, shown},
	} {
		r := newRig(t, compilertest.WithTrampoline, compiler.Options{}, test.spec)
		text := r.alloc([]byte(strings.Repeat("x", test.size) + "\x00"))
		r.do(call{args: []uint64{0, text, 5, 0}})
		require.Equal(t, test.want, r.shown(), "%s %d", test.spec, test.size)
	}
}

var (
	tPacked = &btf.Struct{Name: "packed", Size: 12, Members: []btf.Member{{Name: "a", Type: compilertest.Int}, {Name: "p", Type: compilertest.Ptr(compilertest.Dev), Offset: 32}}}
	tOdd    = &btf.Struct{Name: "odd", Size: 16, Members: []btf.Member{{Name: "packed", Type: tPacked}, {Name: "c", Type: compilertest.Int, Offset: 96}}}
	tFlex   = &btf.Struct{Name: "flex", Size: 8, Members: []btf.Member{
		{Name: "n", Type: compilertest.Long},
		{Name: "name", Type: &btf.Array{Index: compilertest.Uint, Type: compilertest.Char}, Offset: 64},
		{Name: "v", Type: &btf.Array{Index: compilertest.Uint, Type: compilertest.Int}, Offset: 64},
	}}
)

// A structure is passed in memory if a part of it at any depth is not aligned, as
// gcc does: the next argument is in the first register.
func TestPackedInRecord(t *testing.T) {
	for _, typ := range []*btf.Struct{tPacked, tOdd} {
		sig, err := resolve.Place(compilertest.Function("f", typ, compilertest.Param("o", typ), compilertest.Param("x", compilertest.Int)).Type.(*btf.FuncProto), compiler.AMD64)
		require.NoError(t, err)
		require.True(t, sig.Result.InMemory)
		require.Equal(t, int16(-1), sig.Params[0].Words[0].Reg)
		require.Equal(t, compiler.AMD64.ArgRegs[1], sig.Params[1].Words[0].Reg, "the first one has the address of the result")
	}
}

// The error for values to compare that loads do not reach says how many bytes all of
// them take.
func TestDiffsOutOfReach(t *testing.T) {
	wide := &btf.Struct{Name: "wide", Size: 1 << 14, Members: []btf.Member{{Name: "bytes", Type: &btf.Array{Index: compilertest.Uint, Type: compilertest.U8, Nelems: 1 << 14}}}}
	target := compilertest.NewTarget(t, compilertest.WithProbes, compilertest.Function("compared", &btf.Void{},
		compilertest.Param("a", compilertest.Ptr(wide)), compilertest.Param("b", compilertest.Ptr(wide)), compilertest.Param("c", compilertest.Ptr(compilertest.Long))))
	target.Symbols = nil
	options := compiler.Options{MaxBytes: 1 << 14, RingBytes: 1 << 20}
	_, err := generate([]*compiler.Probe{mustResolve(t, target, "compared(diff(*a), diff(*c))")}, options)
	require.NoError(t, err)
	_, err = generate([]*compiler.Probe{mustResolve(t, target, "compared(diff(*a), diff(*b), diff(*c))")}, options)
	require.ErrorContains(t, err, "the values of compared to compare take 32912 bytes, more than 32767\n")
}

// An array of characters without a length is read as the string that begins
// there.
func TestFlexibleText(t *testing.T) {
	target := compilertest.NewTarget(t, compilertest.WithProbes, compilertest.Function("flexible", &btf.Void{}, compilertest.Param("p", compilertest.Ptr(tFlex))))
	target.Symbols = nil
	for text, shown := range map[string]string{
		`flexible(p->name == "abc")`:                      `entry p->name="abc"`,
		`p flexible name=p->name:string if name == "abc"`: `entry name="abc"`,
	} {
		trace, err := kprobe.ParseAny(text)
		require.NoError(t, err)
		probe, err := resolve.One(trace, target)
		require.NoError(t, err)
		unit, err := generate([]*compiler.Probe{probe}, compiler.Options{RingBytes: 1 << 20})
		require.NoError(t, err)
		for name, want := range map[string][]string{"abc": {shown}, "abcd": nil} {
			r := withMachine(t, unit, compiler.AMD64)
			record := append(make([]byte, tFlex.Size), name+"\x00"...)
			r.do(call{args: []uint64{r.alloc(record)}})
			require.Equal(t, want, r.shown())
		}
	}
}

// Numbers are computed of bitfields as GCC does: what is declared with 64 bits is promoted,
// too. GCC's own results are wanted here.
func TestPromotedFields(t *testing.T) {
	fields := &btf.Struct{Name: "fields", Size: 16, Members: []btf.Member{
		{Name: "u2", Type: compilertest.Ulong, BitfieldSize: 2},
		{Name: "s7", Type: compilertest.Long, Offset: 2, BitfieldSize: 7},
		{Name: "u31", Type: compilertest.Ulong, Offset: 9, BitfieldSize: 31},
		{Name: "u32", Type: compilertest.Ulong, Offset: 64, BitfieldSize: 32},
		{Name: "s32", Type: compilertest.Long, Offset: 96, BitfieldSize: 32},
	}}
	params := []btf.FuncParam{compilertest.Param("p", compilertest.Ptr(fields)), compilertest.Param("n", compilertest.Int)}
	memory := le(uint64(1|0x7d<<2|0x7fffffff<<9), uint64(0xfffffffe|0xfffffffd<<32)) // u2 is 1, s7 and s32 -3, u32 -2
	const yes, no = true, false
	for text, want := range map[string]bool{
		"p->u2 - 3 < 0": yes, "p->u2 - 3 == n": yes, "n < p->u2": yes, "p->u2 * n < 0": yes, "p->u2 - 3 >> 1 == -1": yes,
		"p->u31 + 1 < 0": yes, "p->u31 + 1 > 0": no, "p->u31 << 1 == n": yes, "p->u31 > n": yes,
		"p->s7 < p->u2": yes, "p->s7 + p->u2 < 0": yes, "p->s7 == n - 1": yes,
		"p->u32 == n": yes, "p->u32 > p->u2": yes, "p->u32 + 3 == 1": yes, "p->u32 + 3 > 1": no, "p->s32 > p->u32": no, "p->s32 < p->u31": yes,
		"p->s32 - n == -1": yes, "p->s32 * p->s7 == 9": yes,
	} {
		backEnds(t, func(t *testing.T, f compiler.Features) {
			target := compilertest.NewTarget(t, f, compilertest.Function("fielded", &btf.Void{}, params...))
			target.Symbols = nil
			unit, err := generate([]*compiler.Probe{mustResolve(t, target, "fielded if "+text)}, compiler.Options{RingBytes: 1 << 20})
			require.NoError(t, err, text)
			r := withMachine(t, unit, compiler.AMD64)
			r.do(call{args: []uint64{r.alloc(memory), uint64(0xfffffffe)}}) // n is -2
			require.Equal(t, want, len(r.records) == 1, text)
		})
	}
}

// Values without a meaning are refused.
func TestRefusedValues(t *testing.T) {
	half := &btf.Struct{Name: "half", Size: 4, Members: []btf.Member{{Name: "v", Type: compilertest.Uint}}}
	five := &btf.Array{Index: compilertest.Uint, Type: compilertest.U8, Nelems: 5}
	halves := &btf.Struct{Name: "halves", Size: 24, Members: []btf.Member{{Name: "a", Type: half}, {Name: "b", Type: half, Offset: 32}, {Name: "c", Type: five, Offset: 96}}}
	for _, tc := range []struct{ spec, want string }{
		{"flexible(p->v)", "'p->v' is an array of unknown length"},
		{"flexible(s.name[0])", "'s.name[0]' lies behind an argument that is passed by value"},
		{"flexible(s.v[3] == 1)", "'s.v[3]' lies behind an argument that is passed by value"},
		{"flexible(halves.b)", "'halves.b' lies inside a word of an argument that is passed by value"},
		{"flexible(halves.c)", "'halves.c' lies across the words of an argument that is passed by value"},
		{`flexible(dev[1] == "0123456789")`, "'dev[1]' is struct dev, which is not compared with a string"},
		{"flexible(((struct timespec64)(void *)dev->alias).tv_sec)", "'(void *)dev->alias' is not in memory, so it cannot be looked at as struct timespec64"},
		{"flexible(((struct dev *)(u64)dev->index)->index)", "'(struct dev *)(u64)dev->index' is made of a number of fewer than 64 bits, and cannot be followed"},
	} {
		target := compilertest.NewTarget(t, compilertest.WithTrampoline, compilertest.Function("flexible", &btf.Void{}, compilertest.Param("p", compilertest.Ptr(tFlex)), compilertest.Param("s", tFlex), compilertest.Param("dev", compilertest.Ptr(compilertest.Dev)),
			compilertest.Param("halves", halves)))
		target.Symbols = nil
		trace, err := spec.Parse(tc.spec)
		require.NoError(t, err)
		_, err = resolve.One(trace, target)
		var refused *spec.Error
		require.ErrorAs(t, err, &refused, tc.spec)
		require.Equal(t, tc.want, refused.Msg)
	}
}

// A builtin that a cast takes for an address is the address that could not be read.
func TestBuiltinAsAddress(t *testing.T) {
	backEnds(t, func(t *testing.T, f compiler.Features) {
		r := newRig(t, f, compiler.Options{}, "read(*(u64 *)$cgroup)")
		r.do(call{args: []uint64{0, 0, 5, 0}})
		require.Len(t, r.records, 1)
		require.EqualValues(t, 4242, binary.LittleEndian.Uint64(r.records[0][r.unit.Events[0].Layout.Slots[0].Off:]))
	})
}
