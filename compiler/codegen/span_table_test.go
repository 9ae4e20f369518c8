package codegen

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/resolve"
)

// TestSpanTables verifies that spans are counted by what both points have.
func TestSpanTables(t *testing.T) {
	spanEnds(t, func(t *testing.T, f compiler.Features) {
		r := newRig(t, f, compiler.Options{},
			"send(buf->len, dev->name, sum(buf->err)) => free(data, count(), hist($duration)) on buf",
			"send(buf->dev->alias) => free(lhist($duration, 0, 10us, 1us)) if $duration > 1us on buf",
			"send(max(buf->err)) => free() on buf")
		buf, bytes := bufAndDev(r.machine)
		dev := binary.LittleEndian.Uint64(bytes[8:])
		pass := func(err int32, ns, data uint64) {
			binary.LittleEndian.PutUint32(bytes[4:], uint32(err))
			r.do(call{fn: "send", args: []uint64{dev, buf}})
			binary.LittleEndian.PutUint32(bytes[4:], 77)
			r.time += ns
			r.do(call{fn: "free", args: []uint64{buf, data}})
		}
		free := func() { r.do(call{fn: "free", args: []uint64{buf, 7}}) }
		free() // no beginning
		pass(-3, 2000, 7)
		pass(5, 2000, 7)
		pass(6, 5000, 8)
		free()
		r.do(call{fn: "send", args: []uint64{dev, 0}}) // NULL cannot be read
		r.time += 2000
		r.do(call{fn: "free", args: []uint64{0, 7}})
		require.Empty(t, r.records)
		require.Equal(t, []string{
			"105 eth0 7 calls=2 sum=2 count=2 hist=1024..2047:2",
			"105 eth0 8 calls=1 sum=6 count=1 hist=4096..8191:1",
		}, r.rows(0))
		require.Equal(t, []string{"uplink calls=3 lhist=2000..2999:2,5000..5999:1"}, r.rows(1))
		require.Equal(t, []string{"calls=3 max=6"}, r.rows(2))
		for i, ev := range r.unit.Events {
			if ev.Kind == compiler.SpanEvent {
				require.Equal(t, uint64(1), r.unit.Counters.Sum(i, compiler.CounterFaulted, r.word), "event %d", i)
			}
			require.Zero(t, r.counters(i).Open)
		}
	})
}

// TestSpanTableStacks verifies that the stacks of a key are those at the beginning, and
// that spans whose stack has no number are counted as in no row.
func TestSpanTableStacks(t *testing.T) {
	spanEnds(t, func(t *testing.T, f compiler.Features) {
		r := newRig(t, f, compiler.Options{}, "twice(a, $kstack) => work(why, count()) on $tid")
		pass := func(stack uint64, a, b uint64) {
			r.machine.stack = stack
			r.do(call{fn: "twice", args: []uint64{a}})
			r.machine.stack = 99
			r.do(call{fn: "work", args: []uint64{0, b, 0}})
		}
		pass(3, 5, 6)
		pass(3, 5, 6)
		pass(4, 5, 6)
		pass(^uint64(16), 5, 6) // -EEXIST
		l := r.unit.Tables[0]
		require.Equal(t, []int{0, 8, 24}, l.Key)
		calls := map[uint64]uint64{}
		for key, at := range r.hashes[l.Maps[0]] {
			row, err := r.at(at, uint64(l.Size))
			require.NoError(t, err)
			calls[word([]byte(key[8:16]))] = word(row[:8])
			require.Equal(t, uint64(16), word(row[l.Stacks[1]:][:8]))
			require.Equal(t, uint64(0xffff_ffff_8100_0120), word(row[l.Stacks[1]+16:][:8]))
		}
		require.Equal(t, map[uint64]uint64{3: 2, 4: 1}, calls)
		require.Equal(t, uint64(1), r.unit.Counters.Sum(1, compiler.CounterFull, r.word))
		require.Equal(t, compiler.Counters{Matched: 4}, r.counters(0))
	})
}

// TestSpanFrame verifies that the stack frame of a program has room for a span with the
// largest key, many aggregates and many conditions.
func TestSpanFrame(t *testing.T) {
	var conds []string
	for i := range 24 {
		conds = append(conds, fmt.Sprintf("buf->len + %d > 0", i))
	}
	spanEnds(t, func(t *testing.T, f compiler.Features) {
		r := newRig(t, f, compiler.Options{Self: 5, ClearTables: true}, `send(dev->alias, dev->name, min(buf->err), max(buf->len)) if buf->dev->alias ~ "up*"`+
			` => free(buf->dev->alias, $pid, $tid, $cpu, $uid, sum($duration), avg((u64)data * 2), hist((u64)data), lhist((u64)data, 0, 100, 1), min($duration), sum(buf->len * 2))`+
			` if (buf->dev->alias ~ "up*" || $duration > 3 && buf->dev->name ~ "e*") && `+strings.Join(conds, " && ")+` on (u64)buf + buf->len * 3`)
		buf, bytes := bufAndDev(r.machine)
		dev := binary.LittleEndian.Uint64(bytes[8:])
		for range 3 {
			r.do(call{fn: "send", args: []uint64{dev, buf}})
			r.time += 100
			r.do(call{fn: "free", args: []uint64{buf, 7}})
		}
		require.Equal(t, []string{"uplink eth0 uplink 7 8 3 1000 calls=3 min=-1 max=105 sum=300 avg=42 hist=4..7:3 lhist=7..7:3 min=100 sum=630"}, r.rows(0))
	})
}

// TestSpanTablesRefused verifies what a table of spans cannot have.
func TestSpanTablesRefused(t *testing.T) {
	for spec, want := range map[string]string{
		"send(count()) => free(count()) on buf":                                  "both points have count(), and a table has it once\n  send(count()) => free(count()) on buf\n                   ^^^^",
		"send(dev->alias, (char *)buf, count()) => free(buf->dev->alias) on buf": "the key has 216 bytes with 'buf->dev->alias', and 200 is the limit: name fewer values",
		"send(hist($duration)) => free() on buf":                                 "$duration is known when the span ends, and send is its beginning",
		"send(sum(buf)) => free() on buf":                                        "'buf' is a pointer to struct buf, and numbers are counted",
	} {
		_, err := measuredRig(t, compilertest.WithTrampoline, compiler.Options{}, resolve.Wishes{}, compiler.NoMeasure, spec)
		require.ErrorContains(t, err, want, spec)
	}
}
