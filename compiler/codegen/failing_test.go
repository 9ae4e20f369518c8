package codegen

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/resolve"
)

// failures has what the helpers of generated programs return when they fail, as the
// kernels of package e2e do.
var failures = func() map[asm.BuiltinFunc][]uint64 {
	all := map[asm.BuiltinFunc][]uint64{}
	for _, e := range compilertest.HelperErrors() {
		for _, n := range e.Errors {
			all[e.Helper] = append(all[e.Helper], errno(n))
		}
		if len(e.Errors) == 0 {
			all[e.Helper] = append(all[e.Helper], 0)
		}
	}
	return all
}()

// neverFail lists the helpers that have no error, or none that a program can meet: the
// number of an argument is below that of the arguments, a thread is never without its
// name, and the map of a tail call is filled before its program is attached.
var neverFail = []asm.BuiltinFunc{
	asm.FnGetCurrentPidTgid, asm.FnGetCurrentUidGid, asm.FnGetCurrentCgroupId, asm.FnGetCurrentTask, asm.FnGetCurrentTaskBtf,
	asm.FnGetSmpProcessorId, asm.FnKtimeGetNs, asm.FnGetAttachCookie, asm.FnGetFuncIp, asm.FnGetFuncArg, asm.FnGetFuncRet,
	asm.FnGetCurrentComm, asm.FnRingbufSubmit, asm.FnRingbufDiscard, asm.FnTailCall,
}

// failing makes one call of a helper fail.
type failing struct {
	at, calls int             // its number among the calls of helpers that can fail, from 1, and how many there were
	which     int             // of the results that the helper has then
	fn        asm.BuiltinFunc // the helper, once it has failed
	sure      uint64          // address that can be read in any case
	locks     bool            // whether the kernel is so old that a lock is an element of a map
}

// owns reports whether an address is in a map or in a record.
func (m *machine) owns(addr uint64) bool {
	inside := func(at uint64, size uint32) bool { return at != 0 && addr-at < uint64(size) }
	for name, spec := range m.maps {
		if inside(m.arrays[name], spec.ValueSize*spec.MaxEntries) {
			return true
		}
		for _, at := range m.hashes[name] {
			if inside(at, spec.ValueSize) {
				return true
			}
		}
	}
	for at, record := range m.open {
		if inside(at, uint32(len(record))) {
			return true
		}
	}
	return false
}

// fails makes the helper fail if it is the one that is to fail, and returns its result.
func (m *machine) fails(fn asm.BuiltinFunc) (result uint64, failed bool) {
	f, results := m.failing, failures[fn]
	switch {
	case f == nil || len(results) == 0:
		return 0, false
	case fn == asm.FnMapLookupElem && m.arrays[m.names[m.regs[1]]] != 0:
		return 0, false // there is always such an element
	case fn == asm.FnMapDeleteElem && f.locks:
		return 0, false
	case (fn == asm.FnProbeReadKernel || fn == asm.FnProbeReadKernelStr) && (m.owns(m.regs[3]) || m.regs[3] == f.sure):
		return 0, false
	}
	if f.calls++; f.calls != f.at || f.which >= len(results) {
		return 0, false
	}
	f.fn = fn
	switch fn { // what was to be read is zeroes
	case asm.FnGetStack:
		m.zero(m.regs[2], m.regs[3])
	case asm.FnProbeReadKernel, asm.FnProbeReadUser, asm.FnProbeReadKernelStr, asm.FnProbeReadUserStr:
		m.zero(m.regs[1], m.regs[2])
	}
	return results[f.which], true
}

// zero stores n zeroes at an address.
func (m *machine) zero(addr, n uint64) {
	if b, err := m.at(addr, n); err == nil {
		m.write(addr, len(b))
		clear(b)
	}
}

// A failingTrial makes calls in which helpers fail, one after another.
type failingTrial struct {
	name  string
	rig   func(t *testing.T, f compiler.Features) *rig
	calls func(r *rig, buf uint64)
}

