package codegen

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
)

// free runs the program for a freed thread.
func (r *rig) free(task uint64) {
	r.t.Helper()
	for _, h := range r.unit.Companions {
		if h.Tracepoint == FreeTracepoint {
			require.NoError(r.t, r.run(r.unit.Collection.Programs[h.Program].Instructions, r.alloc(le(task))))
			return
		}
	}
	r.t.Fatal("no program forgets the calls of threads")
}

// requireNothing checks that nothing is kept of any thread.
func (r *rig) requireNothing() {
	r.t.Helper()
	require.Zero(r.t, r.keptCalls())
	require.Empty(r.t, r.hashes[overflowMap])
	buckets, err := r.at(r.arrays[threadsMap], uint64(r.maps[threadsMap].ValueSize))
	require.NoError(r.t, err)
	for bucket := range slices.Chunk(buckets, r.unit.threads.size()) {
		require.True(r.t, bytes.Equal(make([]byte, elementSlots), bucket[:elementSlots]), "%x", bucket[:elementSlots])
	}
}

// again replaces the thread by another one at the same addresses.
func (r *rig) again() {
	r.free(r.task)
	r.stack.depth = 0
	r.pidtid++
}

// keeping lists specs that keep small values and specs that keep large ones: some whose
// condition at entry rejects calls, and some that keep all.
var keeping = []struct{ name, rejecting, all string }{
	{"small", "read(buf->len == 105, count, return)", "read(buf->len > 0, count, return)"},
	{"large", "read(buf, buf->len == 105, count, buf->dev->name, buf->stamp, ubuf:ustring, return)", "read(buf, buf->len > 0, count, ubuf:ustring, return)"},
}

func keptEverywhere(t *testing.T, test func(t *testing.T, f compiler.Features, rejecting, all string)) {
	for _, k := range keeping {
		t.Run(k.name, func(t *testing.T) {
			backEnds(t, func(t *testing.T, f compiler.Features) { test(t, f, k.rejecting, k.all) })
		})
	}
}

// counts lists the values of the items count and return of each event.
func (r *rig) counts() (pairs []string) {
	for _, rec := range r.records {
		ev := r.unit.Events[0]
		pair := ""
		for i, v := range ev.Items {
			if v.Name == "count" || v.Name == "return" {
				pair += "/" + showSlot(rec, ev, i)
			}
		}
		pairs = append(pairs, pair[1:])
	}
	r.records = nil
	return pairs
}

// If a thread ends inside a call, nothing of it is kept, and a later call of
// another thread at the same address is not paired with it.
func TestExitInside(t *testing.T) {
	keptEverywhere(t, func(t *testing.T, f compiler.Features, rejecting, _ string) {
		r := newRig(t, f, compiler.Options{MaxBytes: 300}, rejecting)
		buf, length := bufAndDev(r.machine)
		for i := range uint64(5) {
			length[0] = 105
			r.enter(call{args: []uint64{buf, 0, i, 0}})
			require.Equal(t, 1, min(r.keptCalls(), 1))
			r.again()
			r.requireNothing()
			length[0] = 7
			r.do(call{args: []uint64{buf, 0, 1000 + i, 0}, result: []uint64{1}})
			require.Empty(t, r.counts())
		}
		require.Equal(t, compiler.Counters{}, r.counters(0))
	})
}

// Calls beyond the limit of recursion are counted.
func TestRecursionBeyondSlots(t *testing.T) {
	keptEverywhere(t, func(t *testing.T, f compiler.Features, _, all string) {
		r := newRig(t, f, compiler.Options{MaxBytes: 300}, all)
		buf, _ := bufAndDev(r.machine)
		r.stack.bytes = make([]byte, 1<<20)
		r.stack.addr = (r.next + 1<<20) &^ (1<<20 - 1)
		r.put(r.stack.addr, r.stack.bytes)
		r.next = r.stack.addr + 1<<21
		most := r.unit.threads.slots
		for range 2 {
			r.nestReads(buf, most, most)
			require.Equal(t, compiler.Counters{}, r.counters(0))
		}
		r.nestReads(buf, most+3, most)
		require.Equal(t, uint64(3), r.counters(0).NoRoom)
		r.nestReads(buf, 1, 1)
		r.free(r.task)
		r.requireNothing()
	})
}

