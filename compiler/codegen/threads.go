package codegen

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// What is kept of calls belongs to the thread that makes them: to its
// task_struct. That stays the same when the thread executes another program,
// and no other thread gets it before the kernel has freed it. Then the element
// is removed, too, with the calls that never returned, see
// generator.addFreed.
//
// Nearly always an element is in a table, in the bucket given by a hash of the
// task_struct's address. This costs a tenth of a lookup in a hash map. A thread
// whose bucket is taken has its element in a hash map. That map also decides
// who gets a bucket: the thread that inserts the bucket's number first. (Linux
// 5.10 has no atomic exchange for that.) Interrupts keep their calls in the
// element of the thread that they interrupt. They have ended before it
// continues, so plain loads and stores suffice.
const (
	threadsMap  = "threads"
	overflowMap = "overflow" // key: the address of a task_struct, or the number of a bucket that is taken
)

// Offsets in an element. Its slots are a stack like the calls: see
// program.take.
const (
	elementOwner    = 0  // in a bucket: the address of the task_struct, or 0
	elementOverflow = 8  // in a bucket: the number of threads that have found it taken
	elementTop      = 16 // offset of the topmost slot in use
	elementUnkept   = 24 // number of calls under way that have found no room, see program.countsUnpaired
	elementSlots    = 32
)

// threads describes the elements of a unit.
type threads struct {
	slots      int   // number of slots of each element
	slot       int   // size of a slot in bytes
	bucketBits int   // number of bits of a bucket's number
	big        []int // sizes of values that do not fit into a slot; their class is the index plus 1
	addresses  bool  // whether the frames of all calls that are kept begin with their return address
}

const (
	// slotRoom is the largest size in bytes of a value that is kept in the
	// thread's slot.
	slotRoom = 256
	// An element has as many slots as fit into elementSize bytes, but at least
	// fewSlots and at most manySlots.
	elementSize, fewSlots, manySlots = 1 << 10, 16, 32
	// mostBig is the largest number of sizes of large values: the class must
	// fit into the 3 bits that are 0 in every frame address.
	mostBig = 7
	// threadsSize limits the memory of the buckets in bytes.
	threadsSize = 1 << 20
	// overflowSize limits the memory of the elements of other threads where all
	// elements must be allocated in advance.
	overflowSize = 8 << 20
	// mostThreads is the largest number of threads.
	mostThreads = 65536
)

func (t *threads) size() int { return elementSlots + t.slots*t.slot }
func (t *threads) last() int { return (t.slots - 1) * t.slot }

// addThreads adds the maps for everything that the probes of the unit keep.
func (u *generator) addThreads(probes []*compiler.Probe, opts options) {
	if len(u.stashes) == 0 {
		return
	}
	t := &u.threads
	t.addresses = opts.Arch.RetAddr.Reg < 0 && !slices.ContainsFunc(probes, func(p *compiler.Probe) bool {
		return (p.Stash || p.Chain != nil) && p.Attach.Entry.Trampoline()
	})
	var big []int
	for _, s := range u.stashes {
		if s.size <= slotRoom {
			t.slot = max(t.slot, s.size)
		} else {
			big = append(big, s.size)
		}
	}
	t.slot = max(t.slot, tagSize)
	t.slots = min(max(elementSize/t.slot, fewSlots), manySlots)
	for t.size()<<(t.bucketBits+1) <= threadsSize {
		t.bucketBits++
	}
	u.addMap(threadsMap, ebpf.Array, 4, t.size()<<t.bucketBits, 1)
	u.addCalls(overflowMap, 8, t.size(), mostThreads, overflowSize, opts.Features)
	u.addZeroes(t.size())
	t.big = bigSizes(big)
	for _, size := range t.big {
		u.addCalls(bigMap(size), 16, size, callsInFlight, preallocated, opts.Features) // the key is the thread and the call's tag
		u.addZeroes(size)
	}
	for _, s := range u.stashes {
		if s.size > slotRoom {
			s.class = 1 + slices.IndexFunc(t.big, func(size int) bool { return size >= s.size })
			s.room = t.big[s.class-1]
		}
	}
	u.addFreed(t)
}

