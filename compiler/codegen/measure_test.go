package codegen

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
)

// measuredRig returns a rig whose traces are all measured with m.
func measuredRig(t testing.TB, f compiler.Features, opts compiler.Options, w resolve.Wishes, m compiler.Measure, specs ...string) (*rig, error) {
	target := compilertest.NewTarget(t, f)
	w.Measures = map[*spec.Trace]compiler.Measure{}
	var traces []*spec.Trace
	for _, s := range specs {
		trace, err := kprobe.ParseAny(s)
		require.NoError(t, err)
		w.Measures[trace] = m
		traces = append(traces, trace)
	}
	plan, err := resolve.All(traces, target, w)
	if err != nil {
		return nil, err
	}
	opts.RingBytes = 4096
	unit, err := generate(plan.Probes, opts)
	require.NoError(t, err)
	for name, ps := range unit.Collection.Programs {
		requireReachable(t, name, ps.Instructions)
		if m != compiler.NoMeasure {
			require.NotContains(t, fmt.Sprint(ps.Instructions), "RingbufReserve")
		}
	}
	return withMachine(t, unit, compiler.AMD64), nil
}

func newMeasured(t testing.TB, f compiler.Features, m compiler.Measure, specs ...string) *rig {
	r, err := measuredRig(t, f, compiler.Options{}, resolve.Wishes{}, m, specs...)
	require.NoError(t, err)
	return r
}

// firstCall returns what is stored of the first call of an event, or nil.
func (r *rig) firstCall(event int) *compiler.FirstCall {
	at, ok := r.hashes[compiler.FirstMap][string(le(uint32(event)))]
	if !ok {
		return nil
	}
	var first compiler.FirstCall
	r.decode64(at, compiler.FirstSize, &first)
	return &first
}

// decode64 decodes words of memory.
func (r *rig) decode64(addr, size uint64, into any) {
	b, err := r.at(addr, size)
	require.NoError(r.t, err)
	require.NoError(r.t, binary.Read(bytes.NewReader(b), binary.LittleEndian, into))
}

// samples returns what is stored of the values of a probe.
func (r *rig) samples(element int) (s compiler.Samples, positive, negative compiler.Histogram) {
	size := uint64(r.maps[compiler.ValuesMap].ValueSize)
	at := r.arrays[compiler.ValuesMap] + uint64(element)*size
	r.decode64(at, compiler.SamplesSize, &s)
	r.decode64(at+compiler.SamplesSize, compiler.HistogramSize, &positive)
	if size > compiler.SamplesSize+compiler.HistogramSize {
		r.decode64(at+compiler.SamplesSize+compiler.HistogramSize, compiler.HistogramSize, &negative)
	}
	return s, positive, negative
}

func (r *rig) changes(element int) (c compiler.ChangeCounts) {
	r.decode64(r.arrays[compiler.ChangesMap]+uint64(element*compiler.ChangesSize), compiler.ChangesSize, &c)
	return c
}

