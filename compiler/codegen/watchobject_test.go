package codegen

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// newWatchObjects returns a rig for a spec that watches members of the objects that
// calls find.
func newWatchObjects(t *testing.T, f compiler.Features, text string, objects int) *rig {
	trace, err := spec.ParseWatch(text)
	require.NoError(t, err)
	target := newObjectsTarget(t, f)
	plan, err := resolve.All([]*spec.Trace{trace}, target, resolve.Wishes{Objects: objects})
	require.NoError(t, err)
	unit, err := generate(plan.Probes, compiler.Options{CountCalls: true, RingBytes: 1 << 20})
	require.NoError(t, err)
	for name, ps := range unit.Collection.Programs {
		requireReachable(t, name, ps.Instructions)
	}
	return withMachine(t, unit, target.Arch)
}

// watchedSlot returns the bytes of a slot of the map.
func (r *rig) watchedSlot(i int) []byte {
	slot, err := r.at(r.arrays[compiler.WatchedMap]+uint64(i*compiler.WatchedSize), compiler.WatchedSize)
	require.NoError(r.t, err)
	return slot
}

// watch sets a slot as user space does for an object that has been found.
func (r *rig) watch(i int, addr, object, number uint64) {
	slot := r.watchedSlot(i)
	binary.LittleEndian.PutUint64(slot[compiler.WatchedAddr:], addr)
	binary.LittleEndian.PutUint64(slot[compiler.WatchedObject:], object)
	binary.LittleEndian.PutUint64(slot[compiler.WatchedNumber:], number)
}

// hit runs the program of a slot, as the hardware does at a write.
func (r *rig) hit(i int) {
	for _, at := range r.unit.Attachments {
		if w := at.Places[0].Probe.Watch; w != nil && w.Slot == i {
			require.Equal(r.t, compiler.Breakpoint, at.Kind)
			ctx := make([]byte, 512)
			binary.LittleEndian.PutUint64(ctx[r.arch.IP:], someCode)
			require.NoError(r.t, r.run(r.unit.Collection.Programs[at.Program].Instructions, r.alloc(ctx)))
			return
		}
	}
	require.Fail(r.t, "there is no such slot")
}

// seenOfObjects returns the records as lines: an object that is found or ends, with
// its number and values, or a write with its slot.
func (r *rig) seenOfObjects() []string {
	var lines []string
	for _, rec := range r.records {
		ev := r.unit.Events[binary.LittleEndian.Uint32(rec)]
		if w := ev.Probe.Watch; w != nil {
			lines = append(lines, fmt.Sprintf("write %d: %s -> %s", w.Slot, showSlot(rec, ev, 0), showSlot(rec, ev, 2)))
			continue
		}
		line := fmt.Sprintf("%s %d", ev.Probe.Func.Name, word(rec[ev.Layout.Object+compiler.ObjectNumber:][:8]))
		if ev.Probe.Find != nil {
			line += fmt.Sprintf(" at %#x: %s", word(rec[ev.Layout.Slots[0].Data:][:8]), showSlot(rec, ev, 1))
		}
		lines = append(lines, line)
	}
	r.records = nil
	return lines
}

