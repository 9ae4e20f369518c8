package codegen

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// newTable returns a rig of specs with aggregates.
func newTable(t testing.TB, f compiler.Features, opts compiler.Options, specs ...string) *rig {
	r, err := measuredRig(t, f, opts, resolve.Wishes{}, compiler.NoMeasure, specs...)
	require.NoError(t, err)
	return r
}

// rows returns a table as text, sorted: the numbers and strings of each key, the
// calls, and the aggregates. Of two maps it is the one that counts.
func (r *rig) rows(table int) (rows []string) {
	l := r.unit.Tables[table]
	name := l.Maps[r.word(compiler.ControlTurn)]
	elements := r.hashes[name]
	if l.KeySize == 0 {
		elements = map[string]uint64{"": r.arrays[name]}
	}
	for key, at := range elements {
		b, err := r.at(at, uint64(l.Size))
		require.NoError(r.t, err)
		if word(b[:8]) == 0 {
			continue
		}
		probe := r.unit.Events[l.Events[0]].Probe
		var parts []string
		if l.Function >= 0 {
			probe = r.unit.Events[word([]byte(key[l.Function:][:8]))].Probe
			parts = append(parts, probe.Func.Name)
		}
		for i, v := range probe.Key {
			part := key[l.Key[i]:][:compiler.KeyRoom(v)]
			switch {
			case v.Base.Builtin == compiler.KernelStack:
				stack := b[l.Stacks[i]:]
				parts = append(parts, fmt.Sprintf("%x", stack[8:][:min(word(stack[:8]), stackBytes)]))
			case v.Scalar != nil && v.Text == compiler.NoText:
				parts = append(parts, fmt.Sprint(int64(word([]byte(part)))))
			case v.IsText():
				parts = append(parts, strings.TrimRight(part, "\x00")) // other bytes after the string would show
			default:
				parts = append(parts, fmt.Sprintf("%x", part))
			}
		}
		parts = append(parts, fmt.Sprintf("calls=%d", word(b[:8])))
		for i, a := range probe.Aggregates {
			parts = append(parts, a.Kind.String()+"="+cellText(a, l, b[l.Cells[i]:]))
		}
		rows = append(rows, strings.Join(parts, " "))
	}
	slices.Sort(rows)
	return rows
}

// cellText returns an aggregate as text.
func cellText(a *compiler.Aggregate, l *compiler.TableLayout, b []byte) string {
	sign := uint64(0)
	if a.Signed() {
		sign = 1 << 63
	}
	switch a.Kind {
	case compiler.Count:
		return fmt.Sprint(word(b[:8]))
	case compiler.Sum, compiler.Avg:
		return fmt.Sprint(int64(word(b[8:16])<<32 + word(b[:8])))
	case compiler.Min, compiler.Max:
		v := word(b[:8])
		for i := range l.Slots * compiler.Nesting {
			e := b[i*compiler.ExtremesSize:]
			if i == 0 {
				v = 0
			}
			if a.Kind == compiler.Max {
				v = max(v, word(e[compiler.ExtremesMost:][:8]))
			} else {
				v = max(v, word(e[compiler.ExtremesNotLeast:][:8]))
			}
		}
		if a.Kind == compiler.Min {
			v = ^v
		}
		return fmt.Sprint(int64(v ^ sign))
	}
	var buckets []string
	for i := range a.Buckets() {
		if n := binary.LittleEndian.Uint64(b[8*i:]); n > 0 {
			low, high := a.Edges(i)
			buckets = append(buckets, fmt.Sprintf("%d..%d:%d", int64(low), int64(high), n))
		}
	}
	return strings.Join(buckets, ",")
}