func TestMeasureCalls(t *testing.T) {
	const count, result = 5, math.MaxUint64 - 10 // -11
	for _, tc := range []struct {
		spec     string
		matched  bool
		first    string // name of the value stored of the first call
		value    uint64
		programs int // if entry and return are separate programs
	}{
		{"read", true, "", 0, 1},
		{"read(count)", true, "count", count, 1},
		{"read(count > 4, pos)", true, "count", count, 1},
		{"read(count > 5)", false, "count", 0, 1},
		{"read(buf, count)", true, "buf", 0, 1},
		{"read(buf->len == 0, count)", false, "buf->len", 0, 1},
		{"read(count, return)", true, "return", result, 1},
		{"read(return < 0)", true, "return", result, 1},
		{"read(count) if return < 0", true, "return", result, 1},
		{"read(return:x8 != 0)", true, "return", 0xf5, 1},
		{"read(return == 0, count)", false, "return", 0, 1},
		{"read(count == 5, return)", true, "return", result, 2},
		{"read(count == 5, return == 3)", false, "return", 0, 2},
		{"read(count == 6, return < 0)", false, "return", 0, 2},
		{"read(count) if $duration < 1s", true, "count", count, 2},
		{"read($duration)", true, "$duration", 0, 2},
		{"read if count == 5", true, "count", count, 1},
		{"read($comm)", true, "", 0, 1},
		{"p read n=$arg3", true, "n", count, 1},
		{"r read n=$arg3 if n == 5", true, "n", count, 2},
		{"r read $retval", true, "arg1", result, 1},
	} {
		backEnds(t, func(t *testing.T, f compiler.Features) {
			r := newMeasured(t, f, compiler.Calls, tc.spec)
			require.Len(t, r.unit.Events, 1, tc.spec)
			if len(r.unit.Attachments) != 1 || r.unit.Attachments[0].Kind != compiler.KprobeSession {
				wanted := tc.programs
				if f.Trampoline && tc.programs == 2 && len(r.unit.stashes) == 0 {
					wanted = 1 // an fexit has the arguments
				}
				require.Len(t, r.unit.Attachments, wanted, tc.spec)
			}
			for i := range 3 {
				r.time++
				r.do(call{args: []uint64{0, 0, count, 0}, result: []uint64{result}})
				if tc.matched {
					require.Equal(t, compiler.Counters{Matched: uint64(i) + 1}, r.matched(0), tc.spec)
				} else {
					require.Equal(t, compiler.Counters{Filtered: uint64(i) + 1}, r.matched(0), tc.spec)
				}
			}
			require.Empty(t, r.records)
			first := r.unit.Events[0].Probe.First
			if tc.first == "" {
				require.Nil(t, first, tc.spec)
			} else {
				require.Equal(t, tc.first, first.Name, tc.spec)
			}
			if !tc.matched {
				require.Nil(t, r.firstCall(0), tc.spec)
				return
			}
			want := &compiler.FirstCall{Time: 1001, Value: tc.value}
			if first != nil {
				want.Read = 1
			}
			require.Equal(t, want, r.firstCall(0), tc.spec)
			r.noCallsLeft(tc.spec)
		})
	}
}

// matched returns the counters of an event except for faults.
func (r *rig) matched(event int) compiler.Counters {
	c := r.counters(event)
	c.Unreadable = 0
	return c
}

func (r *rig) noCallsLeft(message string) {
	require.Zero(r.t, r.keptCalls(), message)
}

// If another CPU has stored the first call, a CPU does not try again.
func TestMeasureFirstTaken(t *testing.T) {
	backEnds(t, func(t *testing.T, f compiler.Features) {
		r := newMeasured(t, f, compiler.Calls, "read(count)")
		r.hashes[compiler.FirstMap][string(le(uint32(0)))] = r.alloc(make([]byte, compiler.FirstSize))
		r.do(call{args: []uint64{0, 0, 5, 0}, result: []uint64{0}})
		clear(r.hashes[compiler.FirstMap])
		r.do(call{args: []uint64{0, 0, 6, 0}, result: []uint64{0}})
		require.Nil(t, r.firstCall(0))
		require.Equal(t, compiler.Counters{Matched: 2}, r.counters(0))
	})
}

func TestMeasureDurations(t *testing.T) {
	for _, s := range []string{"read", "read(count)", "read(count == 5)", "read(return < 9)", "read(count == 5, return < 9)", "p read", "r read", "read(buf->len == 105)"} {
		backEnds(t, func(t *testing.T, f compiler.Features) {
			r := newMeasured(t, f, compiler.Durations, s)
			buf, _ := bufAndDev(r.machine)
			for _, d := range []uint64{100, 0, 7, 40} {
				leave := r.enter(call{args: []uint64{buf, 0, 5, 0}, result: []uint64{1}})
				r.time += d
				leave()
			}
			require.Equal(t, compiler.Counters{Matched: 4}, r.counters(0), s)
			got, histogram, _ := r.samples(0)
			require.Equal(t, compiler.Samples{Low: 147, Extremes: [compiler.Nesting]compiler.Extremes{{Most: 100, NotLeast: ^uint64(0)}}}, got, s)
			var want compiler.Histogram
			for _, d := range []uint64{100, 0, 7, 40} {
				want.Add(d)
			}
			require.Equal(t, want, histogram)
			r.noCallsLeft(s)
		})
	}
}

