package codegen

import (
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// FreeTracepoint is the tracepoint at which a thread is freed: after it, the
// thread makes no more calls.
const FreeTracepoint = "sched_process_free"

// addFreed generates the program that forgets the calls of a freed thread.
func (u *generator) addFreed(t *threads) {
	f := &freed{code: &code{}, threads: t}
	f.step("%s sched_process_free(p)", compiler.TpBTF)
	f.emit(asm.Mov.Reg(asm.R3, asm.R1), asm.Mov.Imm(asm.R2, 8))
	f.move(asm.R1, asm.RFP, spTask)
	f.emit(asm.FnProbeReadKernel.Call())
	f.ownBucket()
	f.emit(
		asm.LoadMem(asm.R1, asm.R2, elementOwner, asm.DWord),
		asm.JNE.Reg(asm.R1, asm.R0, "overflow"),
		asm.Mov.Reg(asm.R8, asm.R2),
	)
	f.empty("bucket")
	f.step("its bucket is free")
	f.ownBucket()
	f.emit(
		asm.Mov.Imm(asm.R3, 0),
		asm.StoreMem(asm.R2, elementTop, asm.R3, asm.DWord),
		asm.StoreMem(asm.R2, elementUnkept, asm.R3, asm.DWord),
		asm.StoreMem(asm.R2, elementOwner, asm.R3, asm.DWord),
	)
	f.bucketNumber(t)
	f.emit(asm.StoreMem(asm.RFP, spKey, asm.R1, asm.DWord))
	f.callMap(asm.FnMapDeleteElem, overflowMap, spKey)
	f.label("overflow")
	f.step("what it has had without a bucket")
	f.ownBucket()
	f.emit(asm.LoadMem(asm.R1, asm.R2, elementOverflow, asm.DWord), asm.JEq.Imm(asm.R1, 0, "exit"))
	f.lookup(overflowMap, spTask, "exit")
	f.emit(asm.Mov.Reg(asm.R8, asm.R0))
	f.empty("overflow")
	f.callMap(asm.FnMapDeleteElem, overflowMap, spTask)
	f.ownBucket()
	f.emit(asm.Mov.Imm(asm.R1, -1), asm.AddAtomic.Mem(asm.R2, asm.R1, asm.DWord, elementOverflow))
	f.leave()
	f.finish()
	u.addCompanion(FreeTracepoint, "calls of threads", f.insns)
}

// freed is the program that addFreed generates.
type freed struct {
	*code
	*threads
}

// ownBucket points R2 to the bucket of the thread whose task_struct is at
// spTask. It leaves the address of the task_struct in R0.
func (f *freed) ownBucket() {
	f.emit(asm.LoadMem(asm.R0, asm.RFP, spTask, asm.DWord))
	f.bucket(f.threads)
}

// empty forgets the calls in the element at R8.
func (f *freed) empty(prefix string) {
	slot, next := prefix+"slot", prefix+"next"
	f.step("calls that have not returned")
	if len(f.big) == 0 {
		f.emit(asm.Mov.Imm(asm.R3, 0))
		for i := range f.slots {
			f.emit(asm.StoreMem(asm.R8, int16(elementSlots+i*f.slot), asm.R3, asm.DWord))
		}
		return
	}
	f.emit(asm.Mov.Imm(asm.R9, 0))
	f.label(slot)
	f.emit(
		asm.Mov.Reg(asm.R1, asm.R8),
		asm.Add.Reg(asm.R1, asm.R9),
		asm.LoadMem(asm.R2, asm.R1, elementSlots, asm.DWord),
		asm.JEq.Imm(asm.R2, 0, next),
		asm.Mov.Imm(asm.R3, 0),
		asm.StoreMem(asm.R1, elementSlots, asm.R3, asm.DWord),
	)
	f.deleteBig(prefix)
	f.label(next)
	f.checkpoint(loopJumps)
	f.step("the next slot")
	f.emit(asm.Add.Imm(asm.R9, int32(f.slot)), asm.JLE.Imm(asm.R9, int32(f.last()), slot))
}

// deleteBig deletes the large value of the call whose tag is in R2, if there is
// one.
func (f *freed) deleteBig(prefix string) {
	f.emit(
		asm.LoadMem(asm.R1, asm.RFP, spTask, asm.DWord),
		asm.StoreMem(asm.RFP, spBig, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, spBig+8, asm.R2, asm.DWord),
		asm.Mov.Reg(asm.R4, asm.R2),
	)
	f.deleteClass(f.threads, prefix)
}

// deleteClass deletes the large value with the key at spBig, of the class of the tag in R4,
// if there is one.
func (c *code) deleteClass(t *threads, prefix string) {
	done := prefix + c.fresh("deleted")
	c.emit(asm.And.Imm(asm.R4, mostBig))
	for i, size := range t.big {
		other := prefix + c.fresh("class")
		c.emit(asm.JNE.Imm(asm.R4, int32(i+1), other))
		c.callMap(asm.FnMapDeleteElem, bigMap(size), spBig)
		c.emit(asm.Ja.Label(done))
		c.label(other)
	}
	c.label(done)
}