func TestTables(t *testing.T) {
	const unreadable = 1
	all := "count(), sum(X), avg(X), min(X), max(X)"
	of := func(value string) string { return strings.ReplaceAll(all, "X", value) }
	for _, tc := range []struct {
		spec   string
		counts []uint64 // values of count
		want   []string
	}{
		{"read(count())", []uint64{4, 5}, []string{"calls=2 count=2"}},
		{"read(count, count())", []uint64{4, 5, 4}, []string{"4 calls=2 count=2", "5 calls=1 count=1"}},
		{"read(" + of("count") + ")", []uint64{4, 0, 9}, []string{"calls=3 count=3 sum=13 avg=13 min=0 max=9"}},
		{"read(" + of("return") + ")", []uint64{4, math.MaxUint64 - 6, 9}, []string{"calls=3 count=3 sum=6 avg=6 min=-7 max=9"}},
		{"read((u8)count, sum(return)) if return > 4", []uint64{4, 0x105, 5, 6}, []string{"5 calls=2 sum=266", "6 calls=1 sum=6"}},
		{"read(count, max($duration)) if count > 4", []uint64{4, 5, 5}, []string{"5 calls=2 max=0"}},
		{"read(sum(count - return)) if return != 1", []uint64{4, 1}, []string{"calls=1 sum=0"}},
		{"read(hist(count))", []uint64{0, 1, 2, 3, 4, 1023, 1024, 1 << 63, math.MaxUint64}, []string{
			"calls=9 hist=0..0:1,1..1:1,2..3:2,4..7:1,512..1023:1,1024..2047:1,-9223372036854775808..-1:2"}},
		{"read(hist(return))", []uint64{0, math.MaxUint64, math.MaxUint64 - 1, 1 << 63, 1<<63 - 1}, []string{
			"calls=5 hist=0..0:1,4611686018427387904..9223372036854775807:1,-1..-1:1,-3..-2:1,-9223372036854775808..-9223372036854775808:1"}},
		{"read(lhist(count, 10, 20, 4))", []uint64{0, 9, 10, 13, 14, 18, 19, 20, 1 << 63}, []string{
			"calls=9 lhist=0..9:2,10..13:2,14..17:1,18..19:2,20..-1:2"}},
		{"read(lhist(return, -10, 10, 5))", []uint64{1 << 63, math.MaxUint64 - 10, math.MaxUint64 - 9, math.MaxUint64, 0, 9, 10}, []string{
			"calls=7 lhist=-9223372036854775808..-11:2,-10..-6:1,-5..-1:1,0..4:1,5..9:1,10..9223372036854775807:1"}},
		{"read($comm, $pid, count()) if return >= 0", []uint64{4, 5}, []string{"worker 7 calls=2 count=2"}},
		{"read(buf->dev->name, buf->dev->alias, buf->len, count())", []uint64{4, 4, 4}, []string{"eth0 uplink 105 calls=3 count=3"}},
		{"read((u8 *)buf->dev->name:ip4, count())", []uint64{4, 4}, []string{"6574683000000000 calls=2 count=2"}},
		{"read((u8 *)buf->dev->alias:ip4, count()) if return >= 0", []uint64{4, 4}, []string{"75706c6900000000 calls=2 count=2"}},
		{"read(buf->dev->name, buf->dev->alias, $comm, count()) if return >= 0", []uint64{4, 4}, []string{"eth0 uplink worker calls=2 count=2"}},
		{"read(buf->dev->alias, count()) if buf->dev->alias ~ \"up*\"", []uint64{4}, []string{"uplink calls=1 count=1"}},
	} {
		backEnds(t, func(t *testing.T, f compiler.Features) {
			r := newTable(t, f, compiler.Options{}, tc.spec)
			buf, _ := bufAndDev(r.machine)
			for _, v := range tc.counts {
				r.do(call{args: []uint64{buf, 0, v, 0}, result: []uint64{v}})
			}
			require.Equal(t, tc.want, r.rows(0), tc.spec)
			r.noCallsLeft(tc.spec)
		})
	}
	backEnds(t, func(t *testing.T, f compiler.Features) {
		r := newTable(t, f, compiler.Options{}, "read(buf->len, count())", "read(sum(buf->len))", "read(buf->dev->alias, count()) if return > 0")
		buf, _ := bufAndDev(r.machine)
		for _, b := range []uint64{buf, unreadable, buf} {
			r.do(call{args: []uint64{b, 0, 0, 0}, result: []uint64{1}})
		}
		require.Equal(t, []string{"105 calls=2 count=2"}, r.rows(0))
		require.Equal(t, []string{"calls=2 sum=210"}, r.rows(1))
		require.Equal(t, []string{"uplink calls=2 count=2"}, r.rows(2))
		for i, ev := range r.unit.Events {
			require.Equal(t, uint64(1), r.unit.Counters.Sum(ev.Number, compiler.CounterFaulted, r.word), "table %d", i)
			require.Equal(t, uint64(3), r.counters(ev.Number).Matched)
		}
	})
}

