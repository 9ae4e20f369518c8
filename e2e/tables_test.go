//go:build linux

package e2e

import (
	"fmt"
	goruntime "runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/e2e/vm"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/stretchr/testify/require"
)

// TestTables counts on two CPUs, between which the threads move, of a kernel that
// preempts them anywhere.
func TestTables(t *testing.T) {
	onlyWithFull(t)
	t.Parallel()
	testOne(t, vm.Machine{CPUs: 2, Append: "preempt=full"}, "^TestGuest$/^(tables|spanning)$")
}

// testTables checks that what is counted by key is exact.
func testTables(t *testing.T, k *kernel) {
	for _, kind := range k.kinds(t) {
		t.Run("aggregates/"+string(kind), func(t *testing.T) { tableAggregates(t, k, kind) })
		t.Run("live/"+string(kind), func(t *testing.T) { tableLive(t, k, kind) })
		t.Run("clear/"+string(kind), func(t *testing.T) { tableClear(t, k, kind) })
	}
	t.Run("full", func(t *testing.T) { tableFull(t, k) })
	t.Run("keys", func(t *testing.T) { tableKeys(t, k) })
	t.Run("glob", func(t *testing.T) { tableGlob(t, k) })
}

// tables stops the session and returns its tables.
func (tr *tracer) tables(t *testing.T) []*runtime.Table {
	require.NoError(t, tr.Stop())
	all, err := tr.Tables()
	require.NoError(t, err)
	return all
}

const everyAggregate = "count(), sum(offset), avg(offset), min(offset), max(offset), hist(offset), lhist(offset, -1000, 1000, 300)"

// tableAggregates compares all aggregates with those of the numbers that calls were
// made with, by several threads.
func tableAggregates(t *testing.T, k *kernel, kind compiler.Kind) {
	const users = 4
	calls := rounds(4_000, 100_000)
	offset := func(i int) int64 { return (int64(i*7919)%2001 - 1000) << (i % 40) }
	specs := []measured{
		{"generic_file_llseek_size((u8)offset, " + everyAggregate + ")", compiler.NoMeasure},
		{"generic_file_llseek_size((u8)offset, " + everyAggregate + ") if return >= 0 || return < 0", compiler.NoMeasure},
		{"generic_file_llseek_size(" + everyAggregate + ")", compiler.NoMeasure},
	}
	tr := k.measure(t, resolve.Wishes{Attach: kind}, compiler.Options{}, specs...)
	threads(t, users, func(int) error { return seekOn(calls, offset) })
	missed := tr.missed(t)
	tables := tr.tables(t)
	for i, table := range tables {
		n := uint64(0)
		for r := range table.Rows {
			row := &table.Rows[r]
			n += row.Calls
			if missed > 0 {
				continue
			}
			want := expectCells(table.Aggregates, calls, func(i int) (int64, bool) {
				return offset(i), len(row.Key) == 0 || uint64(byte(offset(i))) == row.Key[0].Uint64()
			})
			for w := range want {
				want[w] = scaled(want[w], table.Aggregates[w], users)
			}
			require.Equal(t, want, row.Cells, "%s, row %d", specs[i].spec, r)
		}
		require.Zero(t, table.Full+table.Faulted)
		if missed == 0 {
			require.Equal(t, uint64(users*calls), n, specs[i].spec)
		}
		require.LessOrEqual(t, users*uint64(calls)-n, missed, specs[i].spec)
	}
}

// scaled returns what n threads count that make the same calls.
func scaled(c runtime.Cell, a *compiler.Aggregate, n int) runtime.Cell {
	if a.Kind != compiler.Min && a.Kind != compiler.Max {
		one := c.Number
		for range n - 1 {
			c.Number = c.Number.Add(one)
		}
	}
	for i := range c.Buckets {
		c.Buckets[i].Count *= uint64(n)
	}
	return c
}

// expectCells returns the expected aggregates of the numbers that are counted.
func expectCells(aggregates []*compiler.Aggregate, calls int, number func(i int) (v int64, counted bool)) (cells []runtime.Cell) {
	for _, a := range aggregates {
		var c runtime.Cell
		buckets := map[[2]int64]uint64{}
		first := true
		for i := range calls {
			v, counted := number(i)
			if !counted {
				continue
			}
			n := runtime.NewInt(v)
			switch a.Kind {
			case compiler.Count:
				c.Number = c.Number.Add(runtime.NewInt(1))
			case compiler.Sum, compiler.Avg:
				c.Number = c.Number.Add(n)
			case compiler.Min, compiler.Max:
				if first || (n.Cmp(c.Number) < 0) == (a.Kind == compiler.Min) {
					c.Number = n
				}
			default:
				buckets[bucketOf(a, v)]++
			}
			first = false
		}
		c.Buckets = contiguous(a, buckets)
		cells = append(cells, c)
	}
	return cells
}

