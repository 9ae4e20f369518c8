package compilertest

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// A HelperError is an error of a helper that generated programs call.
type HelperError struct {
	Helper asm.BuiltinFunc
	Name   string
	Errors []int64 // R0 is one of them, as a negative number; 0 if there are none
	// Half is set if R0 may have 32 bits, as with maps before Linux 6.4.
	Half bool
	// Program makes the helper fail, and stores R0 in the map [HelperResult], and
	// after it eight bytes of what should have been read.
	Program asm.Instructions
	Maps    map[string]*ebpf.MapSpec
	At      HelperPlace // where the program runs
	// New is set if kernels without [compiler.Features].RuntimeAlloc have no such error.
	New bool
	// Zeroes is set if what should have been read is zeroes.
	Zeroes bool
}

// A HelperPlace is the context of a program in which a helper fails.
type HelperPlace int

const (
	InTestRun   HelperPlace = iota // BPF_PROG_TEST_RUN of a raw tracepoint's program
	InIterator                     // iterator of tasks
	InInterrupt                    // raw tracepoint hrtimer_expire_entry: no allocator can get new memory
	InUpdate                       // fentry of lookup_elem_raw while the map "map" is updated: the element's bucket is locked
)

// HelperResult is the array with what a program has seen.
const HelperResult = "result"

// HelperErrors lists the errors of all helpers that generated programs call, except for
// those that a program cannot meet. An update or a delete in an update fails with EBUSY
// since Linux 5.11 (20b6cc34ea74), and with EDEADLK since 6.15 (4fa8d68aa53e).
func HelperErrors() []HelperError {
	return []HelperError{
		{Helper: asm.FnMapLookupElem, Name: "lookup of no element", Program: failing(onMap(), asm.FnMapLookupElem.Call()), Maps: hash()},
		{Helper: asm.FnMapUpdateElem, Name: "update of an element that is there", Errors: []int64{eexist}, Half: true, Maps: hash(),
			Program: failing(update(ebpf.UpdateAny), update(ebpf.UpdateNoExist))},
		{Helper: asm.FnMapUpdateElem, Name: "update of a full map", Errors: []int64{e2big}, Half: true, Maps: hash(),
			Program: failing(update(ebpf.UpdateAny), asm.StoreImm(asm.RFP, -8, 7, asm.Word), update(ebpf.UpdateAny))},
		{Helper: asm.FnMapUpdateElem, Name: "update without memory", Errors: []int64{enomem}, Half: true, Maps: allocating(),
			Program: failing(once(), filled()), At: InInterrupt, New: true},
		{Helper: asm.FnMapUpdateElem, Name: "update in an update", Errors: []int64{ebusy, edeadlk}, Half: true, Maps: hash(),
			Program: failing(update(ebpf.UpdateAny)), At: InUpdate, New: true},
		{Helper: asm.FnMapDeleteElem, Name: "delete of no element", Errors: []int64{enoent}, Half: true, Maps: hash(),
			Program: failing(onMap(), asm.FnMapDeleteElem.Call())},
		{Helper: asm.FnMapDeleteElem, Name: "delete in an update", Errors: []int64{ebusy, edeadlk}, Half: true, Maps: hash(),
			Program: failing(onMap(), asm.FnMapDeleteElem.Call()), At: InUpdate, New: true},
		reads(asm.FnProbeReadKernel, "kernel memory", badKernel),
		reads(asm.FnProbeReadUser, "user memory", badUser),
		reads(asm.FnProbeReadKernelStr, "a string of the kernel", badKernel),
		reads(asm.FnProbeReadUserStr, "a string of a process", badUser),
		{Helper: asm.FnGetStack, Name: "stack of a size that is not a multiple", Errors: []int64{einval}, Zeroes: true,
			Program: failing(stack(12, 0))},
		{Helper: asm.FnGetStack, Name: "stack of fewer frames than are skipped", Errors: []int64{efault}, Zeroes: true,
			Program: failing(stack(16, allSkipped))},
		{Helper: asm.FnGetStackid, Name: "stack in the place of another one", Errors: []int64{eexist}, Maps: stacks(),
			Program: failing(stackID(0), stackID(0))},
		{Helper: asm.FnGetStackid, Name: "number of no stack", Errors: []int64{efault}, Maps: stacks(), Program: failing(stackID(allSkipped))},
		{Helper: asm.FnCurrentTaskUnderCgroup, Name: "no control group", Errors: []int64{eagain}, Maps: cgroups(), Program: failing(underCgroup())},
		{Helper: asm.FnCurrentTaskUnderCgroup, Name: "no control group in an interrupt", Errors: []int64{eagain}, Maps: cgroups(),
			Program: failing(once(), underCgroup()), At: InInterrupt},
		{Helper: asm.FnRingbufReserve, Name: "record for which there is no room", Maps: ring(), Program: reserved()},
		{Helper: asm.FnSeqWrite, Name: "row for which there is no room", Errors: []int64{eoverflow}, Program: rows(), At: InIterator},
	}
}

