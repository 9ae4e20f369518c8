package compiler

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
)

// measured is a rig whose traces are measured, each in its way.
func measuredRig(t testing.TB, f Features, opts Options, w Wishes, m Measure, specs ...string) (*rig, error) {
	target := newTarget(t, f)
	w.Measures = map[*spec.Trace]Measure{}
	var traces []*spec.Trace
	for _, s := range specs {
		trace, err := kprobe.ParseAny(s)
		require.NoError(t, err)
		w.Measures[trace] = m
		traces = append(traces, trace)
	}
	plan, err := ResolveAll(traces, target, w)
	if err != nil {
		return nil, err
	}
	opts.Arch, opts.Features, opts.RingBytes = target.Arch, f, 4096
	unit, err := Compile(plan.Probes, opts)
	require.NoError(t, err)
	for name, ps := range unit.Collection.Programs {
		requireReachable(t, name, ps.Instructions)
		if m != NoMeasure {
			require.NotContains(t, fmt.Sprint(ps.Instructions), "RingbufReserve")
		}
	}
	return withMachine(t, unit, AMD64), nil
}

func newMeasured(t testing.TB, f Features, m Measure, specs ...string) *rig {
	r, err := measuredRig(t, f, Options{}, Wishes{}, m, specs...)
	require.NoError(t, err)
	return r
}

// firstCall is what is kept of the first call of an event; nil: none was.
func (r *rig) firstCall(event int) *FirstCall {
	at, ok := r.hashes[FirstMap][string(le(uint32(event)))]
	if !ok {
		return nil
	}
	var first FirstCall
	r.decode64(at, firstSize, &first)
	return &first
}

// decode64 reads words of memory.
func (r *rig) decode64(addr, size uint64, into any) {
	b, err := r.at(addr, size)
	require.NoError(r.t, err)
	require.NoError(r.t, binary.Read(bytes.NewReader(b), binary.LittleEndian, into))
}

// samples is what is kept of the values of a probe.
func (r *rig) samples(element int) (s Samples, positive, negative Histogram) {
	size := uint64(r.maps[ValuesMap].ValueSize)
	at := r.arrays[ValuesMap] + uint64(element)*size
	r.decode64(at, samplesSize, &s)
	r.decode64(at+samplesSize, histogramSize, &positive)
	if size > samplesSize+histogramSize {
		r.decode64(at+samplesSize+histogramSize, histogramSize, &negative)
	}
	return s, positive, negative
}

func (r *rig) changes(element int) (c ChangeCounts) {
	r.decode64(r.arrays[ChangesMap]+uint64(element*changesSize), changesSize, &c)
	return c
}