func TestMeasureValues(t *testing.T) {
	const unreadable = 1
	for _, tc := range []struct {
		spec   string
		values []uint64 // values of count, or of the result
		least  int64
		most   int64
		signed bool
	}{
		{"read(count)", []uint64{4, 0, 4096, 1 << 63, math.MaxUint64}, 0, -1, false},
		{"read(count > 3)", []uint64{4, 4, 5}, 4, 5, false},
		{"read(count) if return >= 0", []uint64{4, 4, 5}, 4, 5, false},
		{"read(return)", []uint64{4, 1 << 63, math.MaxUint64, 1<<63 - 1}, math.MinInt64, math.MaxInt64, true},
		{"read(return) if count >= 1", []uint64{4, math.MaxUint64 - 4}, -5, 4, true},
		{"read(return) if count >= 2", []uint64{1 << 31, 1<<63 - 1<<31, math.MaxUint64 - 1<<31, 1<<63 + 1<<31}, -1<<63 + 1<<31, 1<<63 - 1<<31, true},
		{"r read $retval:s64", []uint64{4, math.MaxUint64 - 4}, -5, 4, true},
		{"read(return:u8)", []uint64{0x104, 0x105}, 4, 5, false},
	} {
		backEnds(t, func(t *testing.T, f compiler.Features) {
			r := newMeasured(t, f, compiler.Values, tc.spec)
			var want compiler.Samples
			var positive, negative compiler.Histogram
			for _, v := range tc.values {
				r.do(call{args: []uint64{0, 0, v, 0}, result: []uint64{v}})
				if tc.spec == "read(return:u8)" {
					v &= 0xff
				}
				if tc.signed {
					want.Low += uint64(int64(int32(v)))
					want.High += uint64((int64(v)>>31 + 1) >> 1)
				} else {
					want.Low += v & math.MaxUint32
					want.High += v >> 32
				}
				if tc.signed && int64(v) < 0 {
					negative.Add(-v)
				} else {
					positive.Add(v)
				}
			}
			matched := uint64(len(tc.values))
			if tc.spec == "read(count) if return >= 0" {
				require.Equal(t, Paired(r), true)
			}
			require.Equal(t, compiler.Counters{Matched: matched}, r.counters(0), tc.spec)
			got, gotPositive, gotNegative := r.samples(0)
			sign := uint64(0)
			if tc.signed {
				sign = 1 << 63
			}
			want.Extremes[0] = compiler.Extremes{Most: uint64(tc.most) ^ sign, NotLeast: ^(uint64(tc.least) ^ sign)}
			require.Equal(t, want, got, tc.spec)
			require.Equal(t, positive, gotPositive, tc.spec)
			require.Equal(t, negative, gotNegative, tc.spec)
			r.noCallsLeft(tc.spec)
		})
	}
	backEnds(t, func(t *testing.T, f compiler.Features) {
		r := newMeasured(t, f, compiler.Values, "read(buf->len)")
		buf, _ := bufAndDev(r.machine)
		for _, b := range []uint64{buf, unreadable, buf} {
			r.do(call{args: []uint64{b, 0, 0, 0}, result: []uint64{0}})
		}
		got, histogram, _ := r.samples(0)
		require.Equal(t, uint64(1), got.Faulted)
		require.Equal(t, uint64(210), got.Low)
		require.Equal(t, uint64(2), histogram.Samples())
		require.Equal(t, compiler.Counters{Matched: 3}, r.counters(0))
	})
}

// Paired reports whether the only event has both sides.
func Paired(r *rig) bool { return r.unit.Events[0].Kind == compiler.CallEvent }