var failingTrials = []failingTrial{
	{"events", failingSpecs(resolve.Wishes{}, "read(count, buf->len, buf->dev->name, buf->dev->alias, ubuf:ustring, $kstack, $ustack, $comm)"), failingReads},
	{"events of some calls", failingSpecs(resolve.Wishes{}, `read(count) if buf->len > 0 && buf->dev->alias ~ "up*" && ubuf:ustring != "x"`), failingReads},
	{"calls", failingSpecs(resolve.Wishes{}, keeping[0].all), failingReads},
	{"large calls", failingSpecs(resolve.Wishes{}, keeping[1].all), failingReads},
	{"kprobe_events", failingSpecs(resolve.Wishes{}, "p read +0(%di):u32 +u0(%si):u16 +u0(%si):string"), failingReads},
	{"chain", failingSpecs(resolve.Wishes{Chain: true}, "send(buf->len > 0)", "read(buf->len, return)"), failingChain},
	{"chain of large calls", failingSpecs(resolve.Wishes{Chain: true}, "send(buf, buf->dev->alias)", "read(buf->len > 0, ubuf:ustring, return)"), failingChain},
	{"span", failingSpecs(resolve.Wishes{}, "send(buf->len, buf->dev->alias) if buf->len > 0 => free(data, $duration) on buf"), failingSpan},
	{"table of spans", failingSpecs(resolve.Wishes{}, "send(buf->dev->name, $kstack, count()) => free(max($duration)) on buf"), failingSpan},
	{"table", failingSpecs(resolve.Wishes{}, "read(buf->dev->alias, $kstack, $comm, count(), max(count), hist(return))"), failingReads},
	{"rate", func(t *testing.T, f compiler.Features) *rig {
		return newRig(t, f, compiler.Options{CountCalls: true, Rate: 2}, keeping[0].all)
	}, func(r *rig, buf uint64) { failingReads(r, buf); r.time += second }},
	{"tree", func(t *testing.T, f compiler.Features) *rig { return newProcesses(t, f).rig }, failingTree},
	{"cgroup", func(t *testing.T, f compiler.Features) *rig {
		return newRig(t, f, compiler.Options{CountCalls: true, Cgroup: true, Self: 999}, keeping[0].all)
	}, failingReads},
	{"count", failingMeasure(compiler.Calls), failingReads},
	{"durations", failingMeasure(compiler.Durations), failingReads},
	{"values", failingMeasure(compiler.Values), failingReads},
	{"changes", failingMeasure(compiler.Changes), failingReads},
	{"objects", func(t *testing.T, f compiler.Features) *rig {
		return newFollowRig(t, f, "send(buf) if buf->len > 100", resolve.Following{Show: showing(t, "buf->len, buf->dev->name")})
	}, failingObjects},
	{"rows", func(t *testing.T, f compiler.Features) *rig {
		return newIteration(t, f, compiler.Options{CountCalls: true}, "iter:buf(buf->len, buf->dev->alias, fd) if fd > 1").rig
	}, failingRows},
	{"watched memory", func(t *testing.T, f compiler.Features) *rig {
		return newWatch(t, compiler.AMD64, f, "(int)@jiffies if (int)@jiffies > 0")
	}, failingWatch},
	{"watched objects", func(t *testing.T, f compiler.Features) *rig {
		return newWatchObjects(t, f, "send(buf->err < 0) if buf->len > 100", 2)
	}, failingObjects},
}

func failingSpecs(w resolve.Wishes, specs ...string) func(t *testing.T, f compiler.Features) *rig {
	return func(t *testing.T, f compiler.Features) *rig {
		return newRigOf(t, f, compiler.Options{CountCalls: true, MaxBytes: 300}, w, specs...)
	}
}