func TestMeasureCalls(t *testing.T) {
	const count, result = 5, math.MaxUint64 - 10 // -11
	for _, tc := range []struct {
		spec     string
		matched  bool
		first    string // what is kept of the first call, and its value
		value    uint64
		programs int // with two sides that are not one program
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
		backEnds(t, func(t *testing.T, f Features) {
			r := newMeasured(t, f, Calls, tc.spec)
			require.Len(t, r.unit.Events, 1, tc.spec)
			if len(r.unit.Attachments) != 1 || r.unit.Attachments[0].Kind != Session {
				wanted := tc.programs
				if f == withTrampoline && tc.programs == 2 && len(r.hashes) == 1 {
					wanted = 1 // an fexit has the arguments
				}
				require.Len(t, r.unit.Attachments, wanted, tc.spec)
			}
			for i := range 3 {
				r.time++
				r.do(call{args: []uint64{0, 0, count, 0}, result: []uint64{result}})
				if tc.matched {
					require.Equal(t, Counters{Matched: uint64(i) + 1}, r.matched(0), tc.spec)
				} else {
					require.Equal(t, Counters{Filtered: uint64(i) + 1}, r.matched(0), tc.spec)
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
			want := &FirstCall{Time: 1001, Value: tc.value}
			if first != nil {
				want.Read = 1
			}
			require.Equal(t, want, r.firstCall(0), tc.spec)
			r.noCallsLeft(tc.spec)
		})
	}
}

// matched is what is counted of an event, but for faults.
func (r *rig) matched(event int) Counters {
	c := r.counters(event)
	c.Unreadable = 0
	return c
}

func (r *rig) noCallsLeft(message string) {
	for name, calls := range r.hashes {
		if name != FirstMap {
			require.Empty(r.t, calls, "%s: %s", name, message)
		}
	}
}

func TestMeasureDurations(t *testing.T) {
	for _, s := range []string{"read", "read(count)", "read(count == 5)", "read(return < 9)", "read(count == 5, return < 9)", "p read", "r read", "read(buf->len == 105)"} {
		backEnds(t, func(t *testing.T, f Features) {
			r := newMeasured(t, f, Durations, s)
			buf, _ := bufAndDev(r.machine)
			for _, d := range []uint64{100, 0, 7, 40} {
				leave := r.enter(call{args: []uint64{buf, 0, 5, 0}, result: []uint64{1}})
				r.time += d
				leave()
			}
			require.Equal(t, Counters{Matched: 4}, r.counters(0), s)
			got, histogram, _ := r.samples(0)
			require.Equal(t, Samples{Low: 147, Extremes: [nesting]Extremes{{Most: 100, NotLeast: ^uint64(0)}}}, got, s)
			var want Histogram
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
		values []uint64 // of count, or of the result
		least  int64
		most   int64
		signed bool
	}{
		{"read(count)", []uint64{4, 0, 4096, 1 << 63, math.MaxUint64}, 0, -1, false},
		{"read(count > 3)", []uint64{4, 4, 5}, 4, 5, false},
		{"read(count) if return >= 0", []uint64{4, 4, 5}, 4, 5, false},
		{"read(return)", []uint64{4, 1 << 63, math.MaxUint64, 1<<63 - 1}, math.MinInt64, math.MaxInt64, true},
		{"read(return) if count >= 1", []uint64{4, math.MaxUint64 - 4}, -5, 4, true},
		{"r read $retval:s64", []uint64{4, math.MaxUint64 - 4}, -5, 4, true},
		{"read(return:u8)", []uint64{0x104, 0x105}, 4, 5, false},
	} {
		backEnds(t, func(t *testing.T, f Features) {
			r := newMeasured(t, f, Values, tc.spec)
			var want Samples
			var positive, negative Histogram
			for _, v := range tc.values {
				r.do(call{args: []uint64{0, 0, v, 0}, result: []uint64{v}})
				if tc.spec == "read(return:u8)" {
					v &= 0xff
				}
				want.Low += v & math.MaxUint32
				if tc.signed {
					want.High += uint64(int64(v) >> 32)
				} else {
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
			require.Equal(t, Counters{Matched: matched}, r.counters(0), tc.spec)
			got, gotPositive, gotNegative := r.samples(0)
			sign := uint64(0)
			if tc.signed {
				sign = 1 << 63
			}
			want.Extremes[0] = Extremes{Most: uint64(tc.most) ^ sign, NotLeast: ^(uint64(tc.least) ^ sign)}
			require.Equal(t, want, got, tc.spec)
			require.Equal(t, positive, gotPositive, tc.spec)
			require.Equal(t, negative, gotNegative, tc.spec)
			r.noCallsLeft(tc.spec)
		})
	}
	backEnds(t, func(t *testing.T, f Features) {
		r := newMeasured(t, f, Values, "read(buf->len)")
		buf, _ := bufAndDev(r.machine)
		for _, b := range []uint64{buf, unreadable, buf} {
			r.do(call{args: []uint64{b, 0, 0, 0}, result: []uint64{0}})
		}
		got, histogram, _ := r.samples(0)
		require.Equal(t, uint64(1), got.Unread)
		require.Equal(t, uint64(210), got.Low)
		require.Equal(t, uint64(2), histogram.Samples())
		require.Equal(t, Counters{Matched: 3}, r.counters(0))
	})
}

// Paired says whether the only event joins both sides.
func Paired(r *rig) bool { return r.unit.Events[0].Kind == CallEvent }

// A program that is interrupted while it changes the extremes: those of the
// interrupt are kept beside its own.
func TestExtremesInInterrupts(t *testing.T) {
	r := newMeasured(t, withTrampoline, Values, "read(count)")
	busy, err := r.at(r.arrays[ValuesMap]+samplesExtremes, nesting*extremesSize)
	require.NoError(t, err)
	for i := range nesting + 1 { // one more than there is room for
		r.do(call{args: []uint64{0, 0, 10 + uint64(i), 0}, result: []uint64{0}})
		if i < nesting {
			busy[i*extremesSize] = 1
		}
	}
	got, histogram, _ := r.samples(0)
	for i, e := range got.Extremes {
		require.Equal(t, Extremes{Busy: 1, Most: 10 + uint64(i), NotLeast: ^(10 + uint64(i))}, e)
	}
	require.Equal(t, uint64(nesting+1), histogram.Samples())
}

func TestMeasureChanges(t *testing.T) {
	write := func(off int, v byte) func(b []byte) { return func(b []byte) { b[off] = v } }
	nothing := func([]byte) {}
	for _, tc := range []struct {
		spec   string
		during func(buf []byte)
		want   ChangeCounts
	}{
		{"read(buf->len)", nothing, ChangeCounts{Unchanged: 1}},
		{"read(buf->len)", write(0, 9), ChangeCounts{Changed: 1}},
		{"read(buf->len)", write(4, 9), ChangeCounts{Unchanged: 1}},
		{"read(buf->len == 105)", write(0, 9), ChangeCounts{Changed: 1}},
		{"read(buf->len) if return == 3", write(0, 9), ChangeCounts{Changed: 1}},
		{"read(buf->len) if return == 4", write(0, 9), ChangeCounts{}},
		{"read(count == 5, buf->len)", write(0, 9), ChangeCounts{Changed: 1}},
		{"read(buf->type)", write(16, 0b1111_0001), ChangeCounts{Changed: 1}},
		{"read(buf->type)", write(16, 0b0000_0101), ChangeCounts{Unchanged: 1}},
		{"read(buf->dev)", nothing, ChangeCounts{Unchanged: 1}},
		{"read(buf->dev)", write(8, 9), ChangeCounts{Changed: 1}},
		{"read(buf->dev->index)", nothing, ChangeCounts{Unchanged: 1}},
		{"read(buf->dev->index)", write(15, 0), ChangeCounts{Unread: 1}}, // dev is no kernel address then
		{"read(buf->stamp)", nothing, ChangeCounts{Unchanged: 1}},
		{"read(buf->stamp)", write(40+15, 9), ChangeCounts{Changed: 1}},
		{"read(buf->stamp)", write(39, 9), ChangeCounts{Unchanged: 1}},
		{"read(buf)", nothing, ChangeCounts{Unchanged: 1}},
		{"read(buf)", write(63, 9), ChangeCounts{Changed: 1}},
		{"read(*buf)", write(63, 9), ChangeCounts{Changed: 1}},
		{"read(*pos)", nothing, ChangeCounts{Unread: 1}},
		{"p read +0(%di):u32", write(0, 9), ChangeCounts{Changed: 1}},
		{"p read +4(%di):u32", write(0, 9), ChangeCounts{Unchanged: 1}},
	} {
		backEnds(t, func(t *testing.T, f Features) {
			r := newMeasured(t, f, Changes, tc.spec)
			buf, bytes := bufAndDev(r.machine)
			r.do(call{args: []uint64{buf, 0, 5, 0}, result: []uint64{3}, during: func() { tc.during(bytes) }})
			require.Equal(t, tc.want, r.changes(0), tc.spec)
			c := r.matched(0)
			require.Equal(t, tc.want.Changed+tc.want.Unchanged+tc.want.Unread, c.Matched, tc.spec)
			require.Equal(t, uint64(1), c.Matched+c.Filtered, tc.spec)
			r.noCallsLeft(tc.spec)
		})
	}
}

// A call that there is no room for is neither called nor matched, and counted as
// such; so is a return without an entry, as of a call that began before the
// probe was attached.
func TestMeasuredWithoutRoom(t *testing.T) {
	backEnds(t, func(t *testing.T, f Features) {
		for _, m := range []Measure{Durations, Changes} {
			r := newMeasured(t, f, m, "read(buf->len)")
			for name := range r.hashes {
				if name != FirstMap {
					r.maps[name].MaxEntries = 1
				}
			}
			buf, _ := bufAndDev(r.machine)
			read := call{args: []uint64{buf, 0, 5, 0}, result: []uint64{0}}
			r.nest(read, r.nest(read))()
			c := r.counters(0)
			require.Equal(t, Counters{Matched: 1, NoRoom: 1}, Counters{Matched: c.Matched, NoRoom: c.NoRoom, Filtered: c.Filtered})
			leave := r.enter(read)
			for name, calls := range r.hashes {
				if name != FirstMap {
					clear(calls)
				}
			}
			leave()
			require.Equal(t, uint64(1), r.counters(0).Matched)
		}
	})
}

// Measured probes and others in one unit: each event has what is its own.
func TestMeasuresMixed(t *testing.T) {
	backEnds(t, func(t *testing.T, f Features) {
		target := newTarget(t, f)
		w := Wishes{Measures: map[*spec.Trace]Measure{}}
		var traces []*spec.Trace
		for _, s := range []struct {
			text string
			m    Measure
		}{
			{"read(count)", NoMeasure}, {"read(count)", Values}, {"read(buf->len)", Changes}, {"work(return)", Values},
			{"read(return)", NoMeasure}, {"read", Durations}, {"read(count > 5)", Calls}, {"work(mode)", NoMeasure},
		} {
			trace, err := spec.Parse(s.text)
			require.NoError(t, err)
			w.Measures[trace] = s.m
			traces = append(traces, trace)
		}
		plan, err := ResolveAll(traces, target, w)
		require.NoError(t, err)
		unit, err := Compile(plan.Probes, Options{Arch: target.Arch, Features: f, RingBytes: 4096})
		require.NoError(t, err)
		r := withMachine(t, unit, AMD64)
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
		sums := map[Measure][]uint64{}
		for _, p := range unit.Probes() {
			if p.Measure == Values || p.Measure == Durations {
				s, _, _ := r.samples(unit.Element(p))
				sums[p.Measure] = append(sums[p.Measure], s.High<<32+s.Low)
			}
		}
		require.Equal(t, map[Measure][]uint64{Values: {12, math.MaxUint64}, Durations: {100}}, sums)
		require.Equal(t, ChangeCounts{Unread: 2}, r.changes(0))
	})
}

// Histograms of very many functions would take all the memory there is.
func TestTooManyHistograms(t *testing.T) {
	target := newTarget(t, withProbes)
	trace, err := spec.Parse("read")
	require.NoError(t, err)
	plan, err := ResolveAll([]*spec.Trace{trace}, target, Wishes{Measures: map[*spec.Trace]Measure{trace: Durations}})
	require.NoError(t, err)
	probes := make([]*Probe, mostHistograms+1)
	for i := range probes {
		p := *plan.Probes[0]
		probes[i] = &p
	}
	_, err = Compile(probes, Options{Arch: target.Arch, RingBytes: 4096})
	require.EqualError(t, err, "4097 functions would have a histogram each, and 4096 is the limit: name fewer")
}

// Measures that a spec cannot have.
func TestMeasuresRefused(t *testing.T) {
	for _, tc := range []struct {
		m          Measure
		spec, want string
	}{
		{Values, "read", "the values of an item are to be measured, and the spec has none"},
		{Values, "read(buf)", "'buf' is a pointer to struct buf, and numbers are counted: name what it points to"},
		{Values, "read(buf->stamp)", "'buf->stamp' is struct timespec64, and numbers are counted"},
		{Values, "read($comm)", "'$comm' is an array of 16 bytes, and numbers are counted"},
		{Changes, "read", "the changes of an item are to be measured, and the spec has none"},
		{Changes, "read(count)", "'count' is passed by value, and no call can change it"},
		{Changes, "read(return)", "'return' is not known before the return, and cannot be compared with what it was"},
		{Changes, "read($cpu)", "'$cpu' is no memory that a call could change"},
		{Changes, "open(path)", "'path' is passed by value, and no call can change it"},
		{Changes, "huge(big)", "'big' has more bytes than can be compared: name a part of it"},
		{Changes, "do_exit(code)", "do_exit never returns, so that there are no changes to measure"},
		{Durations, "do_exit", "do_exit never returns, so that there are no durations to measure"},
		{Durations, "tp:tick", "tick is a tracepoint, which has no return, so that there are no durations to measure"},
		{Durations, "p read+8", "a place inside of read has no return, so that there are no durations to measure"},
	} {
		_, err := measuredRig(t, withProbes, Options{}, Wishes{}, tc.m, tc.spec)
		require.ErrorContains(t, err, tc.want, tc.spec)
	}
	_, err := measuredRig(t, withProbes, Options{}, Wishes{Stack: true}, Durations, "send", "work")
	require.ErrorContains(t, err, "of a stack the calls can be counted, but no durations measured")
}

// Calls of ksnoop itself, and of processes that are left out, do not count, even
// if they are rejected.
func TestMeasuredProcesses(t *testing.T) {
	for _, s := range []string{"read(count == 5)", "read(return == 5)", "read(count == 5, return == 5)", "read(buf->len == 1)"} {
		for _, opts := range []Options{{Self: 7}, {PID: 8}, {TID: 9}, {PID: 8, Self: 7}} {
			backEnds(t, func(t *testing.T, f Features) {
				r, err := measuredRig(t, f, opts, Wishes{}, Calls, s)
				require.NoError(t, err)
				for _, count := range []uint64{4, 5} {
					r.do(call{args: []uint64{0, 0, count, 0}, result: []uint64{count}})
				}
				require.Equal(t, Counters{}, r.counters(0), "%s %+v", s, opts)
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

// A chain counts the calls of its last function that are inside of the others.
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
			backEnds(t, func(t *testing.T, f Features) {
				r, err := measuredRig(t, f, Options{}, Wishes{Stack: true}, Calls, tc.specs...)
				require.NoError(t, err)
				require.Len(t, r.unit.Events, 1)
				for i := range uint64(2) {
					tc.calls(r)()
					require.Equal(t, Counters{Filtered: tc.filtered * (i + 1), Matched: tc.matched * (i + 1)}, r.counters(0))
					r.noCallsLeft("all calls have returned")
				}
				require.Equal(t, tc.matched > 0, r.firstCall(0) != nil)
			})
		})
	}
}