// If an interrupt comes while a program changes the extremes, those of the
// interrupt are stored separately.
func TestExtremesInInterrupts(t *testing.T) {
	r := newMeasured(t, compilertest.WithTrampoline, compiler.Values, "read(count)")
	busy, err := r.at(r.arrays[compiler.ValuesMap]+compiler.SamplesExtremes, compiler.Nesting*compiler.ExtremesSize)
	require.NoError(t, err)
	for i := range compiler.Nesting + 1 { // one more than there is room for
		r.do(call{args: []uint64{0, 0, 10 + uint64(i), 0}, result: []uint64{0}})
		if i < compiler.Nesting {
			busy[i*compiler.ExtremesSize] = 1
		}
	}
	got, histogram, _ := r.samples(0)
	for i, e := range got.Extremes {
		require.Equal(t, compiler.Extremes{Busy: 1, Most: 10 + uint64(i), NotLeast: ^(10 + uint64(i))}, e)
	}
	require.Equal(t, uint64(compiler.Nesting+1), histogram.Samples())
}

func TestMeasureChanges(t *testing.T) {
	write := func(off int, v byte) func(b []byte) { return func(b []byte) { b[off] = v } }
	nothing := func([]byte) {}
	for _, tc := range []struct {
		spec   string
		during func(buf []byte)
		want   compiler.ChangeCounts
	}{
		{"read(buf->len)", nothing, compiler.ChangeCounts{Unchanged: 1}},
		{"read(buf->len)", write(0, 9), compiler.ChangeCounts{Changed: 1}},
		{"read(buf->len)", write(4, 9), compiler.ChangeCounts{Unchanged: 1}},
		{"read(buf->len == 105)", write(0, 9), compiler.ChangeCounts{Changed: 1}},
		{"read(buf->len) if return == 3", write(0, 9), compiler.ChangeCounts{Changed: 1}},
		{"read(buf->len) if return == 4", write(0, 9), compiler.ChangeCounts{}},
		{"read(count == 5, buf->len)", write(0, 9), compiler.ChangeCounts{Changed: 1}},
		{"read(buf->type)", write(16, 0b1111_0001), compiler.ChangeCounts{Changed: 1}},
		{"read(buf->type)", write(16, 0b0000_0101), compiler.ChangeCounts{Unchanged: 1}},
		{"read(buf->dev)", nothing, compiler.ChangeCounts{Unchanged: 1}},
		{"read(buf->dev)", write(8, 9), compiler.ChangeCounts{Changed: 1}},
		{"read(buf->dev->index)", nothing, compiler.ChangeCounts{Unchanged: 1}},
		{"read(buf->dev->index)", write(15, 0), compiler.ChangeCounts{Faulted: 1}}, // dev is no longer a kernel address
		{"read(buf->stamp)", nothing, compiler.ChangeCounts{Unchanged: 1}},
		{"read(buf->stamp)", write(40+15, 9), compiler.ChangeCounts{Changed: 1}},
		{"read(buf->stamp)", write(39, 9), compiler.ChangeCounts{Unchanged: 1}},
		{"read(buf)", nothing, compiler.ChangeCounts{Unchanged: 1}},
		{"read(buf)", write(63, 9), compiler.ChangeCounts{Changed: 1}},
		{"read(*buf)", write(63, 9), compiler.ChangeCounts{Changed: 1}},
		{"read(*pos)", nothing, compiler.ChangeCounts{Faulted: 1}},
		{"p read +0(%di):u32", write(0, 9), compiler.ChangeCounts{Changed: 1}},
		{"p read +4(%di):u32", write(0, 9), compiler.ChangeCounts{Unchanged: 1}},
	} {
		backEnds(t, func(t *testing.T, f compiler.Features) {
			r := newMeasured(t, f, compiler.Changes, tc.spec)
			buf, bytes := bufAndDev(r.machine)
			r.do(call{args: []uint64{buf, 0, 5, 0}, result: []uint64{3}, during: func() { tc.during(bytes) }})
			require.Equal(t, tc.want, r.changes(0), tc.spec)
			c := r.matched(0)
			require.Equal(t, tc.want.Changed+tc.want.Unchanged+tc.want.Faulted, c.Matched, tc.spec)
			require.Equal(t, uint64(1), c.Matched+c.Filtered, tc.spec)
			r.noCallsLeft(tc.spec)
		})
	}
}