// nestReads makes calls that recurse to a depth, and checks how many are shown.
func (r *rig) nestReads(buf uint64, depth, shown int) {
	r.t.Helper()
	var leave []func()
	for i := range depth {
		leave = append(leave, r.enter(call{args: []uint64{buf, 0, uint64(i), 0}, result: []uint64{uint64(i + 1)}}))
	}
	var want []string
	for i := depth - 1; i >= 0; i-- {
		leave[i]()
		if i < shown {
			want = append(want, fmt.Sprintf("%d/%d", i, i+1))
		}
	}
	require.Equal(r.t, want, r.counts())
	require.Zero(r.t, r.keptCalls())
}

// ended returns what is counted of n calls whose returns were missed. The kernel has
// counted those that it skipped in interrupts, if it does.
func ended(f compiler.Features, r *rig, n uint64) compiler.Counters {
	if f.CountsSkipped && r.unit.Attachments[0].Kind.Trampoline() {
		n = 0
	}
	return compiler.Counters{Unpaired: n}
}

// A missed return is counted when the next call in the same frame, or further
// out, is entered, and its values are not used for another call.
func TestMissedReturn(t *testing.T) {
	keptEverywhere(t, func(t *testing.T, f compiler.Features, rejecting, _ string) {
		r := newRig(t, f, compiler.Options{MaxBytes: 300}, rejecting)
		buf, length := bufAndDev(r.machine)
		missed := func(n uint64) {
			r.enter(call{args: []uint64{buf, 0, n, 0}})
			r.stack.depth--
		}
		shown := func(n uint64) {
			r.do(call{args: []uint64{buf, 0, n, 0}, result: []uint64{n}})
			require.Equal(t, []string{fmt.Sprintf("%d/%d", n, n)}, r.counts())
		}
		missed(1)
		shown(2) // in the same frame
		require.Equal(t, ended(f, r, 1), r.counters(0))
		r.nest(call{args: []uint64{buf, 0, 3, 0}, result: []uint64{3}}, func() {
			missed(4)
			missed(5)
		})()
		require.Equal(t, []string{"3/3"}, r.counts())
		require.Equal(t, ended(f, r, 2), r.counters(0), "5 has met 4")
		shown(6) // further out than 5
		require.Equal(t, ended(f, r, 3), r.counters(0))
		require.Zero(t, r.keptCalls())
		length[0] = 7
		r.nest(call{args: []uint64{buf, 0, 7, 0}, result: []uint64{7}}, r.nest(call{args: []uint64{buf, 0, 8, 0}, result: []uint64{8}}))()
		require.Empty(t, r.counts())
	})
}

// A missed return is counted, too, when a call in the same frame is rejected at
// entry: its own return would find the values. Trampolines miss no return of a
// thread.
func TestMissedReturnBeforeRejection(t *testing.T) {
	keptEverywhere(t, func(t *testing.T, f compiler.Features, rejecting, _ string) {
		for _, counting := range []bool{false, true} {
			r := newRig(t, f, compiler.Options{MaxBytes: 300, CountCalls: counting}, rejecting)
			if kind := r.unit.Attachments[0].Kind; kind.Trampoline() || kind == compiler.KprobeSession && !f.CancelRepeats {
				continue // or there is no return of a call that is rejected
			}
			buf, length := bufAndDev(r.machine)
			for n := range uint64(3) {
				length[0] = 105
				r.enter(call{args: []uint64{buf, 0, n, 0}})
				r.stack.depth--
				length[0] = 7
				r.do(call{args: []uint64{buf, 0, 1000 + n, 0}, result: []uint64{1}})
				require.Empty(t, r.counts())
				require.Zero(t, r.keptCalls())
				require.Equal(t, n+1, r.counters(0).Unpaired)
			}
			r.free(r.task)
			r.requireNothing()
		}
	})
}

// When a call is entered, the slots of all calls further down the stack are emptied,
// even if many returns were missed.
func TestManyMissedReturns(t *testing.T) {
	keptEverywhere(t, func(t *testing.T, f compiler.Features, _, all string) {
		r := newRig(t, f, compiler.Options{MaxBytes: 300}, all)
		buf, _ := bufAndDev(r.machine)
		const missed = 12
		for n := range uint64(missed) {
			r.enter(call{args: []uint64{buf, 0, n, 0}})
		}
		r.stack.depth = 1
		r.do(call{args: []uint64{buf, 0, 7, 0}, result: []uint64{8}})
		require.Equal(t, []string{"7/8"}, r.counts())
		require.Equal(t, ended(f, r, missed-1), r.counters(0))
		r.stack.depth = 0
		r.do(call{args: []uint64{buf, 0, 8, 0}, result: []uint64{9}})
		require.Equal(t, []string{"8/9"}, r.counts())
		require.Equal(t, ended(f, r, missed), r.counters(0))
		require.Zero(t, r.keptCalls())
	})
}