// bucketOf returns the edges of the bucket of a value.
func bucketOf(a *compiler.Aggregate, v int64) [2]int64 {
	const lo, hi, step = -1000, 1000, 300 // as in everyAggregate
	switch {
	case a.Kind == compiler.Linear && v < lo:
		return [2]int64{-1 << 63, lo - 1}
	case a.Kind == compiler.Linear && v >= hi:
		return [2]int64{hi, 1<<63 - 1}
	case a.Kind == compiler.Linear:
		from := lo + (v-lo)/step*step
		return [2]int64{from, min(from+step, hi) - 1}
	case v == 0:
		return [2]int64{0, 0}
	case v < 0:
		b := bucketOf(a, -v)
		return [2]int64{-b[1], -b[0]}
	}
	from := int64(1)
	for v >= 2*from {
		from *= 2
	}
	return [2]int64{from, 2*from - 1}
}

// contiguous returns the buckets from the first to the last that has values, with
// those between them.
func contiguous(a *compiler.Aggregate, counts map[[2]int64]uint64) (all []runtime.Bucket) {
	if len(counts) == 0 {
		return nil
	}
	from, to := int64(1<<62), int64(-1<<63)
	for b := range counts {
		from, to = min(from, b[0]), max(to, b[0])
	}
	for b := bucketOf(a, from); ; b = bucketOf(a, b[1]+1) {
		all = append(all, runtime.Bucket{From: runtime.NewInt(b[0]), To: runtime.NewInt(b[1]), Count: counts[b]})
		if b[0] == to {
			return all
		}
	}
}

// tableFull makes calls with far more keys than there is room for, by several threads,
// and on two CPUs at once if there are two. Each thread makes one call with each key.
// It checks that the row of a key has all calls with it, and that the calls with other
// keys are counted as in no row.
func tableFull(t *testing.T, k *kernel) {
	const users, room = 4, 1000
	keys := rounds(8_000, 100_000)
	tr := k.measure(t, resolve.Wishes{}, compiler.Options{Keys: room},
		measured{"generic_file_llseek_size(offset, count(), hist(offset))", compiler.NoMeasure},
		measured{"generic_file_llseek_size($cpu, count())", compiler.NoMeasure})
	threads(t, users, func(user int) error {
		return seekOn(keys, func(i int) int64 { return int64((i + user*room/users) % keys) })
	})
	require.Zero(t, tr.missed(t), "the default kind misses nothing here")
	tables := tr.tables(t)
	require.Len(t, tables[0].Rows, room)
	seen := map[uint64]bool{}
	for _, row := range tables[0].Rows {
		key := row.Key[0].Uint64()
		require.Less(t, key, uint64(keys))
		require.False(t, seen[key], "the key %d has two rows", key)
		seen[key] = true
		require.Equal(t, uint64(users), row.Calls, "the key %d", key)
		edges := bucketOf(tables[0].Aggregates[1], int64(key))
		require.Equal(t, []runtime.Bucket{{From: runtime.NewInt(edges[0]), To: runtime.NewInt(edges[1]), Count: users}}, row.Cells[1].Buckets)
	}
	require.Equal(t, uint64(users*(keys-room)), tables[0].Full)
	n := uint64(0)
	for _, row := range tables[1].Rows {
		n += row.Calls
	}
	require.Equal(t, uint64(users*keys), n)
	require.Len(t, tables[1].Rows, min(goruntime.NumCPU(), 2), "both CPUs made calls")
}

// tableLive reads the table again and again while calls are made: no call is
// missed because of that.
func tableLive(t *testing.T, k *kernel, kind compiler.Kind) {
	const users = 3
	calls := rounds(8_000, 100_000)
	tr := k.measure(t, resolve.Wishes{Attach: kind}, compiler.Options{}, measured{"generic_file_llseek_size((u16)offset, count())", compiler.NoMeasure})
	last := uint64(0)
	reads := whileCalled(t, users, func() error {
		return seekOn(calls, func(i int) int64 { return int64(i % 4096) })
	}, func() error {
		tables, err := tr.Tables()
		if err != nil {
			return err
		}
		n := uint64(0)
		for _, row := range tables[0].Rows {
			n += row.Calls
		}
		if n < last || n > uint64(users*calls) {
			return fmt.Errorf("%d calls after %d", n, last)
		}
		last = n
		return nil
	})
	missed := k.missedBy(t, kind, tr)
	n := uint64(0)
	for _, row := range tr.tables(t)[0].Rows {
		n += row.Calls
	}
	require.LessOrEqual(t, uint64(users*calls)-n, missed)
	t.Logf("%d reads, %d of %d calls missed", reads, missed, users*calls)
}