// A call without room is counted as such and not as a call or a match. The same
// holds for a return without an entry, as of a call that began before the probe
// was attached.
func TestMeasuredWithoutRoom(t *testing.T) {
	backEnds(t, func(t *testing.T, f compiler.Features) {
		for _, m := range []compiler.Measure{compiler.Durations, compiler.Changes} {
			r := newMeasured(t, f, m, "read(buf->len)")
			r.maps[overflowMap].MaxEntries = 1
			buf, _ := bufAndDev(r.machine)
			read := call{args: []uint64{buf, 0, 5, 0}, result: []uint64{0}}
			r.nest(read, r.inOtherThread(r.nest(read)))()
			c := r.counters(0)
			require.Equal(t, compiler.Counters{Matched: 1, NoRoom: 1}, compiler.Counters{Matched: c.Matched, NoRoom: c.NoRoom, Filtered: c.Filtered})
			leave := r.enter(read)
			r.free(r.task)
			leave()
			require.Equal(t, uint64(1), r.counters(0).Matched)
		}
	})
}

// A unit may have measured probes and others: each event gets its own results.
func TestMeasuresMixed(t *testing.T) {
	backEnds(t, func(t *testing.T, f compiler.Features) {
		target := compilertest.NewTarget(t, f)
		w := resolve.Wishes{Measures: map[*spec.Trace]compiler.Measure{}}
		var traces []*spec.Trace
		for _, s := range []struct {
			text string
			m    compiler.Measure
		}{
			{"read(count)", compiler.NoMeasure}, {"read(count)", compiler.Values}, {"read(buf->len)", compiler.Changes}, {"work(return)", compiler.Values},
			{"read(return)", compiler.NoMeasure}, {"read", compiler.Durations}, {"read(count > 5)", compiler.Calls}, {"work(mode)", compiler.NoMeasure},
		} {
			trace, err := spec.Parse(s.text)
			require.NoError(t, err)
			w.Measures[trace] = s.m
			traces = append(traces, trace)
		}
		plan, err := resolve.All(traces, target, w)
		require.NoError(t, err)
		unit, err := generate(plan.Probes, compiler.Options{RingBytes: 4096})
		require.NoError(t, err)
		r := withMachine(t, unit, compiler.AMD64)
		for _, count := range []uint64{5, 7} {
			leave := r.enter(call{fn: "read", args: []uint64{0, 0, count, 0}, result: []uint64{9}})
			r.time += 50
			leave()
		}
		r.do(call{fn: "work", args: []uint64{1, 0, 0}, result: []uint64{math.MaxUint64}})
		require.ElementsMatch(t, []string{"entry count=5", "return return=9", "entry count=7", "return return=9", "entry mode=1"}, r.shown())
		for i, matched := range []uint64{2, 2, 2, 1, 2, 2, 1, 1} {
			require.Equal(t, matched, r.counters(i).Matched, traces[i].Text)
		}
		sums := map[compiler.Measure][]uint64{}
		for _, p := range unit.Probes() {
			if p.Measure == compiler.Values || p.Measure == compiler.Durations {
				s, _, _ := r.samples(unit.Element(p))
				sums[p.Measure] = append(sums[p.Measure], s.High<<32+s.Low)
			}
		}
		require.Equal(t, map[compiler.Measure][]uint64{compiler.Values: {12, math.MaxUint64}, compiler.Durations: {100}}, sums)
		require.Equal(t, compiler.ChangeCounts{Faulted: 2}, r.changes(0))
	})
}

