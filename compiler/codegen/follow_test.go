package codegen

import (
	"encoding/binary"
	"fmt"
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

// newObjectsTarget returns a kernel that has functions that take a struct buf, which
// ends when it is freed, and others that take a struct file, which ends at __fput.
func newObjectsTarget(t testing.TB, f compiler.Features) *compiler.Target {
	void, ptr, fn, param := compilertest.Void, compilertest.Ptr, compilertest.Function, compilertest.Param
	cache := &btf.Struct{Name: "kmem_cache", Size: 8, Members: []btf.Member{{Name: "object_size", Type: compilertest.Uint, Offset: 32}}}
	file := &btf.Struct{Name: "file", Size: 8, Members: []btf.Member{{Name: "f_mode", Type: compilertest.Uint}}}
	tracepoint := func(name string, params ...btf.FuncParam) []btf.Type {
		data := append([]btf.FuncParam{param("__data", ptr(void))}, params...)
		return []btf.Type{
			&btf.Typedef{Name: "btf_trace_" + name, Type: ptr(&btf.FuncProto{Return: void, Params: data})},
			fn("__bpf_trace_"+name, void, data...),
		}
	}
	more := append(tracepoint("kfree", param("call_site", compilertest.Ulong), param("ptr", ptr(void))),
		tracepoint("kmem_cache_free", param("call_site", compilertest.Ulong), param("ptr", ptr(void)), param("s", ptr(cache)))...)
	more = append(more,
		fn("merge", void, param("to", ptr(compilertest.Buf)), param("from", ptr(compilertest.Buf))),
		fn("copy", ptr(compilertest.Buf), param("n", compilertest.Int), param("from", ptr(compilertest.Buf))),
		fn("later", void, param("a", compilertest.Int), param("b", compilertest.Int), param("c", compilertest.Int), param("d", compilertest.Int), param("buf", ptr(compilertest.Buf))),
		fn("collapse", void, param("a", compilertest.Int), param("b", compilertest.Int), param("to", ptr(compilertest.Buf)), param("from", ptr(compilertest.Buf))),
		fn("double", ptr(compilertest.Buf), param("of", ptr(compilertest.Buf))),
		fn("vfs_open", compilertest.Int, param("f", ptr(file))),
		fn("vfs_fsync", compilertest.Int, param("file", ptr(file))),
		fn("__fput", void, param("file", ptr(file))))
	text := compilertest.Symbols
	for i := range 10 { // more than ten, so that links are joined
		name := fmt.Sprintf("late%d", i)
		more = append(more, fn(name, void, param("a", compilertest.Int), param("b", compilertest.Int), param("c", compilertest.Int), param("buf", ptr(compilertest.Buf))))
		text += fmt.Sprintf("ffffffff810040%x0 T %s\n", i, name)
	}
	target := compilertest.NewTarget(t, f, more...)
	symbols, err := kallsyms.Read(strings.NewReader(text+`ffffffff81003000 T merge
ffffffff81003100 T vfs_open
ffffffff81003080 T copy
ffffffff81003200 T vfs_fsync
ffffffff81003300 T __fput
ffffffff81003400 T later
ffffffff81003500 T double
ffffffff81003600 T collapse
`), nil)
	require.NoError(t, err)
	target.Symbols = symbols
	return target
}

// newFollowRig returns a rig that follows objects.
func newFollowRig(t *testing.T, f compiler.Features, text string, w resolve.Following) *rig {
	target := newObjectsTarget(t, f)
	if !f.KprobeMulti {
		w.In = []string{"*"}
	}
	trace, err := spec.Parse(text)
	require.NoError(t, err)
	plan, err := resolve.Follow(trace, w, target)
	require.NoError(t, err)
	unit, err := generate(plan.Probes, compiler.Options{RingBytes: 1 << 20})
	require.NoError(t, err)
	for name, ps := range unit.Collection.Programs {
		requireReachable(t, name, ps.Instructions)
	}
	return withMachine(t, unit, target.Arch)
}

// seenObjects returns the records as lines: the number of the object, the function,
// the argument, the values.
func (r *rig) seenObjects() []string {
	var lines []string
	for _, rec := range r.records {
		ev := r.unit.Events[binary.LittleEndian.Uint32(rec)]
		line := fmt.Sprintf("%d %s", word(rec[ev.Layout.Object+compiler.ObjectNumber:][:8]), ev.Probe.Func.Name)
		if o := ev.Probe.Follow.Object; o.Base.Param != nil {
			line += " " + o.Base.Param.Name
		}
		for i, it := range ev.Items {
			line += fmt.Sprintf(" %s=%s", it.Name, showSlot(rec, ev, i))
		}
		lines = append(lines, line)
	}
	r.records = nil
	return lines
}

func showing(t *testing.T, items string) []*spec.Trace {
	trace, err := spec.Parse("show(" + items + ")")
	require.NoError(t, err)
	return []*spec.Trace{trace}
}

// Values of conditions and lines may be computed.
func TestFollowComputed(t *testing.T) {
	spanEnds(t, func(t *testing.T, f compiler.Features) {
		r := newFollowRig(t, f, "send(buf) if buf->len - buf->err > 100 && buf->len > buf->err", resolve.Following{Show: showing(t, "buf->len * 2 + (buf->err << 1)")})
		a, bytes := bufAndDev(r.machine)
		for _, err := range []uint32{100, 3} {
			binary.LittleEndian.PutUint32(bytes, 105)
			binary.LittleEndian.PutUint32(bytes[4:], err)
			r.do(call{fn: "send", args: []uint64{1, a}})
		}
		r.do(call{fn: "read", args: []uint64{a, 2, 3, 4}})
		require.Equal(t, []string{"1 send buf buf->len * 2 + (buf->err << 1)=216", "1 read buf buf->len * 2 + (buf->err << 1)=216"}, r.seenObjects())
	})
}

func TestFollow(t *testing.T) {
	spanEnds(t, func(t *testing.T, f compiler.Features) {
		r := newFollowRig(t, f, "send(buf) if buf->len > 100 || buf->err > 0", resolve.Following{Show: showing(t, "buf->len, buf->dev->name")})
		a, bytes := bufAndDev(r.machine)
		b, _ := bufAndDev(r.machine)
		cache := r.alloc(le(uint32(0), uint32(64)))
		send := func(buf uint64) { r.do(call{fn: "send", args: []uint64{1, buf}}) }
		read := func(buf uint64) { r.do(call{fn: "read", args: []uint64{buf, 2, 3, 4}}) }
		release := func(ptr uint64) { r.do(call{fn: "kmem_cache_free", args: []uint64{someCode, ptr, cache}}) }

		// Nothing is shown of an object that was not chosen, nor of none.
		read(a)
		send(0)
		read(0)
		release(0)
		binary.LittleEndian.PutUint32(bytes, 7)
		send(a)
		require.Empty(t, r.seenObjects())

		// From a call that matches on, all are shown, and this function's, too,
		// whether or not it matches again.
		binary.LittleEndian.PutUint32(bytes, 101)
		send(a)
		binary.LittleEndian.PutUint32(bytes, 9)
		send(a)
		read(a)
		read(b)
		require.Equal(t, []string{
			`1 send buf buf->len=101 buf->dev->name="eth0"`,
			`1 send buf buf->len=9 buf->dev->name="eth0"`,
			`1 read buf buf->len=9 buf->dev->name="eth0"`,
		}, r.seenObjects())

		// Each argument of the type is one of its own.
		r.do(call{fn: "late7", args: []uint64{a, a, a, b}})
		send(b)
		r.do(call{fn: "merge", args: []uint64{a, b}})
		require.ElementsMatch(t, []string{
			`2 send buf buf->len=105 buf->dev->name="eth0"`,
			`1 merge to buf->len=9 buf->dev->name="eth0"`,
			`2 merge from buf->len=105 buf->dev->name="eth0"`,
		}, r.seenObjects())

		r.do(call{fn: "late7", args: []uint64{a, a, a, b}})
		require.Equal(t, []string{`2 late7 buf buf->len=105 buf->dev->name="eth0"`}, r.seenObjects())

		// Memory that ends before an object, or begins after its beginning, is not
		// the object's. Once its memory is freed, another object is at the address.
		release(a - 64)
		release(a + 8)
		release(a - 70000)
		require.Empty(t, r.seenObjects())
		release(a - 56)
		release(a)
		read(a)
		require.Equal(t, []string{"1 kmem_cache_free ptr freed by=18446744071578849844"}, r.seenObjects())
		r.do(call{fn: "kfree", args: []uint64{someCode, b}})
		require.Equal(t, []string{"2 kfree ptr freed by=18446744071578849844"}, r.seenObjects())
		binary.LittleEndian.PutUint32(bytes, 102)
		send(a)
		require.Equal(t, []string{`3 send buf buf->len=102 buf->dev->name="eth0"`}, r.seenObjects())
	})
}

// Each object in memory that is freed ends, whatever else is near it.
func TestFollowFreed(t *testing.T) {
	spanEnds(t, func(t *testing.T, f compiler.Features) {
		r := newFollowRig(t, f, "send(buf)", resolve.Following{})
		memory := r.alloc(make([]byte, 4096))
		free := func(at, size uint64) {
			r.do(call{fn: "kmem_cache_free", args: []uint64{someCode, memory + at, r.alloc(le(uint32(0), uint32(size)))}})
		}
		for _, at := range []uint64{256, 0, 320, 384, 1024, 512} {
			r.do(call{fn: "send", args: []uint64{0, memory + at}})
		}
		r.seenObjects()
		const by = " kmem_cache_free ptr freed by=18446744071578849844"
		for _, tc := range []struct {
			at, size uint64
			want     []string
		}{
			{0, 64, []string{"2" + by}},
			{0, 256, nil},
			{192, 256, []string{"1" + by, "3" + by, "4" + by}},
			{192, 256, nil},
			{0, 4096, []string{"5" + by, "6" + by}},
		} {
			free(tc.at, tc.size)
			require.Equal(t, tc.want, r.seenObjects())
		}
		require.Zero(t, r.counters(0))
	})
}

func TestFollowManyObjects(t *testing.T) {
	spanEnds(t, func(t *testing.T, f compiler.Features) {
		r := newFollowRig(t, f, "send(buf)", resolve.Following{})
		var bufs []uint64
		for range compiler.MostObjects + 1 {
			buf, _ := bufAndDev(r.machine)
			bufs = append(bufs, buf)
		}
		var want []string
		for i, buf := range bufs {
			r.do(call{fn: "send", args: []uint64{0, buf}})
			if i < compiler.MostObjects {
				want = append(want, fmt.Sprintf("%d send buf", i+1))
			}
		}
		require.Equal(t, want, r.seenObjects())
		require.Equal(t, compiler.Counters{NoRoom: 1}, r.counters(0))

		// The place of one that has ended is free.
		r.do(call{fn: "kfree", args: []uint64{someCode, bufs[3]}})
		r.do(call{fn: "send", args: []uint64{0, bufs[8]}})
		r.do(call{fn: "send", args: []uint64{0, bufs[7]}})
		require.Equal(t, []string{"4 kfree ptr freed by=18446744071578849844", "9 send buf", "8 send buf"}, r.seenObjects())
	})
}

func TestFollowLimit(t *testing.T) {
	spanEnds(t, func(t *testing.T, f compiler.Features) {
		r := newFollowRig(t, f, "open(return)", resolve.Following{Objects: 1, Show: showing(t, "return->len")})
		a, _ := bufAndDev(r.machine)
		b, _ := bufAndDev(r.machine)
		open := func(result uint64) { r.do(call{fn: "open", args: []uint64{0, 0}, result: []uint64{result}}) }
		open(^uint64(1)) // -ENOENT
		open(a)
		open(b)
		r.do(call{fn: "free", args: []uint64{a, 0}})
		require.Equal(t, []string{"1 open return return->len=105", "1 free buf return->len=105"}, r.seenObjects())
		require.Zero(t, r.counters(0))
	})
}

func TestFollowEnds(t *testing.T) {
	spanEnds(t, func(t *testing.T, f compiler.Features) {
		r := newFollowRig(t, f, "vfs_open(f) if f->f_mode == 3", resolve.Following{})
		file := r.alloc(le(uint32(3), uint32(0)))
		for _, fn := range []string{"vfs_fsync", "vfs_open", "vfs_fsync", "__fput", "vfs_fsync"} {
			r.do(call{fn: fn, args: []uint64{file}})
		}
		require.Equal(t, []string{"1 vfs_open f", "1 vfs_fsync file", "1 __fput file"}, r.seenObjects())
	})
}

func TestFollowJoins(t *testing.T) {
	spanEnds(t, func(t *testing.T, f compiler.Features) {
		r := newFollowRig(t, f, "send(buf)", resolve.Following{Also: []string{"copy"}, Show: showing(t, "buf->len"), Objects: 2})
		a, bytes := bufAndDev(r.machine)
		b, _ := bufAndDev(r.machine)
		c, _ := bufAndDev(r.machine)
		copied := func(from, result uint64) {
			r.do(call{fn: "copy", args: []uint64{9, from}, result: []uint64{result}, during: func() { binary.LittleEndian.PutUint32(bytes, 7) }})
		}
		send := func(buf uint64) { r.do(call{fn: "send", args: []uint64{1, buf}}) }

		// What is returned is an object only if the function got one, and if it is
		// another one.
		copied(a, b)
		require.Empty(t, r.seenObjects())
		send(a)
		copied(a, 0)
		copied(a, ^uint64(11)) // -ENOMEM
		copied(a, a)
		require.Equal(t, []string{"1 send buf buf->len=7", "1 copy from buf->len=7", "1 copy from buf->len=7", "1 copy from buf->len=7"}, r.seenObjects())
		copied(a, b)
		parent := fmt.Sprintf("2 copy from buf=%d buf->len=105", a)
		require.Equal(t, []string{"1 copy from buf->len=7", parent}, r.seenObjects())
		send(b)
		copied(b, a)
		require.Equal(t, []string{"2 send buf buf->len=105", "2 copy from buf->len=105"}, r.seenObjects())

		// Objects that join do not count for the limit.
		send(c)
		require.Equal(t, []string{"3 send buf buf->len=105"}, r.seenObjects())

		// The first object ends while the function copies it.
		r.do(call{fn: "kfree", args: []uint64{someCode, b}})
		r.do(call{fn: "copy", args: []uint64{9, a}, result: []uint64{b}, during: func() { r.do(call{fn: "kfree", args: []uint64{someCode, a}}) }})
		require.Len(t, r.seenObjects(), 4)
		for i, n := range []int{0, 1, 2} {
			require.Zero(t, r.counters(i).Unpaired, n)
		}
	})
}

// Objects and other addresses are in the same bucket: each is told from the others, and
// is there until its own end.
func TestFollowSharedBucket(t *testing.T) {
	spanEnds(t, func(t *testing.T, f compiler.Features) {
		r := newFollowRig(t, f, "send(buf)", resolve.Following{})
		const apart = (compiler.BucketMask + 4) << compiler.BucketShift
		address := func(i int) uint64 { return someObject + uint64(i)*apart }
		read := func(i int) { r.do(call{fn: "read", args: []uint64{address(i), 2, 3, 4}}) }
		late := func(i int) { r.do(call{fn: "late7", args: []uint64{address(0), address(1), 0, address(i)}}) }
		end := func(i int) { r.do(call{fn: "kfree", args: []uint64{someCode, address(i)}}) }
		for i := range 3 {
			r.do(call{fn: "send", args: []uint64{0, address(i)}})
		}
		require.Len(t, r.seenObjects(), 3)
		for i := range 4 {
			read(i)
			late(i)
		}
		require.Equal(t, []string{"1 read buf", "1 late7 buf", "2 read buf", "2 late7 buf", "3 read buf", "3 late7 buf"}, r.seenObjects())
		end(1)
		end(1)
		end(3)
		require.Len(t, r.seenObjects(), 1)
		for i := range 4 {
			read(i)
			late(i)
		}
		require.Equal(t, []string{"1 read buf", "1 late7 buf", "3 read buf", "3 late7 buf"}, r.seenObjects())
		end(0)
		end(2)
		objects, err := r.at(r.arrays[compiler.ObjectsMap], compiler.ObjectsSize)
		require.NoError(t, err)
		require.Equal(t, make([]byte, compiler.BucketMask+4), objects[compiler.ObjectBuckets:])
	})
}

// TestFollowLinks verifies that there is a link for each of the first arguments that an
// object can be, where it ends, too, and one for the later ones. The function at which
// objects start has its own, with functions that are in the one for later arguments already.
func TestFollowLinks(t *testing.T) {
	late := "several: collapse late0 late1 late2 late3 late4 late5 late6 late7 late8 late9 later"
	for _, tc := range []struct {
		features compiler.Features
		spec     string
		also     []string
		want     []string
	}{
		{compilertest.WithMulti, "send(buf)", []string{"copy"}, []string{
			"several: collapse send", "2 in 0: double free merge read", "2 in 1: copy merge", "4 in 1: copy",
			strings.Replace(late, "late0", "copy late0", 1),
		}},
		{compilertest.WithKprobeSession, "send(buf)", []string{"copy"}, []string{
			"several: collapse send", "2 in 0: double free merge read", "2 in 1: copy merge", "4 in 1: copy", late,
		}},
		{compilertest.WithMulti, "vfs_open(f)", nil, []string{"1 in 0: vfs_open", "2 in 0: __fput vfs_fsync"}},
	} {
		var links []string
		for _, a := range newFollowRig(t, tc.features, tc.spec, resolve.Following{Also: tc.also}).unit.Attachments {
			if !a.Kind.Multi() {
				continue
			}
			var names []string
			for _, p := range a.Places {
				names = append(names, p.Probe.Func.Name)
			}
			slices.Sort(names)
			f, link := a.Places[0].Probe.Follow, "several"
			if len(a.Jumps) == 0 {
				link = fmt.Sprintf("%d in %d", f.Role, f.Object.Base.Param.Words[0].Slot)
			}
			links = append(links, link+": "+strings.Join(names, " "))
		}
		require.ElementsMatch(t, tc.want, links)
	}
}

// TestFollowCost verifies what a call with other objects than those that are followed
// costs, whichever argument they are: at most 40 instructions more than an empty program
// for each link.
func TestFollowCost(t *testing.T) {
	for name, f := range map[string]compiler.Features{"multi": compilertest.WithMulti, "session": compilertest.WithKprobeSession} {
		t.Run(name, func(t *testing.T) {
			r := newFollowRig(t, f, "send(buf)", resolve.Following{Also: []string{"copy", "double"}})
			r.do(call{fn: "send", args: []uint64{0, someObject}})
			r.do(call{fn: "copy", args: []uint64{9, someObject}, result: []uint64{someObject + 256}})
			require.Equal(t, []string{"1 send buf", "1 copy from", "2 copy from buf=18446612682375452160"}, r.seenObjects())
			for i := range compiler.MostObjects - 2 {
				r.do(call{fn: "send", args: []uint64{0, someObject + uint64(i+2)*256}})
			}
			require.Len(t, r.seenObjects(), compiler.MostObjects-2)
			const empty, other = 2, someObject - 256
			for fn, links := range map[string]int{"read": 1, "merge": 2, "late7": 1, "copy": 2, "double": 2} {
				r.ran = 0
				leave := r.enter(call{fn: fn, args: []uint64{other, other, other, other}[:r.function(fn).Words()], result: []uint64{other}})
				require.NotZero(t, r.ran)
				require.LessOrEqual(t, r.ran, links*(40+empty), fn)
				if f.SessionIsReturn != 0 {
					r.ran = 0
					leave()
					require.Zero(t, r.ran, fn)
				}
			}
		})
	}
}

// someObject is the address of an object.
const someObject = 0xffff_8880_1234_5600