func failingMeasure(m compiler.Measure) func(t *testing.T, f compiler.Features) *rig {
	return func(t *testing.T, f compiler.Features) *rig {
		spec := "read(buf->dev->index > 0, return >= 0)"
		if m == compiler.Values {
			spec = "read(buf->dev->index, return >= 0)"
		}
		return newMeasured(t, f, m, spec)
	}
}

// failingReads makes two calls of read, one in the other, and one in another thread
// that has the same bucket.
func failingReads(r *rig, buf uint64) {
	user := uint64(0x7fff_0000_1000)
	r.put(user, []byte("text of a process\x00"))
	read := func(count uint64) call {
		return call{fn: "read", args: []uint64{buf, user, count, 0}, result: []uint64{count}}
	}
	r.nest(read(5), r.nest(read(6)))()
	if len(r.unit.threads.big)+r.unit.threads.slots == 0 {
		return
	}
	task := r.task
	r.task = r.neighbour(task)
	r.nest(read(7))()
	r.free(r.task)
	r.task = task
}

// failingChain makes two calls of read in one of send.
func failingChain(r *rig, buf uint64) {
	r.put(0x7fff_0000_1000, []byte("text of a process\x00"))
	read := call{fn: "read", args: []uint64{buf, 0x7fff_0000_1000, 5, 0}, result: []uint64{5}}
	r.nest(call{fn: "send", args: []uint64{0, buf}, result: []uint64{0}}, r.nest(read), r.nest(read))()
}

// failingSpan makes a call of send, and one of free that ends its span.
func failingSpan(r *rig, buf uint64) {
	r.do(call{fn: "send", args: []uint64{0, buf}})
	r.time += 10
	r.do(call{fn: "free", args: []uint64{buf, 7}})
}

// failingTree traces a process while another one begins and ends.
func failingTree(r *rig, buf uint64) {
	p := &processes{r}
	p.follow(7, 0xa)
	parent, child := p.task(7, 7, 0xa), p.task(11, 11, 0xc)
	p.at("sched_process_fork", parent, child)
	failingReads(r, buf)
	p.at("sched_process_free", child)
}

// failingObjects shows an object until it ends.
func failingObjects(r *rig, buf uint64) {
	cache := r.alloc(le(uint32(0), uint32(64)))
	if r.failing != nil {
		r.failing.sure = cache + 4 // the kernel has read it before
	}
	for range 2 {
		r.do(call{fn: "send", args: []uint64{1, buf}})
	}
	r.do(call{fn: "kmem_cache_free", args: []uint64{someCode, buf, cache}})
}

// failingRows reads an iterator, as the kernel does: what has found no room in its
// buffer is written again.
func failingRows(r *rig, buf uint64) {
	it := &iteration{rig: r}
	it.seqFile, it.seqRoom, it.seq = r.alloc(make([]byte, 8)), 1<<15, nil
	for range 3 {
		if !it.object(buf, 2) {
			it.object(buf, 2)
		}
		it.next()
	}
	r.records = it.rows()
}

// failingWatch writes to watched memory.
func failingWatch(r *rig, _ uint64) {
	memory := make([]byte, 8)
	r.put(watchedAt, memory)
	binary.LittleEndian.PutUint64(r.watchedSlot(0)[compiler.WatchedAddr:], watchedAt)
	for value := range uint64(3) {
		r.writeMemory(memory, value, someCode)
	}
}

// A recorded holds the records and the counts of a machine.
type recorded struct {
	records [][]string // the function, the kind of event, and the values
	told    uint64     // how often the programs counted that something is missing
}