// TestLongKeys verifies that of a longer string the first 64 characters are in the key, and
// that it is longer.
func TestLongKeys(t *testing.T) {
	part := strings.Repeat("x", compiler.MostKeyPart)
	for _, s := range []string{"read(buf->dev->alias, count())", "read(buf->dev->alias, count()) if return >= 0"} {
		backEnds(t, func(t *testing.T, f compiler.Features) {
			r := newTable(t, f, compiler.Options{}, s)
			buf, b := bufAndDev(r.machine)
			dev, err := r.at(word(b[8:16]), 32)
			require.NoError(t, err)
			for _, rest := range []string{"", "a", "b", "aa", "bcd", "\x01", ""} {
				binary.LittleEndian.PutUint64(dev[24:], r.alloc([]byte(part+rest+"\x00")))
				r.do(call{args: []uint64{buf, 0, 5, 0}, result: []uint64{1}})
			}
			require.Equal(t, []string{part + "\x01 calls=5 count=5", part + " calls=2 count=2"}, r.rows(0), s)
		})
	}
}

// Calls that find no room for their key are counted; other keys are not disturbed.
func TestTableFull(t *testing.T) {
	backEnds(t, func(t *testing.T, f compiler.Features) {
		r := newTable(t, f, compiler.Options{Keys: 2}, "read(count, count())")
		for i := range 9 {
			r.do(call{args: []uint64{0, 0, uint64(i % 3), 0}, result: []uint64{0}})
		}
		require.Equal(t, []string{"0 calls=3 count=3", "1 calls=3 count=3"}, r.rows(0))
		require.Equal(t, uint64(3), r.unit.Counters.Sum(0, compiler.CounterFull, r.word))
	})
}

// A call that interrupts another, at any of its instructions, is counted, and so is the
// other.
func TestTableInInterrupts(t *testing.T) {
	for _, f := range []compiler.Features{compilertest.WithTrampoline, compilertest.WithoutFuncArg} {
		for at := 1; at < 400; at++ {
			r := newTable(t, f, compiler.Options{}, "read((u8)count, min(count), max(count), sum(count))")
			r.interruptAt, r.interrupt = at, func() { r.do(call{args: []uint64{0, 0, 0x205, 0}, result: []uint64{0}}) }
			r.do(call{args: []uint64{0, 0, 0x105, 0}, result: []uint64{0}})
			if r.interrupt != nil {
				require.Greater(t, at, 50)
				break
			}
			require.Equal(t, []string{"5 calls=2 min=261 max=517 sum=778"}, r.rows(0), "interrupted at %d", at)
		}
	}
}

// TestTableRead verifies that a reading at any instruction of a call finds all of it or not
// the call, so that the calls of a row change last.
func TestTableRead(t *testing.T) {
	for _, f := range []compiler.Features{compilertest.WithTrampoline, compilertest.WithoutFuncArg} {
		for at := 1; at < 400; at++ {
			r := newTable(t, f, compiler.Options{}, "read((u8)count, sum(count), max(count), hist(count), lhist(count, 0, 9, 3))")
			r.interruptAt, r.interrupt = at, func() {
				for _, row := range r.rows(0) {
					require.Equal(t, "5 calls=1 sum=261 max=261 hist=256..511:1 lhist=9..-1:1", row, "at %d", at)
				}
			}
			r.do(call{args: []uint64{0, 0, 0x105, 0}, result: []uint64{0}})
			if r.interrupt != nil {
				require.Greater(t, at, 50)
				break
			}
			require.Len(t, r.rows(0), 1)
		}
	}
}

// takeTurns makes calls be counted in the map with this index.
func (r *rig) takeTurns(turn uint64) {
	b, err := r.at(r.arrays[compiler.CountersMap]+compiler.ControlTurn, 8)
	require.NoError(r.t, err)
	binary.LittleEndian.PutUint64(b, turn)
}