// Histograms of very many functions would need too much memory.
func TestTooManyHistograms(t *testing.T) {
	target := compilertest.NewTarget(t, compilertest.WithProbes)
	trace, err := spec.Parse("read")
	require.NoError(t, err)
	plan, err := resolve.All([]*spec.Trace{trace}, target, resolve.Wishes{Measures: map[*spec.Trace]compiler.Measure{trace: compiler.Durations}})
	require.NoError(t, err)
	probes := make([]*compiler.Probe, mostHistograms+1)
	for i := range probes {
		p := *plan.Probes[0]
		probes[i] = &p
	}
	_, err = Compile(probes, compiler.Options{RingBytes: 4096})
	require.EqualError(t, err, "4097 functions would have a histogram each, and 4096 is the limit: name fewer")
}

// Measures that a spec cannot have are refused.
func TestMeasuresRefused(t *testing.T) {
	for _, tc := range []struct {
		m          compiler.Measure
		spec, want string
	}{
		{compiler.Values, "read", "the values of an item are to be measured, and the spec has none"},
		{compiler.Values, "read(buf)", "'buf' is a pointer to struct buf, and numbers are counted: name what it points to"},
		{compiler.Values, "read(buf->stamp)", "'buf->stamp' is struct timespec64, and numbers are counted"},
		{compiler.Values, "read($comm)", "'$comm' is an array of 16 bytes, and numbers are counted"},
		{compiler.Changes, "read", "the changes of an item are to be measured, and the spec has none"},
		{compiler.Changes, "read(count)", "'count' is passed by value, and no call can change it"},
		{compiler.Changes, "read(return)", "'return' is not known before the return, and cannot be compared with what it was"},
		{compiler.Changes, "read($cpu)", "'$cpu' is not memory that a call can change"},
		{compiler.Changes, "open(path)", "'path' is passed by value, and no call can change it"},
		{compiler.Changes, "huge(big)", "'big' has 9000 bytes, and at most 256 can be compared: name a part of it\n  huge(big)\n       ^^^"},
		{compiler.Changes, "do_exit(code)", "do_exit never returns, so that there are no changes to measure"},
		{compiler.Durations, "do_exit", "do_exit never returns, so that there are no durations to measure"},
		{compiler.Durations, "tp:tick", "tick is a tracepoint, which has no return, so that there are no durations to measure"},
		{compiler.Durations, "p read+8", "a place inside of read has no return, so that there are no durations to measure"},
	} {
		_, err := measuredRig(t, compilertest.WithProbes, compiler.Options{}, resolve.Wishes{}, tc.m, tc.spec)
		require.ErrorContains(t, err, tc.want, tc.spec)
	}
	_, err := measuredRig(t, compilertest.WithProbes, compiler.Options{}, resolve.Wishes{Chain: true}, compiler.Durations, "send", "work")
	require.ErrorContains(t, err, "the calls of a chain can be counted, but no durations can be measured")
}

// Calls of ksnoop itself, and of processes that are not traced, are not
// counted, even if they are rejected.
func TestMeasuredProcesses(t *testing.T) {
	for _, s := range []string{"read(count == 5)", "read(return == 5)", "read(count == 5, return == 5)", "read(buf->len == 1)"} {
		for _, opts := range []compiler.Options{{Self: 7}, {PID: 8}, {TID: 9}, {PID: 8, Self: 7}} {
			backEnds(t, func(t *testing.T, f compiler.Features) {
				r, err := measuredRig(t, f, opts, resolve.Wishes{}, compiler.Calls, s)
				require.NoError(t, err)
				for _, count := range []uint64{4, 5} {
					r.do(call{args: []uint64{0, 0, count, 0}, result: []uint64{count}})
				}
				require.Equal(t, compiler.Counters{}, r.counters(0), "%s %+v", s, opts)
				r.pidtid = 8<<32 | 9
				for _, count := range []uint64{4, 5} {
					r.do(call{args: []uint64{0, 0, count, 0}, result: []uint64{count}})
				}
				c := r.counters(0)
				require.Equal(t, uint64(2), c.Filtered+c.Matched, "%s %+v", s, opts)
			})
		}
	}
}

