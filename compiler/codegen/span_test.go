package codegen

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
)

// spanEnds runs a test with every attach kind, and with both ways to take an entry of
// the table.
func spanEnds(t *testing.T, test func(t *testing.T, f compiler.Features)) {
	for name, exchange := range map[string]bool{"exchange": true, "locks": false} {
		t.Run(name, func(t *testing.T) {
			backEnds(t, func(t *testing.T, f compiler.Features) {
				f.CompareExchange = exchange
				test(t, f)
			})
		})
	}
}

// begun returns the thread that began the span of a record, and the time.
func begun(unit *generator, rec []byte) (pidtid uint64, time uint64) {
	l := unit.Events[binary.LittleEndian.Uint32(rec)].Layout
	return word(rec[l.Begin+compiler.BeginPIDTID:][:8]), word(rec[l.Start:][:8])
}

func TestSpan(t *testing.T) {
	spanEnds(t, func(t *testing.T, f compiler.Features) {
		r := newRig(t, f, compiler.Options{CountCalls: true}, "send(buf->len, dev->name) if buf->err < 0 => free(buf->err, data) on buf")
		buf, bytes := bufAndDev(r.machine)
		other, _ := bufAndDev(r.machine)
		dev := binary.LittleEndian.Uint64(bytes[8:])
		send := func(buf uint64) { r.do(call{fn: "send", args: []uint64{dev, buf}}) }
		free := func(buf uint64) { r.do(call{fn: "free", args: []uint64{buf, 7}}) }

		// An end without a beginning is not an event.
		free(buf)
		require.Empty(t, r.shown())

		// The values are those of the beginning as they were then, and of the end.
		send(buf)
		send(other)
		pidtid := r.pidtid
		require.Empty(t, r.shown())
		binary.LittleEndian.PutUint32(bytes, 9)
		binary.LittleEndian.PutUint32(bytes[4:], 3)
		r.inOtherThread(func() { free(buf) })()
		require.Len(t, r.records, 1)
		who, _ := begun(r.unit, r.records[0])
		require.Equal(t, pidtid, who)
		require.Equal(t, []string{` buf->len=105 dev->name="eth0" buf->err=3 data=7`}, r.shown())
		require.Equal(t, compiler.Counters{Matched: 2, Open: 1}, r.counters(0))

		// It is over; and the condition of the beginning does not hold any more.
		free(buf)
		send(buf)
		free(buf)
		require.Empty(t, r.shown())

		// A later beginning with the same key replaces it.
		send(other)
		free(other)
		free(other)
		require.Len(t, r.shown(), 1)
		require.Equal(t, compiler.Counters{Filtered: 1, Matched: 3, Replaced: 1}, r.counters(0))
		require.Equal(t, compiler.Counters{Filtered: 4, Matched: 2}, r.counters(1))
	})
}

// TestSpanSides verifies that a point may be a return, and that the key may be another
// expression at each point.
func TestSpanSides(t *testing.T) {
	spanEnds(t, func(t *testing.T, f compiler.Features) {
		r := newRig(t, f, compiler.Options{}, "open(return->len) => send() on return == buf", "twice(a) => work(return) on $tid", "tp:tick(cpu) => tp:tick(cpu, $duration) on buf",
			"many(c, a * b) => many(return, $tid) on ($tid << 8 | $cpu + 3)")
		buf, _ := bufAndDev(r.machine)
		r.do(call{fn: "open", args: []uint64{1, 0}, result: []uint64{buf}})
		r.do(call{fn: "send", args: []uint64{0, buf}})
		require.Equal(t, []string{" return->len=105"}, r.shown())
		r.do(call{fn: "twice", args: []uint64{5}})
		r.inOtherThread(func() { r.do(call{fn: "work", args: []uint64{0, 0, 0}, result: []uint64{1}}) })()
		require.Empty(t, r.shown())
		r.do(call{fn: "work", args: []uint64{0, 0, 0}, result: []uint64{2}})
		require.Equal(t, []string{" a=5 return=2"}, r.shown())
		r.do(call{fn: "many", args: []uint64{6, 7, 3, 0, 0, 0, 0, 0}, result: []uint64{9}})
		require.Equal(t, []string{fmt.Sprintf(" c=3 a * b=42 return=9 $tid=%d", uint32(r.pidtid))}, r.shown())

		// The end runs before the beginning, and takes the one before.
		r.do(call{fn: "tick", args: []uint64{1, buf}})
		require.Empty(t, r.shown())
		r.time += 10
		r.do(call{fn: "tick", args: []uint64{2, buf}})
		r.do(call{fn: "tick", args: []uint64{3, buf}})
		lines := r.shown()
		require.Len(t, lines, 2)
		require.Regexp(t, `^ cpu=1 cpu=2 \$duration=\d+$`, lines[0])
		require.Regexp(t, `^ cpu=2 cpu=3 \$duration=\d+$`, lines[1])
	})
}