// Objects are found once each, up to their number; writes are shown until the object
// ends, whatever is at its address then.
func TestWatchObjects(t *testing.T) {
	spanEnds(t, func(t *testing.T, f compiler.Features) {
		r := newWatchObjects(t, f, "send(buf->err < 0) if buf->len > 100", 2)
		cache := r.alloc(le(uint32(0), uint32(64)))
		send := func(buf uint64) { r.do(call{fn: "send", args: []uint64{1, buf}}) }
		release := func(ptr uint64) { r.do(call{fn: "kmem_cache_free", args: []uint64{someCode, ptr, cache}}) }
		a, bytes := bufAndDev(r.machine)
		b, _ := bufAndDev(r.machine)
		c, _ := bufAndDev(r.machine)

		binary.LittleEndian.PutUint32(bytes, 7)
		send(a)
		send(0)
		require.Empty(t, r.seenOfObjects())
		binary.LittleEndian.PutUint32(bytes, 101)
		send(a)
		send(a)
		send(b)
		send(c)
		require.Equal(t, []string{fmt.Sprintf("send 1 at %#x: -1", a+4), fmt.Sprintf("send 2 at %#x: -1", b+4)}, r.seenOfObjects())

		// Before a slot has its object, its program shows nothing.
		r.hit(0)
		r.watch(0, a+4, a, 1)
		r.watch(1, b+4, b, 2)
		binary.LittleEndian.PutUint32(bytes[4:], 5)
		r.hit(0)
		r.hit(1)
		require.Equal(t, []string{"write 0: 0 -> 5", "write 1: 0 -> -1"}, r.seenOfObjects())

		// What ends elsewhere is another object.
		release(a - 64)
		release(a + 8)
		r.hit(0)
		require.Equal(t, []string{"write 0: 5 -> 5"}, r.seenOfObjects())
		r.onWrite = func() {
			require.Equal(t, le(uint64(5), uint64(1)), r.watchedSlot(0)[compiler.WatchedEnd:], "user space may read it at once")
			r.onWrite = nil
		}
		release(a - 8)
		require.Nil(t, r.onWrite)
		r.hit(0)
		r.hit(1)
		require.Equal(t, []string{"kmem_cache_free 1", "write 1: -1 -> -1"}, r.seenOfObjects())

		require.Equal(t, le(uint64(5), uint64(1)), r.watchedSlot(0)[compiler.WatchedEnd:])
		require.Equal(t, le(uint64(0), uint64(0)), r.watchedSlot(1)[compiler.WatchedEnd:])

		// Nothing else is found at that address, as two have been; hits are counted.
		send(a)
		r.hit(0)
		r.do(call{fn: "kfree", args: []uint64{someCode, b}})
		r.hit(1)
		require.Equal(t, []string{"kfree 2"}, r.seenOfObjects())
		require.Equal(t, uint64(5), word(r.watchedSlot(0)[compiler.WatchedHits:][:8]))
		require.Equal(t, uint64(3), word(r.watchedSlot(1)[compiler.WatchedHits:][:8]))
	})
}

// The call that finds an object may be chosen by values that are compared or computed.
func TestWatchObjectComputed(t *testing.T) {
	spanEnds(t, func(t *testing.T, f compiler.Features) {
		r := newWatchObjects(t, f, "send(buf->err < buf->len) if buf->len - buf->err == 100", 2)
		a, bytes := bufAndDev(r.machine)
		for _, err := range []uint32{4, 5} {
			binary.LittleEndian.PutUint32(bytes, 105)
			binary.LittleEndian.PutUint32(bytes[4:], err)
			r.do(call{fn: "send", args: []uint64{1, a}})
		}
		require.Equal(t, []string{fmt.Sprintf("send 1 at %#x: 5", a+4)}, r.seenOfObjects())
	})
}