// Numbers of errors (include/uapi/asm-generic/errno-base.h, errno.h).
const (
	enoent    = 2
	e2big     = 7
	eagain    = 11
	enomem    = 12
	efault    = 14
	ebusy     = 16
	eexist    = 17
	einval    = 22
	erange    = 34
	edeadlk   = 35
	eoverflow = 75
)

// noPrealloc makes a hash map allocate elements when they are needed.
const noPrealloc = 1 // BPF_F_NO_PREALLOC

// allSkipped makes a helper skip more frames of the stack than there are.
const allSkipped = 0xff // BPF_F_SKIP_FIELD_MASK

// Addresses at which there is nothing.
const (
	badKernel = -4096 // the last page
	badUser   = 8     // in the first page
)

func hash() map[string]*ebpf.MapSpec {
	return map[string]*ebpf.MapSpec{"map": {Type: ebpf.Hash, KeySize: 8, ValueSize: 8, MaxEntries: 1}}
}

// allocating returns a hash map with room for more elements than filled adds.
func allocating() map[string]*ebpf.MapSpec {
	return map[string]*ebpf.MapSpec{"map": {Type: ebpf.Hash, KeySize: 8, ValueSize: 8, MaxEntries: 1000, Flags: noPrealloc}}
}

func stacks() map[string]*ebpf.MapSpec {
	return map[string]*ebpf.MapSpec{"map": {Type: ebpf.StackTrace, KeySize: 4, ValueSize: 8 * 16, MaxEntries: 1}}
}

func cgroups() map[string]*ebpf.MapSpec {
	return map[string]*ebpf.MapSpec{"map": {Type: ebpf.CGroupArray, KeySize: 4, ValueSize: 4, MaxEntries: 1}}
}

func ring() map[string]*ebpf.MapSpec {
	return map[string]*ebpf.MapSpec{"map": {Type: ebpf.RingBuf, MaxEntries: 4096}}
}

// failing returns a program of parts, the last of which makes a helper fail. A part is an
// instruction or several.
func failing(parts ...any) asm.Instructions {
	insns := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.Mov.Imm(asm.R0, -1),
		asm.StoreMem(asm.RFP, -8, asm.R0, asm.DWord),
		asm.StoreMem(asm.RFP, -16, asm.R0, asm.DWord),
		asm.StoreMem(asm.RFP, -24, asm.R0, asm.DWord),
	}
	for _, part := range parts {
		switch part := part.(type) {
		case asm.Instruction:
			insns = append(insns, part)
		case asm.Instructions:
			insns = append(insns, part...)
		}
	}
	return append(insns,
		asm.LoadMapValue(asm.R1, 0, 0).WithReference(HelperResult),
		asm.StoreMem(asm.R1, 0, asm.R0, asm.DWord),
		asm.LoadMem(asm.R2, asm.RFP, -24, asm.DWord),
		asm.StoreMem(asm.R1, 8, asm.R2, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("exit"),
		asm.Return(),
	)
}

func mapPtr() asm.Instruction { return asm.LoadMapPtr(asm.R1, 0).WithReference("map") }

// onMap loads the map and its key.
func onMap() asm.Instructions {
	return asm.Instructions{mapPtr(), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -8)}
}