// TestSpanDuration verifies that a condition on the duration hides the event and
// ends the span.
func TestSpanDuration(t *testing.T) {
	spanEnds(t, func(t *testing.T, f compiler.Features) {
		r := newRig(t, f, compiler.Options{CountCalls: true}, "twice(a) => free($duration > 1us) if buf->len == 105 || $duration > 1ms on $tid")
		buf, _ := bufAndDev(r.machine)
		pass := func(ns uint64, buf uint64) {
			r.do(call{fn: "twice", args: []uint64{5}})
			r.time += ns
			r.do(call{fn: "free", args: []uint64{buf, 0}})
		}
		pass(0, buf)
		r.time += 1e9
		r.do(call{fn: "free", args: []uint64{buf, 0}})
		require.Empty(t, r.shown())
		pass(2000, buf)
		require.Len(t, r.shown(), 1)
		pass(2000, 0) // NULL cannot be read, and the duration does not hold
		require.Empty(t, r.shown())
		pass(2e6, 0)
		require.Len(t, r.shown(), 1)
		require.Equal(t, compiler.Counters{Matched: 4}, r.counters(0))
		require.Equal(t, compiler.Counters{Filtered: 3, Matched: 2, Unreadable: 1}, r.counters(1))
	})
}

// TestSpanProcesses verifies that the process of the beginning decides whether a span
// is traced.
func TestSpanProcesses(t *testing.T) {
	spanEnds(t, func(t *testing.T, f compiler.Features) {
		r := newRig(t, f, compiler.Options{PID: 8, Self: 9}, "twice(a) => work() on a == (int)$cpu", "twice(a) => work() on $cpu")
		for pid := uint64(7); pid < 10; pid++ {
			r.pidtid = pid<<32 | pid
			r.do(call{fn: "twice", args: []uint64{3}})
			r.pidtid = 1
			r.do(call{fn: "work", args: []uint64{0, 0, 0}})
			require.Len(t, r.shown(), map[uint64]int{8: 2}[pid])
		}
	})
}

// TestSpanStrings verifies that strings and structures of the beginning are kept.
func TestSpanStrings(t *testing.T) {
	spanEnds(t, func(t *testing.T, f compiler.Features) {
		r := newRig(t, f, compiler.Options{MaxBytes: 64}, `open(path) => free(buf, buf->dev->alias) on dfd == (int)data`)
		buf, _ := bufAndDev(r.machine)
		path := r.alloc([]byte("/etc/passwd\x00"))
		r.do(call{fn: "open", args: []uint64{4, path}, result: []uint64{0}})
		r.do(call{fn: "open", args: []uint64{5, 0}, result: []uint64{0}})
		r.do(call{fn: "free", args: []uint64{buf, 4}})
		r.do(call{fn: "free", args: []uint64{0, 5}})
		require.Equal(t, []string{
			` path="/etc/passwd" buf=64 bytes of 64 buf->dev->alias="uplink"`,
			` path=*fault(0x0) buf=*fault(0x0) buf->dev->alias=fault(0x0)`,
		}, r.shown())
	})
}