// Several members of an object have a slot each, object by object.
func TestWatchObjectMembers(t *testing.T) {
	spanEnds(t, func(t *testing.T, f compiler.Features) {
		r := newWatchObjects(t, f, "send(buf->err < 0, buf->len)", 2)
		a, bytes := bufAndDev(r.machine)
		b, _ := bufAndDev(r.machine)
		binary.LittleEndian.PutUint32(bytes, 101)
		for _, buf := range []uint64{a, a, b} {
			r.do(call{fn: "send", args: []uint64{1, buf}})
		}
		var find *compiler.Probe
		for _, p := range r.unit.Probes() {
			if p.Find != nil {
				find = p
			}
		}
		require.Len(t, find.Find.Members, 2)
		require.Len(t, r.records, 2)
		for i, buf := range []uint64{a, b} {
			rec := r.records[i]
			ev := r.unit.Events[binary.LittleEndian.Uint32(rec)]
			require.Equal(t, find, ev.Probe)
			require.Equal(t, []*compiler.Value{find.Find.Members[0].Addr, find.Find.Members[0].Now, find.Find.Members[1].Addr, find.Find.Members[1].Now}, ev.Items)
			require.Equal(t, buf+4, word(rec[ev.Layout.Slots[0].Data:][:8]))
			require.Equal(t, "-1", showSlot(rec, ev, 1))
			require.Equal(t, buf, word(rec[ev.Layout.Slots[2].Data:][:8]))
		}
		r.records = nil
		var names []string
		for i, w := range r.unit.Watched() {
			require.Equal(t, i, w.Watch.Slot)
			require.Equal(t, i%2, w.Watch.Member)
			names = append(names, w.Func.Name)
		}
		require.Equal(t, []string{"buf->err", "buf->len", "buf->err", "buf->len"}, names)
		r.watch(0, a+4, a, 1)
		r.watch(1, a, a, 1)
		r.watch(2, b+4, b, 2)
		r.hit(0)
		r.hit(1)
		r.do(call{fn: "kfree", args: []uint64{someCode, a}})
		r.hit(0)
		r.hit(1)
		r.hit(2)
		require.Equal(t, []string{"write 0: 0 -> -1", "write 1: 0 -> 101", "kfree 1", "write 2: 0 -> -1"}, r.seenOfObjects())
	})
}

// An object at the address of one that has ended is not taken for it.
func TestWatchObjectReused(t *testing.T) {
	spanEnds(t, func(t *testing.T, f compiler.Features) {
		r := newWatchObjects(t, f, "vfs_open(f->f_mode)", 2)
		file := r.alloc(le(uint32(3), uint32(0)))
		open := func() { r.do(call{fn: "vfs_open", args: []uint64{file}}) }
		open()
		r.watch(0, file, file, 1)
		r.do(call{fn: "__fput", args: []uint64{file}})
		open()
		r.watch(1, file, file, 2)
		r.hit(0)
		r.hit(1)
		require.Equal(t, []string{
			fmt.Sprintf("vfs_open 1 at %#x: 3", file), "__fput 1", fmt.Sprintf("vfs_open 2 at %#x: 3", file), "write 1: 0 -> 3",
		}, r.seenOfObjects())
	})
}

// The object is the target of the last pointer on the way to the member.
func TestWatchObjectOf(t *testing.T) {
	for text, want := range map[string]string{
		"send(buf->err)":                   "buf",
		"send(buf->dev->index)":            "buf->dev",
		"send((unsigned int)buf->err)":     "buf",
		"send(buf->dev->name[8..15])":      "buf->dev",
		"send(((struct dev *)buf)->index)": "(struct dev *)buf",
		"open(return->len) if return->err": "return",
	} {
		r := newWatchObjects(t, compilertest.WithProbes, text, 1)
		for _, p := range r.unit.Probes() {
			if p.Find != nil {
				require.Equal(t, want, p.Follow.Object.Name, text)
			}
		}
	}
}