// Where more calls are left over than one entry forgets, that entry finds no room,
// and all of them are counted.
func TestTooManyMissedReturns(t *testing.T) {
	keptEverywhere(t, func(t *testing.T, f compiler.Features, _, all string) {
		r := newRig(t, f, compiler.Options{MaxBytes: 300}, all)
		buf, _ := bufAndDev(r.machine)
		missed := min(r.unit.threads.slots, mostEnded+4)
		whole := r.stack.bytes
		for n := range missed { // one stack has room for them if they overlap
			r.stack.depth, r.stack.bytes = n/2, whole[:len(whole)-n%2*stackFrame/2]
			r.enter(call{args: []uint64{buf, 0, uint64(n), 0}})
		}
		r.stack.depth, r.stack.bytes = 0, whole
		noRoom := uint64(0)
		for shown := []string(nil); len(shown) == 0; noRoom++ {
			r.do(call{args: []uint64{buf, 0, 7, 0}, result: []uint64{8}})
			if shown = r.counts(); len(shown) > 0 {
				require.Equal(t, []string{"7/8"}, shown)
				break
			}
			require.Less(t, noRoom, uint64(missed/mostEnded+1))
		}
		require.Equal(t, missed > mostEnded, noRoom > 0)
		want := ended(f, r, uint64(missed))
		want.NoRoom = noRoom
		require.Equal(t, want, r.counters(0))
		require.Zero(t, r.keptCalls())
	})
}

// Calls whose returns were missed do not fill the slots, if each is a bit
// further down the stack than the one before, as with a random offset of the
// stack for each system call.
func TestMissedReturnsFurtherDown(t *testing.T) {
	keptEverywhere(t, func(t *testing.T, f compiler.Features, _, all string) {
		r := newRig(t, f, compiler.Options{MaxBytes: 300}, all)
		if !r.unit.threads.addresses {
			return
		}
		buf, _ := bufAndDev(r.machine)
		r.stack.bytes = make([]byte, 1<<18)
		r.stack.addr = (r.next + 1<<18) &^ (1<<18 - 1)
		r.put(r.stack.addr, r.stack.bytes)
		r.next = r.stack.addr + 1<<19
		rnd := rand.New(rand.NewPCG(1, 2))
		for i := range uint64(200) {
			for depth := 1; depth <= r.stack.depth; depth++ { // others use their frames now
				frame := len(r.stack.bytes) - depth*stackFrame + stackFrame/2
				binary.LittleEndian.PutUint64(r.stack.bytes[frame:], []uint64{0, 1, r.task, someCode}[rnd.IntN(4)])
			}
			r.enter(call{args: []uint64{buf, 0, i, 0}})
			r.do(call{args: []uint64{buf, 0, 7, 0}, result: []uint64{8}})
			require.Equal(t, []string{"7/8"}, r.counts())
		}
		require.Zero(t, r.counters(0).NoRoom)
		require.NotZero(t, r.counters(0).Unpaired)
		require.LessOrEqual(t, r.counters(0).Unpaired, uint64(200))
		r.free(r.task)
		r.requireNothing()
	})
}

// neighbour returns the address of a task_struct whose thread has the same
// bucket.
func (r *rig) neighbour(task uint64) uint64 {
	bucket := func(task uint64) uint32 { return uint32(task) * 0x61C88647 >> (32 - r.unit.threads.bucketBits) }
	for {
		if next := r.alloc(le(uint64(0), r.stack.addr)); bucket(next) == bucket(task) {
			return next
		}
	}
}