// TestSpanRoom verifies that beginnings that find no room are counted, and that those
// before them are kept.
func TestSpanRoom(t *testing.T) {
	for _, exchange := range []bool{true, false} {
		f := compilertest.WithTrampoline
		f.CompareExchange = exchange
		r := newRig(t, f, compiler.Options{CountCalls: true}, "twice(a) => work() on a == (int)$cpu")
		table := r.unit.spans[r.unit.Events[0].Probe.Span]
		var keys []uint64 // with the same first entry
		for k := uint64(0); len(keys) < waitWindow+5; k++ {
			if k*0x9E3779B97F4A7C15>>(64-table.bits) == 0 {
				keys = append(keys, k)
			}
		}
		for _, k := range keys {
			r.do(call{fn: "twice", args: []uint64{k}})
		}
		require.Equal(t, compiler.Counters{Matched: uint64(len(keys)), NoRoom: 5, Open: waitWindow}, r.counters(0))
		for i, k := range keys {
			r.cpu = uint32(k)
			r.do(call{fn: "work", args: []uint64{0, 0, 0}})
			want := 1
			if i >= waitWindow {
				want = 0
			}
			require.Len(t, r.shown(), want)
		}
		require.Equal(t, uint64(0), r.counters(0).Open)
	}
}

// TestSpanRaces verifies that a program that comes between any two instructions of
// another one, as in an interrupt or on another CPU, neither loses a beginning nor
// shows one twice, nor mixes the values of two.
func TestSpanRaces(t *testing.T) {
	for _, exchange := range []bool{true, false} {
		f := compilertest.WithTrampoline
		f.CompareExchange = exchange
		for _, main := range []string{"begin", "end"} {
			for _, other := range []string{"begin", "end", "begin and end", "end and begin", "other"} {
				for before := range 3 {
					t.Run(fmt.Sprintf("exchange %v, %s, %s, %d before", exchange, main, other, before), func(t *testing.T) {
						at := 0
						for going := true; going; {
							r := newRig(t, f, compiler.Options{CountCalls: true}, "many(b, c) => twice(a) on a")
							for range 40 { // what calls need of memory is not reused
								at++
								going = going && spanRace(t, r, main, other, before, at)
							}
						}
					})
				}
			}
		}
	}
}

// spanRace interrupts a program before its instruction number at. It returns false if
// the program has fewer instructions.
func spanRace(t *testing.T, r *rig, main, other string, before, at int) bool {
	begins, prior := uint64(0), r.counters(0)
	begin := func(key uint64) {
		begins++
		r.do(call{fn: "many", args: []uint64{key, begins, begins, 0, 0, 0, 0, 0}})
	}
	end := func(key uint64) { r.do(call{fn: "twice", args: []uint64{key}}) }
	for range before {
		begin(1)
	}
	happened := false
	r.interruptAt, r.interrupt = at, r.inOtherThread(func() {
		happened = true
		switch other {
		case "begin":
			begin(1)
		case "end":
			end(1)
		case "begin and end":
			begin(1)
			end(1)
		case "end and begin":
			end(1)
			begin(1)
		case "other":
			begin(2)
		}
	})
	if main == "begin" {
		begin(1)
	} else {
		end(1)
	}
	r.interrupt = nil
	for _, key := range []uint64{1, 1, 2} {
		end(key)
	}
	seen := map[uint64]bool{}
	for _, rec := range r.records {
		slots := r.unit.Events[binary.LittleEndian.Uint32(rec)].Layout.Slots
		b, c := word(rec[slots[0].Off:][:8]), word(rec[slots[1].Off:][:8])
		require.Equal(t, b, c, "at %d", at)
		require.False(t, seen[b], "at %d: twice", at)
		seen[b] = true
	}
	r.records = nil
	counts := r.counters(0)
	require.Zero(t, counts.Open, "at %d", at)
	require.Zero(t, counts.NoRoom)
	require.Equal(t, begins, uint64(len(seen))+counts.Replaced-prior.Replaced, "at %d: of %d", at, begins)
	require.Equal(t, begins, counts.Matched-prior.Matched)
	return happened
}