// Specs that find no object to watch, and why.
func TestWatchObjectsRefused(t *testing.T) {
	for _, tc := range []struct {
		texts []string
		want  string
	}{
		{[]string{"send"}, "'send' names no memory to watch"},
		{[]string{"send(buf->err, buf->dev->index)"}, "'buf->dev->index' is a member of 'buf->dev', and what is watched before it is one of 'buf'"},
		{[]string{"send(buf->err, buf->len)", "(int)@jiffies", "@jiffies", "(u8)@jiffies"}, "this takes 5 hardware breakpoints, and amd64 has 4 for each CPU"},
		{[]string{"(int)@jiffies", "@jiffies", "(u8)@jiffies", "send(buf->err, buf->len)"}, "this takes 5 hardware breakpoints, and amd64 has 4 for each CPU"},
		{[]string{"send($kstack)"}, "'$kstack' is not memory that can be watched"},
		{[]string{"send(buf->err, $kstack)"}, "'$kstack' is not memory that can be watched"},
		{[]string{"send(buf->err, count())"}, "count() counts calls, and it is memory that is watched"},
		{[]string{"send*(buf->err)"}, "'send*' means many functions, and the object to watch is that of one"},
		{[]string{"send(buf)"}, "'buf' is not a member of an object"},
		{[]string{"send(buf->err + 1)"}, "'buf->err + 1' is not a member of an object"},
		{[]string{"read(*pos)"}, "'*pos' is not a member of an object"},
		{[]string{"send(after(buf->err))"}, "'after(buf->err)' is not a member of an object"},
		{[]string{"send(buf->err) if return == 0"}, "an object is found at the entry of send or at its return, and the spec is about both"},
		{[]string{"send(count())"}, "count() counts calls, and it is memory that is watched"},
		{[]string{"iter:buf(buf->err)"}, "iter:buf reads what is there now, and the object to watch is that of a call"},
		{[]string{"open(return->err) if $duration > 5"}, "'$duration' is of a whole call, and an object is found at one side of it"},
		{[]string{"send($task->pid) if $duration > 5"}, "'$duration' is of a whole call, and an object is found at one side of it"},
		{[]string{"send(buf->err)", "send(buf->len)"}, "objects are found by one spec, and 'send(buf->err)' is another one"},
		{[]string{"send(buf->dev->alias:string)"}, "':string' shows what 'buf->dev->alias' points to, and it is the pointer that is watched"},
		{[]string{"send(buf->dev:mac)"}, "':mac' shows what 'buf->dev' points to, and it is the pointer that is watched"},
		{[]string{"send(buf->dev->alias == \"lo\")"}, "'buf->dev->alias' is a pointer that is watched, and a condition on it cannot be about the string that it points to"},
		{[]string{"send(buf->dev->name)"}, "the hardware watches 1, 2, 4 or 8"},
	} {
		var traces []*spec.Trace
		var err error
		for _, text := range tc.texts {
			var trace *spec.Trace
			if trace, err = spec.ParseWatch(text); err == nil {
				traces = append(traces, trace)
			}
		}
		if err == nil {
			_, err = resolve.All(traces, newObjectsTarget(t, compilertest.WithProbes), resolve.Wishes{})
		}
		require.ErrorContains(t, err, tc.want, tc.texts)
	}
}

// FuzzWatch verifies that what can be watched compiles, and that everything else is
// refused with its place.
func FuzzWatch(f *testing.F) {
	for _, text := range []string{
		"@jiffies", "(int)@jiffies > 5", "*(u16 *)0xffffffff81001102 if $comm ~ \"a*\"", "((struct buf)@jiffies).delta", "(struct dev)@jiffies", "@jiffies->x[3].y",
		"send(buf->err < 0) if buf->len > 100", "open(return->dev->index)", "send(((struct dev *)buf)->index)", "send(buf->delta)", "vfs_open(f->f_mode)",
		"tp:tick(buf->len)", "read($task->pid)", "iter:buf(buf->len)", "send(buf[3].len)", "send((*buf).len)", "read(*pos)", "send(buf->len) => read on $tid",
		"open(return->err) if $duration > 5", "send(buf->err < buf->len) if buf->len - buf->err == 100", "send(buf->dev->name[0..7] == \"eth0\")", "@jiffies == (u64)@jiffies + 1",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		trace, err := spec.ParseWatch(text)
		for _, features := range []compiler.Features{compilertest.WithTrampoline, compilertest.WithProbes} {
			var plan *compiler.Plan
			if err == nil {
				plan, err = resolve.All([]*spec.Trace{trace}, newObjectsTarget(t, features), resolve.Wishes{Objects: 2})
			}
			if err != nil {
				var e *spec.Error
				require.ErrorAs(t, err, &e)
				require.LessOrEqual(t, e.At.End, len(text))
				return
			}
			unit, err := generate(plan.Probes, compiler.Options{RingBytes: 1 << 20})
			require.NoError(t, err)
			for name, ps := range unit.Collection.Programs {
				requireReachable(t, name, ps.Instructions)
			}
		}
	})
}