// Threads with the same bucket do not mix, in whatever order they begin and
// end.
func TestTakenBuckets(t *testing.T) {
	keptEverywhere(t, func(t *testing.T, f compiler.Features, _, all string) {
		r := newRig(t, f, compiler.Options{MaxBytes: 300}, all)
		buf, _ := bufAndDev(r.machine)
		tasks := []uint64{r.task}
		for range 3 {
			tasks = append(tasks, r.neighbour(r.task))
		}
		var leave []func()
		for i, task := range tasks {
			r.task = task
			leave = append(leave, r.enter(call{args: []uint64{buf, 0, uint64(i), 0}, result: []uint64{uint64(i + 1)}}))
		}
		require.Len(t, r.hashes[overflowMap], len(tasks))
		for _, i := range []int{2, 0, 3, 1} {
			r.task = tasks[i]
			leave[i]()
			require.Equal(t, []string{fmt.Sprintf("%d/%d", i, i+1)}, r.counts())
		}
		r.free(tasks[0])
		r.task = tasks[2] // it stays in the overflow map although its bucket is free
		r.nestReads(buf, 7, 7)
		r.task = r.neighbour(tasks[0]) // gets that bucket
		r.nestReads(buf, 7, 7)
		r.free(r.task)
		for _, task := range tasks[1:] {
			r.free(task)
		}
		r.requireNothing()
		require.Equal(t, compiler.Counters{}, r.counters(0))
	})
}

// If there is no memory, a call is counted, and no slot remains in use.
func TestFullMaps(t *testing.T) {
	keptEverywhere(t, func(t *testing.T, f compiler.Features, _, all string) {
		r := newRig(t, f, compiler.Options{MaxBytes: 300}, all)
		buf, _ := bufAndDev(r.machine)
		for i, name := range append([]string{overflowMap}, r.bigMaps()...) {
			most := r.maps[name].MaxEntries
			r.maps[name].MaxEntries = 0
			r.do(call{args: []uint64{buf, 0, 1, 0}, result: []uint64{1}})
			require.Empty(t, r.counts(), name)
			require.Equal(t, uint64(i+1), r.counters(0).NoRoom, name)
			require.Zero(t, r.keptCalls(), name)
			r.maps[name].MaxEntries = most
		}
		r.nestReads(buf, 6, 6)
		r.free(r.task)
		r.requireNothing()
	})
}

func (r *rig) bigMaps() (names []string) {
	for _, size := range r.unit.threads.big {
		names = append(names, bigMap(size))
	}
	return names
}

// If there are more sizes of values than classes, values get the next larger
// one.
func TestClasses(t *testing.T) {
	require.Equal(t, []int{300, 400}, bigSizes([]int{400, 300, 400}))
	var sizes []int
	for i := range 100 {
		sizes = append(sizes, 300+8*i)
	}
	some := bigSizes(sizes)
	require.Len(t, some, mostBig)
	require.Equal(t, sizes[len(sizes)-1], some[mostBig-1])
}

// Interrupts may come between any two instructions: with calls of other
// functions, and with the end of another thread.
func TestInterruptsAnywhere(t *testing.T) {
	specs := []string{"read(buf->len > 0, count, return)", "work(mode, return > 0, $duration)", "open(dfd, path, return != 0)"}
	r := newRig(t, compilertest.WithTrampoline, compiler.Options{MaxBytes: 300}, specs...)
	buf, _ := bufAndDev(r.machine)
	path := r.alloc([]byte("path\x00"))
	task, other := r.task, r.neighbour(r.task)
	irq := r.onOtherStack(r.nest(stackWork(3), r.nest(call{fn: "open", args: []uint64{9, path}, result: []uint64{1}})))
	for _, known := range []bool{false, true} { // whether the threads have elements
		for at, interrupted := 1, true; interrupted; at++ {
			interrupted = false
			if known {
				r.nest(stackWork(1))()
				r.task = other
				r.nest(stackWork(1))()
				r.task = task
			}
			r.records = nil
			var records [][]byte
			r.interruptAt, r.interrupt = at, func() {
				interrupted = true
				own := r.records
				r.records = nil
				irq()
				r.task = other
				irq()
				r.free(other)
				r.task = task
				records, r.records = r.records, own
			}
			r.do(call{fn: "read", args: []uint64{buf, 0, 5, 0}, result: []uint64{6}})
			r.interrupt = nil
			require.Equal(t, []string{"call buf->len=105 count=5 return=6"}, r.shown(), "interrupted at %d", at)
			if interrupted {
				r.records = records
				require.Len(t, r.shown(), 4, "interrupts at %d", at)
			}
			require.Zero(t, r.keptCalls())
			r.free(task)
			r.free(other)
			r.requireNothing()
		}
	}
	for i := range specs {
		require.Equal(t, compiler.Counters{}, r.counters(i))
	}
}