// recorded returns what there is since the last time.
func (r *rig) recorded() (o recorded) {
	for _, rec := range r.records {
		ev := r.unit.Events[binary.LittleEndian.Uint32(rec[compiler.HeaderEvent:])]
		values := []string{fmt.Sprintf("%s %d", ev.Probe.Func.Name, ev.Kind)}
		for i := range ev.Items {
			values = append(values, showSlot(rec, ev, i))
		}
		o.records = append(o.records, values)
	}
	r.records = nil
	for i := range r.unit.Events {
		c := r.counters(i)
		o.told += c.Lost + c.NoRoom + c.Unreadable + c.Unpaired + c.Replaced + c.Open
		if len(r.unit.Tables) > 0 {
			o.told += r.unit.Counters.Sum(i, compiler.CounterFaulted, r.word) + r.unit.Counters.Sum(i, compiler.CounterFull, r.word)
		}
	}
	o.told += r.word(compiler.ControlUnfollowed)
	return o
}

// requireShown checks that records are those that are wanted, or say of values that
// they could not be read.
func requireShown(t testing.TB, want, got [][]string, message string) {
	t.Helper()
	require.Len(t, got, len(want), message)
	for i, w := range want {
		require.Len(t, got[i], len(w), message)
		for j, value := range got[i] {
			if !strings.Contains(value, "fault(") {
				require.Equal(t, w[j], value, message)
			}
		}
	}
}

// When a helper fails, whatever its error, a program that runs on shows no wrong value;
// what is not shown is counted; and later calls are shown as always.
func TestFailures(t *testing.T) {
	failed, used := map[asm.BuiltinFunc]bool{}, map[asm.BuiltinFunc]bool{}
	for _, trial := range failingTrials {
		t.Run(trial.name, func(t *testing.T) {
			spanEnds(t, func(t *testing.T, f compiler.Features) {
				of := trial.rig(t, f)
				if !f.CompareExchange && !locks(of.unit) {
					return // the programs are the same
				}
				want := trial.run(of, nil)
				for at := 1; ; at++ {
					fail := &failing{at: at, locks: !f.CompareExchange}
					requireTold(of.t, want, trial.run(of, fail), fail)
					for fail.which++; fail.which < len(failures[fail.fn]); fail.which++ {
						fail.calls = 0
						requireTold(of.t, want, trial.run(of, fail), fail)
					}
					if fail.fn == 0 {
						break
					}
					failed[fail.fn] = true
				}
				for _, ps := range of.unit.Collection.Programs {
					for _, in := range ps.Instructions {
						if in.IsBuiltinCall() {
							used[asm.BuiltinFunc(in.Constant)] = true
						}
					}
				}
			})
		})
	}
	for _, fn := range neverFail {
		delete(used, fn)
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(used)), slices.Collect(maps.Keys(failed)))
	require.ElementsMatch(t, slices.Collect(maps.Keys(failures)), slices.Collect(maps.Keys(failed)))
}

// locks reports whether a program keeps others out by an element of a map.
func locks(u *generator) bool {
	names := u.Collection.Maps
	return names[objectLock] != nil || names[rateLocks] != nil || names[waitLocks] != nil
}

// run makes the calls three times. In the first of them, a helper may fail.
func (trial failingTrial) run(of *rig, fail *failing) (all [3]recorded) {
	r := withMachine(of.t, of.unit, of.arch)
	r.cgroup, r.failing = 1, fail
	buf, _ := bufAndDev(r.machine)
	for i := range all {
		trial.calls(r, buf)
		all[i] = r.recorded()
		r.failing = nil
	}
	return all
}

// requireTold checks that what a failure hides is counted, and that it hides nothing
// of later calls.
func requireTold(t testing.TB, want, got [3]recorded, fail *failing) {
	t.Helper()
	message := fmt.Sprintf("call %d of helpers, %v, has failed (%d)", fail.at, fail.fn, fail.which)
	filter := fail.fn == asm.FnMapLookupElem || fail.fn == asm.FnCurrentTaskUnderCgroup
	if got[0].told == want[0].told && !filter {
		requireShown(t, want[0].records, got[0].records, message)
	}
	require.Equal(t, want[2].records, got[2].records, message)
	require.Equal(t, want[2].told-want[1].told, got[2].told-got[1].told, message)
}