// bigSizes returns the sizes of the maps of large values in ascending order.
func bigSizes(sizes []int) []int {
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	if len(sizes) <= mostBig {
		return sizes
	}
	var some []int
	for i := range mostBig {
		some = append(some, sizes[(i+1)*len(sizes)/mostBig-1])
	}
	return some
}

func bigMap(size int) string { return fmt.Sprintf("calls%d", size) }

// addZeroes adds an array with one element of zeroes.
func (u *generator) addZeroes(size int) {
	u.addMap(fmt.Sprintf("zeroes%d", size), ebpf.Array, 4, size, 1)
}

// addCalls adds a hash map with n elements. Where they must all be allocated in
// advance, their memory is limited to most bytes.
func (u *generator) addCalls(name string, keySize, size, n, most int, f compiler.Features) {
	if f.RuntimeAlloc {
		u.addMap(name, ebpf.Hash, keySize, size, n).Flags = noPrealloc
	} else {
		u.addMap(name, ebpf.Hash, keySize, size, min(callsInFlight, most/size))
	}
}

const (
	// callsInFlight is the largest number of large values, and of threads on
	// kernels without [compiler.Features].RuntimeAlloc.
	callsInFlight = 10240
	// preallocated limits the memory of large values that must all be allocated
	// in advance.
	preallocated = 48 << 20
	// noPrealloc is BPF_F_NO_PREALLOC.
	noPrealloc = 1
)

// bucketNumber loads the number of the bucket of the task whose address is in
// R0 into R1.
func (c *code) bucketNumber(t *threads) {
	c.emit(
		asm.Mov.Reg32(asm.R1, asm.R0),
		asm.Mul.Imm32(asm.R1, 0x61C88647), // Fibonacci hashing
		asm.RSh.Imm32(asm.R1, int32(32-t.bucketBits)),
	)
}

// bucket points R2 to the bucket of the task whose address is in R0.
func (c *code) bucket(t *threads) {
	c.bucketNumber(t)
	c.emit(
		asm.Mul.Imm(asm.R1, int32(t.size())),
		asm.LoadMapValue(asm.R2, 0, 0).WithReference(threadsMap),
		asm.Add.Reg(asm.R2, asm.R1),
	)
}

// thread points R2 to the element of the current thread and returns the label
// of the code that follows. It jumps to missing if the thread has no element.
func (p *program) thread(missing string) (here string) {
	here, elsewhere := p.fresh("thread"), p.fresh("elsewhere")
	p.emit(asm.FnGetCurrentTask.Call())
	p.bucket(p.threads)
	p.emit(asm.LoadMem(asm.R1, asm.R2, elementOwner, asm.DWord), asm.JNE.Reg(asm.R1, asm.R0, elsewhere))
	p.label(here)
	p.later(elsewhere, func() {
		p.step("the thread has no bucket")
		p.emit(
			asm.LoadMem(asm.R1, asm.R2, elementOverflow, asm.DWord),
			asm.JEq.Imm(asm.R1, 0, missing),
			asm.StoreMem(asm.RFP, spKey, asm.R0, asm.DWord),
		)
		p.lookup(overflowMap, spKey, missing)
		p.emit(asm.Mov.Reg(asm.R2, asm.R0), asm.Ja.Label(here))
	})
	return here
}

// mapKey loads the first arguments of a call about the element of a map for the key at a
// stack offset.
func (c *code) mapKey(name string, key int) {
	c.emit(mapPtr(asm.R1, name))
	c.move(asm.R2, asm.RFP, key)
}

// callMap calls a helper for the element of a map for the key at a stack offset.
func (c *code) callMap(fn asm.BuiltinFunc, name string, key int) {
	c.mapKey(name, key)
	c.emit(fn.Call())
}

// lookup points R0 to the element of a map for the key at a stack offset.
func (c *code) lookup(name string, key int, missing string) {
	c.callMap(asm.FnMapLookupElem, name, key)
	c.emit(asm.JEq.Imm(asm.R0, 0, missing))
}