func update(flags ebpf.MapUpdateFlags) asm.Instructions {
	return append(onMap(),
		asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, -16), asm.Mov.Imm(asm.R4, int32(flags)), asm.FnMapUpdateElem.Call())
}

// toStack points R1 to sixteen bytes of the stack frame.
func toStack() asm.Instructions {
	return asm.Instructions{asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, -24)}
}

// reads returns the error of a helper that reads from a bad address. The kernel refuses
// some addresses with ERANGE.
func reads(helper asm.BuiltinFunc, what string, addr int32) HelperError {
	return HelperError{Helper: helper, Name: what + " where there is none", Errors: []int64{efault, erange}, Zeroes: true,
		Program: failing(toStack(), asm.Mov.Imm(asm.R2, 8), asm.Mov.Imm(asm.R3, addr), helper.Call())}
}

// once ends the program if it has run before.
func once() asm.Instructions {
	return asm.Instructions{
		asm.LoadMapValue(asm.R1, 0, 0).WithReference(HelperResult), asm.LoadMem(asm.R1, asm.R1, 0, asm.DWord), asm.JNE.Imm(asm.R1, 0, "exit"),
	}
}

// filled adds elements until one cannot be added, at most as many as the kernel keeps free
// memory for on each processor, and some more (kernel/bpf/memalloc.c).
func filled() asm.Instructions {
	insns := asm.Instructions{}
	for key := range int32(128) {
		insns = append(insns, asm.StoreImm(asm.RFP, -8, int64(key), asm.Word))
		insns = append(append(insns, update(ebpf.UpdateAny)...), asm.JNE.Imm(asm.R0, 0, "failed"))
	}
	return append(insns, asm.Mov.Reg(asm.R0, asm.R0).WithSymbol("failed"))
}

// stack reads the stack of the thread.
func stack(size, flags int32) asm.Instructions {
	return append(toStack(),
		asm.Mov.Reg(asm.R2, asm.R1), asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R3, size), asm.Mov.Imm(asm.R4, flags), asm.FnGetStack.Call())
}

// stackID numbers the stack of this instruction.
func stackID(flags int32) asm.Instructions {
	return asm.Instructions{asm.Mov.Reg(asm.R1, asm.R6), asm.LoadMapPtr(asm.R2, 0).WithReference("map"), asm.Mov.Imm(asm.R3, flags), asm.FnGetStackid.Call()}
}

// underCgroup asks for a control group that is not in the map.
func underCgroup() asm.Instructions {
	return asm.Instructions{mapPtr(), asm.Mov.Imm(asm.R2, 0), asm.FnCurrentTaskUnderCgroup.Call()}
}

// reserved reserves a record that is larger than the ring buffer.
func reserved() asm.Instructions {
	discard := asm.Instructions{ // or the verifier misses it
		asm.JEq.Imm(asm.R0, 0, "none"),
		asm.Mov.Reg(asm.R1, asm.R0), asm.Mov.Imm(asm.R2, 0), asm.FnRingbufDiscard.Call(), asm.Ja.Label("exit"),
	}
	none := asm.Mov.Imm(asm.R0, 0).WithSymbol("none")
	return failing(mapPtr(), asm.Mov.Imm(asm.R2, 8192), asm.Mov.Imm(asm.R3, 0), asm.FnRingbufReserve.Call(), discard, none)
}

// rows writes more rows than the buffer of an iterator has room for, which is eight pages.
func rows() asm.Instructions {
	insns := asm.Instructions{asm.LoadMem(asm.R6, asm.R6, 0, asm.DWord), asm.LoadMem(asm.R6, asm.R6, 0, asm.DWord)} // bpf_iter_meta, its file
	for at := int16(-512); at < -24; at += 8 {
		insns = append(insns, asm.StoreMem(asm.RFP, at, asm.R0, asm.DWord))
	}
	for range 72 { // of 512 bytes
		insns = append(insns, asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -512), asm.Mov.Imm(asm.R3, 512), asm.FnSeqWrite.Call(), asm.JNE.Imm(asm.R0, 0, "full"))
	}
	return failing(insns, asm.Mov.Reg(asm.R0, asm.R0).WithSymbol("full"))
}