// TestTableTurns verifies that calls are counted in the map whose turn it is, in all kinds
// of tables.
func TestTableTurns(t *testing.T) {
	const cells = "count(), sum(count), min(count), max(count)"
	for _, spec := range []string{
		"read(" + cells + ")", "read($comm, " + cells + ")", "read($comm, $kstack, " + cells + ")",
		"read(" + cells + ") if return > 0", "read($comm, " + cells + `) if $comm ~ "w*"`,
	} {
		backEnds(t, func(t *testing.T, f compiler.Features) {
			r := newTable(t, f, compiler.Options{ClearTables: true}, spec)
			for i := range uint64(9) {
				r.takeTurns(i % 2)
				r.do(call{args: []uint64{0, 0, i, 0}, result: []uint64{1}})
			}
			for turn, want := range []string{"calls=5 count=5 sum=20 min=0 max=8", "calls=4 count=4 sum=16 min=1 max=7"} {
				r.takeTurns(uint64(turn))
				rows := r.rows(0)
				require.Len(t, rows, 1)
				require.Regexp(t, want+"$", rows[0], spec)
			}
		})
	}
}

// TestTableTurnMeanwhile verifies that a call is counted wholly in one of the maps, at
// whatever instruction the other one gets its turn.
func TestTableTurnMeanwhile(t *testing.T) {
	const whole = "5 calls=1 count=1 sum=261 max=261 hist=256..511:1"
	for _, f := range []compiler.Features{compilertest.WithTrampoline, compilertest.WithoutFuncArg} {
		turns := map[uint64]int{}
		for at := 1; at < 400; at++ {
			r := newTable(t, f, compiler.Options{ClearTables: true}, "read((u8)count, count(), sum(count), max(count), hist(count))")
			r.interruptAt, r.interrupt = at, func() { r.takeTurns(1) }
			r.do(call{args: []uint64{0, 0, 0x105, 0}, result: []uint64{0}})
			if r.interrupt != nil {
				break
			}
			for turn := range uint64(2) {
				r.takeTurns(turn)
				if rows := r.rows(0); len(rows) > 0 {
					require.Equal(t, []string{whole}, rows, "at %d", at)
					turns[turn]++
				}
			}
			require.Equal(t, at, turns[0]+turns[1])
		}
		require.Greater(t, turns[0], 40)
		require.Greater(t, turns[1], 5)
	}
}

func TestAggregatesRefused(t *testing.T) {
	for spec, want := range map[string]string{
		"read(sum(buf))":                                    "'buf' is a pointer to struct buf, and numbers are counted: name what it points to\n  read(sum(buf))\n           ^^^",
		"read(max($comm))":                                  "'$comm' is an array of 16 bytes, and numbers are counted",
		"read(lhist(count, 5, 5, 1))":                       "the upper bound of the histogram, 5, is not above the lower bound, 5\n  read(lhist(count, 5, 5, 1))\n                       ^",
		"read(lhist(return, 5, -5, 1))":                     "the upper bound of the histogram, -5, is not above the lower bound, 5",
		"read(lhist(count, 0, 5, 0))":                       "the step of the histogram is 0\n  read(lhist(count, 0, 5, 0))\n                          ^",
		"read(lhist(return, 0, 5, -1))":                     "the step of the histogram is negative",
		"read(lhist(count, -1, 5, 1))":                      "-1 does not fit 'count', which is size_t (long unsigned int) and holds 0 to 18446744073709551615",
		"read(lhist((u8)count, 0, 257, 1))":                 "257 does not fit '(u8)count'",
		"read(lhist(count, 0, 1M, 1))":                      "the histogram would have 1048576 buckets, and 1000 is the limit",
		"read(lhist(count, 0, 1ms, 1))":                     "'count' is size_t (long unsigned int), not a duration",
		"huge(*big, count())":                               "'*big' has 9000 bytes, and a part of the key has at most 64: name a part of it",
		"read(buf->dev->alias, ubuf, (char *)pos, count())": "the key has 216 bytes with '(char *)pos', and 200 is the limit: name fewer values\n  read(buf->dev->alias, ubuf, (char *)pos, count())\n                              ^^^^^^^^^^^",
		"read(count(), sum(count), avg(count), min(count), max(count), hist(count), sum(return), min(return), max(return))": "a spec has at most 8 aggregates",
		"read(count(), $comm, count())":   "count() is there twice: leave one out\n  read(count(), $comm, count())\n                       ^^^^^",
		"read(diff(buf->stamp), count())": "what differs is shown of each call, and cannot be a part of the key\n  read(diff(buf->stamp), count())\n       ^^^^^^^^^^^^^^^^",
		"read(sum(diff(buf->stamp)))":     "what differs is shown of each call, and cannot be counted\n  read(sum(diff(buf->stamp)))\n           ^^^^^^^^^^^^^^^^\n  write the difference: sum(after(buf->stamp) - buf->stamp)",
		"do_exit(count(), sum(return))":   "do_exit returns void",
		"tp:tick(max($duration))":         "tick is a tracepoint, which takes no time",
	} {
		_, err := measuredRig(t, compilertest.WithProbes, compiler.Options{}, resolve.Wishes{}, compiler.NoMeasure, spec)
		require.ErrorContains(t, err, want, spec)
	}
	_, err := measuredRig(t, compilertest.WithProbes, compiler.Options{}, resolve.Wishes{Chain: true}, compiler.NoMeasure, "send", "work(count())")
	require.ErrorContains(t, err, "the calls of a chain are shown one by one, and count() counts calls")
}