// A chain counts the calls of its last function that are inside calls of the
// others.
func TestMeasureChain(t *testing.T) {
	all := []string{"send", "work", "open"}
	for _, tc := range []struct {
		name              string
		specs             []string
		calls             func(r *rig) func()
		filtered, matched uint64
	}{
		{"complete", all, func(r *rig) func() {
			return r.nest(stackSend(0), r.nest(stackWork(1), r.nest(stackOpen(3)), r.nest(stackOpen(4))), r.nest(stackOpen(5)))
		}, 1, 2},
		{"incomplete", all, func(r *rig) func() { return r.nest(stackSend(0), r.nest(stackWork(1))) }, 0, 0},
		{"a level left out", all, func(r *rig) func() { return r.nest(stackSend(0), r.nest(stackOpen(3))) }, 1, 0},
		{"recursion", all, func(r *rig) func() {
			return r.nest(stackSend(0), r.nest(stackSend(1), r.nest(stackWork(1), r.nest(stackOpen(3), r.nest(stackOpen(4))))))
		}, 0, 2},
		{"outer predicates", []string{"send", "work(mode == RESUME)", "open"}, func(r *rig) func() {
			return r.nest(stackSend(0), r.nest(stackWork(0), r.nest(stackOpen(3))), r.nest(stackWork(1), r.nest(stackOpen(3))))
		}, 1, 1},
		{"outer return predicates are for the events", []string{"send", "work(return == 9)", "open"}, func(r *rig) func() {
			return r.nest(stackSend(0), r.nest(stackWork(1), r.nest(stackOpen(3))))
		}, 0, 1},
		{"a predicate", []string{"send", "work", "open(dfd == 4)"}, func(r *rig) func() {
			return r.nest(stackSend(0), r.nest(stackWork(1), r.nest(stackOpen(3)), r.nest(stackOpen(4))))
		}, 1, 1},
		{"a predicate at return", []string{"send", "work(return == 1)"}, func(r *rig) func() {
			return r.nest(stackSend(0), r.nest(stackWork(0)), r.nest(stackWork(1)))
		}, 1, 1},
		{"both sides", []string{"send", "work if mode == 1 || return == 0"}, func(r *rig) func() {
			return r.nest(stackSend(0), r.nest(stackWork(0)), r.nest(stackWork(1)))
		}, 0, 2},
		{"one function twice", []string{"work", "work"}, func(r *rig) func() {
			return r.nest(stackWork(1), r.nest(stackWork(2)))
		}, 1, 1},
		{"an interrupt", all, func(r *rig) func() {
			return r.nest(stackSend(0), r.nest(stackWork(1), r.onOtherStack(r.nest(stackOpen(3)))))
		}, 1, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			backEnds(t, func(t *testing.T, f compiler.Features) {
				r, err := measuredRig(t, f, compiler.Options{}, resolve.Wishes{Chain: true}, compiler.Calls, tc.specs...)
				require.NoError(t, err)
				require.Len(t, r.unit.Events, 1)
				for i := range uint64(2) {
					tc.calls(r)()
					require.Equal(t, compiler.Counters{Filtered: tc.filtered * (i + 1), Matched: tc.matched * (i + 1)}, r.counters(0))
					r.noCallsLeft("all calls have returned")
				}
				require.Equal(t, tc.matched > 0, r.firstCall(0) != nil)
			})
		})
	}
}

// TestFirstOfAddress verifies that the value that is kept of the first call is not a part of an
// address.
func TestFirstOfAddress(t *testing.T) {
	for spec, want := range map[string]string{
		`read(buf->stamp:ip6 == "::1")`: "", `read(buf->stamp:ip6 == "::1", count)`: "count", `read(return) if buf->dev:ip4 == "1.2.3.4"`: "return",
	} {
		r, err := measuredRig(t, compilertest.WithProbes, compiler.Options{}, resolve.Wishes{}, compiler.Durations, spec)
		require.NoError(t, err)
		first := ""
		if v := r.unit.Events[0].Probe.First; v != nil {
			first = v.Name
		}
		require.Equal(t, want, first, spec)
	}
}