// insert adds an element to a map unless it has one for the key. The key and the value are
// at stack offsets. R0 is 0 if the element has been added.
func (c *code) insert(name string, key, value int) {
	c.mapKey(name, key)
	c.move(asm.R3, asm.RFP, value)
	c.emit(asm.Mov.Imm(asm.R4, int32(ebpf.UpdateNoExist)), asm.FnMapUpdateElem.Call())
}

// zeroes points R3 to as many zeroes, for a call that adds them to a map.
func (c *code) zeroes(size int, full string) {
	c.emit(asm.StoreImm(asm.RFP, spIndex, 0, asm.Word))
	c.lookup(fmt.Sprintf("zeroes%d", size), spIndex, full)
	c.emit(asm.Mov.Reg(asm.R3, asm.R0))
}

// insertZeroes adds an element of zeroes to a map. The key is at a stack
// offset. R0 is 0 if there was room and no such element. Other values of R0
// depend on the kernel: before 6.4 an error has 32 bits.
func (c *code) insertZeroes(name string, key, size int, flags ebpf.MapUpdateFlags, full string) {
	c.zeroes(size, full)
	c.mapKey(name, key)
	c.emit(asm.Mov.Imm(asm.R4, int32(flags)), asm.FnMapUpdateElem.Call())
}

// newThread creates an element for the current thread, points R2 to it and
// jumps to here. An interrupt may do so meanwhile, too. The element in the bucket counts:
// the other is deleted, or a program that an interrupt stopped before it had looked
// into the bucket would find it.
func (p *program) newThread(here, full string) {
	t := p.threads
	taken, inserted, two, one := p.fresh("taken"), p.fresh("inserted"), p.fresh("two"), p.fresh("one")
	p.step("an element for the thread: is its bucket free?")
	p.emit(asm.FnGetCurrentTask.Call(), asm.StoreMem(asm.RFP, spTask, asm.R0, asm.DWord))
	p.bucketNumber(t)
	p.emit(asm.StoreMem(asm.RFP, spKey, asm.R1, asm.DWord))
	p.insertZeroes(overflowMap, spKey, t.size(), ebpf.UpdateNoExist, full)
	p.emit(asm.JNE.Imm(asm.R0, 0, taken), asm.LoadMem(asm.R0, asm.RFP, spTask, asm.DWord))
	p.bucket(t)
	p.emit(
		asm.StoreMem(asm.R2, elementOwner, asm.R0, asm.DWord),
		asm.LoadMem(asm.R1, asm.R2, elementOverflow, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, here),
	)
	p.label(two)
	p.step("an element besides that in the bucket is not needed")
	p.callMap(asm.FnMapDeleteElem, overflowMap, spTask)
	p.emit(asm.JNE.Imm(asm.R0, 0, one)) // there is none
	p.countOverflow(-1)
	p.label(one)
	p.emit(asm.LoadMem(asm.R0, asm.RFP, spTask, asm.DWord))
	p.bucket(t)
	p.emit(asm.Ja.Label(here))
	p.label(taken)
	p.step("it is taken")
	p.countOverflow(1)
	p.insertZeroes(overflowMap, spTask, t.size(), ebpf.UpdateNoExist, full)
	p.emit(asm.JEq.Imm(asm.R0, 0, inserted))
	p.countOverflow(-1) // the map is full, or an interrupt has inserted the element
	p.label(inserted)
	p.emit(asm.LoadMem(asm.R0, asm.RFP, spTask, asm.DWord))
	p.bucket(t)
	p.emit(
		asm.LoadMem(asm.R1, asm.R2, elementOwner, asm.DWord),
		asm.JEq.Reg(asm.R1, asm.R0, two), // an interrupt has taken it for the thread
	)
	p.lookup(overflowMap, spTask, full)
	p.emit(asm.Mov.Reg(asm.R2, asm.R0), asm.Ja.Label(here))
}

// countOverflow adds n to the number of threads that have found the bucket of
// the task at spTask taken.
func (p *program) countOverflow(n int32) {
	p.emit(asm.LoadMem(asm.R0, asm.RFP, spTask, asm.DWord))
	p.bucket(p.threads)
	p.emit(asm.Mov.Imm(asm.R1, n), asm.AddAtomic.Mem(asm.R2, asm.R1, asm.DWord, elementOverflow))
}