// globTarget returns a target with functions of some types, which are called gx_a, gx_b and
// so on.
func globTarget(t *testing.T, f compiler.Features, functions ...[]btf.Type) *compiler.Target {
	var types []btf.Type
	symbols := compilertest.Symbols
	for n, args := range functions {
		name := "gx_" + string(rune('a'+n))
		var params []btf.FuncParam
		for i, arg := range args {
			params = append(params, compilertest.Param(string(rune('u'+i)), arg))
		}
		types = append(types, compilertest.Function(name, compilertest.Int, params...))
		symbols += fmt.Sprintf("ffffffff8100%d000 T %s\n", n+2, name)
	}
	target := compilertest.NewTarget(t, f, types...)
	var err error
	target.Symbols, err = kallsyms.Read(strings.NewReader(symbols), nil)
	require.NoError(t, err)
	return target
}

// TestTableOfGlob verifies that calls with one key are in one row where a part of the key
// is a text in one function and a number in another.
func TestTableOfGlob(t *testing.T) {
	text := compilertest.Ptr(compilertest.Char)
	for _, f := range []compiler.Features{compilertest.WithTrampoline, compilertest.WithProbes, compilertest.WithMulti} {
		for _, s := range []string{`gx_*(u, count()) if v ~ "a*"`, `gx_*(u, count())`} {
			target := globTarget(t, f, []btf.Type{text, text}, []btf.Type{compilertest.Int, text})
			r := newRigOn(t, target, compiler.Options{}, resolve.Wishes{}, s)
			for _, c := range []string{"b", "c", "b"} {
				long := r.alloc([]byte("a" + strings.Repeat(c, 60) + "\x00"))
				r.do(call{fn: "gx_b", args: []uint64{5, long}, result: []uint64{0}})
			}
			require.Equal(t, []string{"gx_b 5 calls=3 count=3"}, r.rows(0), s)
		}
	}
}

// TestKeyOfGlob verifies that the key of a glob is limited, as each function has its text in
// another place.
func TestKeyOfGlob(t *testing.T) {
	text, number := compilertest.Ptr(compilertest.Char), compilertest.Int
	target := globTarget(t, compilertest.WithTrampoline, []btf.Type{text, text, number, number}, []btf.Type{number, number, text, text})
	trace, err := spec.Parse("gx_*(u, v, w, x, count())")
	require.NoError(t, err)
	plan, err := resolve.All([]*spec.Trace{trace}, target, resolve.Wishes{})
	require.NoError(t, err)
	require.Len(t, plan.Probes, 2)
	_, err = Compile(plan.Probes, compiler.Options{})
	require.ErrorContains(t, err, "the key of all functions has 296 bytes, and 208 is the limit")
}

// TestRepeatedKey verifies that a value has one part of the key, also where it is a pointer
// in some functions of a glob.
func TestRepeatedKey(t *testing.T) {
	target := globTarget(t, compilertest.WithTrampoline, []btf.Type{compilertest.Ptr(compilertest.Dev)}, []btf.Type{compilertest.Int})
	for _, s := range []string{"gx_*(u != 0, u != 1, count())", "gx_a(u, u, count())"} {
		r := newRigOn(t, target, compiler.Options{}, resolve.Wishes{}, s)
		for _, ev := range r.unit.Events {
			require.Len(t, ev.Probe.Key, 1)
		}
	}
}