// tableClear clears the tables again and again while calls are made, with far more keys
// than there is room for at a time: each call is counted once, and wholly.
func tableClear(t *testing.T, k *kernel, kind compiler.Kind) {
	const users, room = 3, 512
	calls := rounds(8_000, 100_000)
	tr := k.measure(t, resolve.Wishes{Attach: kind}, compiler.Options{Keys: room, ClearTables: true},
		measured{"generic_file_llseek_size(offset, count(), sum(offset), min(offset), max(offset))", compiler.NoMeasure},
		measured{"generic_file_llseek_size(count(), sum(offset), hist(offset))", compiler.NoMeasure},
		measured{"generic_file_llseek_size($kstack, hist(offset)) if return >= 0", compiler.NoMeasure})
	var total, full [3]uint64
	var last time.Duration
	add := func(tables []*runtime.Table) error {
		for i, table := range tables {
			if last > 0 && table.Since != last {
				return fmt.Errorf("an interval from %d, and the last one ended at %d", table.Since, last)
			}
			full[i] += table.Full
			for _, row := range table.Rows {
				total[i] += row.Calls
				if err := wholeRow(table, &row); err != nil {
					return err
				}
			}
		}
		last = tables[0].Time
		return nil
	}
	reads := whileCalled(t, users, func() error {
		return seekOn(calls, func(i int) int64 { return int64(i) })
	}, func() error {
		tables, err := tr.ClearTables()
		if err != nil {
			return err
		}
		return add(tables)
	})
	missed := tr.missed(t) // also kprobes: to clear a table calls bpf(2), in which the task can be preempted
	require.NoError(t, add(tr.tables(t)))
	for i := range total {
		require.LessOrEqual(t, total[i]+full[i], uint64(users*calls))
		require.LessOrEqual(t, uint64(users*calls)-total[i]-full[i], missed)
	}
	require.Zero(t, full[1])
	require.Greater(t, total[0], uint64(room), "there was room again")
	t.Logf("%d reads, %d of %d calls missed, %v without room", reads, missed, users*calls, full)
}

// whileCalled runs call in as many threads as there are users, and read again and again
// until all of them have ended. It returns how often.
func whileCalled(t *testing.T, users int, call, read func() error) (reads int) {
	var left atomic.Int64
	left.Store(int64(users))
	threads(t, users+1, func(i int) error {
		if i < users {
			defer left.Add(-1)
			return call()
		}
		for ; left.Load() > 0; reads++ {
			if err := read(); err != nil {
				return err
			}
		}
		return nil
	})
	return reads
}

// wholeRow returns an error unless all aggregates of a row are of the same calls. If the
// offset is the key, it is the same in all of them.
func wholeRow(table *runtime.Table, row *runtime.Row) error {
	for i, a := range table.Aggregates {
		c, want := row.Cells[i], runtime.NewUint(row.Calls)
		switch {
		case a.Kind == compiler.Hist:
			counted := uint64(0)
			for _, b := range c.Buckets {
				counted += b.Count
			}
			c.Number = runtime.NewUint(counted)
		case a.Kind != compiler.Count && len(row.Key) == 0:
			continue
		case a.Kind == compiler.Sum:
			want = runtime.NewUint(row.Key[0].Uint64()).Times(row.Calls)
		case a.Kind != compiler.Count:
			want = runtime.NewUint(row.Key[0].Uint64())
		}
		if c.Number != want {
			return fmt.Errorf("%s of %d calls is %v, and not %v", a.Name, row.Calls, c.Number, want)
		}
	}
	return nil
}

// tableKeys checks that values of all kinds are parts of keys.
func tableKeys(t *testing.T, k *kernel) {
	const calls = 300
	tr := k.measure(t, resolve.Wishes{}, compiler.Options{},
		measured{"generic_file_llseek_size($comm, $pid, file->f_path.dentry->d_name.name:string, $task->comm, offset, $kstack, count())", compiler.NoMeasure},
		measured{"generic_file_llseek_size($comm, file->f_path.dentry->d_name.name:string, $task->comm, count()) if return > 0", compiler.NoMeasure})
	require.NoError(t, seekOn(calls, func(i int) int64 { return int64(i % 2) }))
	tables := tr.tables(t)
	require.Len(t, tables[0].Rows, 2)
	for _, row := range tables[0].Rows {
		require.Equal(t, uint64(calls/2), row.Calls)
		require.Equal(t, "memfd:seek", string(row.Key[2].Data))
		require.Greater(t, len(row.Key[5].Data), 8)
	}
	require.Len(t, tables[1].Rows, 1)
	require.Equal(t, uint64(calls/2), tables[1].Rows[0].Calls)
	require.Equal(t, "memfd:seek", string(tables[1].Rows[0].Key[1].Data))
}

// tableGlob counts the calls of many functions in one table.
func tableGlob(t *testing.T, k *kernel) {
	const calls = 500
	tr := k.measure(t, resolve.Wishes{}, compiler.Options{}, measured{"generic_file_llseek*(offset, count(), max(return))", compiler.NoMeasure})
	require.NoError(t, seekOn(calls, func(i int) int64 { return int64(i % 2) }))
	tables := tr.tables(t)
	require.Len(t, tables, 1)
	n := uint64(0)
	for _, row := range tables[0].Rows {
		if row.Func == "generic_file_llseek_size" {
			n += row.Calls
			require.Equal(t, row.Key[0].Uint64(), row.Key[0].Uint64()&1)
		}
	}
	require.Equal(t, uint64(calls), n)
}
