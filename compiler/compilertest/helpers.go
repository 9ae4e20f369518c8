package compilertest

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// A HelperError is an error of a helper that generated programs call.
type HelperError struct {
	Helper asm.BuiltinFunc
	Name   string
	Errors []int64 // one of which R0 is, as a negative number; if there are none R0 is 0
	// Half is set if R0 may have 32 bits, as with maps before Linux 6.4.
	Half bool
	// Program makes the helper fail, and stores R0 in the map [HelperResult], and
	// behind it eight bytes of what should have been read. Nil if a program cannot
	// make the helper fail at will.
	Program asm.Instructions
	Maps    map[string]*ebpf.MapSpec
	// Iterator is set if the program is that of an iterator; else it has a raw
	// tracepoint's context.
	Iterator bool
	// Zeroes is set if what should have been read is zeroes.
	Zeroes bool
}

// HelperResult is the array with what a program has seen.
const HelperResult = "result"

// HelperErrors lists the errors of all helpers that generated programs call, except for
// those that a program cannot meet.
func HelperErrors() []HelperError {
	return []HelperError{
		{Helper: asm.FnMapLookupElem, Name: "lookup of no element", Program: failing(onMap(), asm.FnMapLookupElem.Call()), Maps: hash()},
		{Helper: asm.FnMapUpdateElem, Name: "update of an element that is there", Errors: []int64{eexist}, Half: true, Maps: hash(),
			Program: failing(update(ebpf.UpdateAny), update(ebpf.UpdateNoExist))},
		{Helper: asm.FnMapUpdateElem, Name: "update of a full map", Errors: []int64{e2big}, Half: true, Maps: hash(),
			Program: failing(update(ebpf.UpdateAny), asm.StoreImm(asm.RFP, -8, 7, asm.Word), update(ebpf.UpdateAny))},
		{Helper: asm.FnMapUpdateElem, Name: "update without memory", Errors: []int64{enomem}, Half: true},
		{Helper: asm.FnMapUpdateElem, Name: "update in an update", Errors: []int64{ebusy}, Half: true}, // since Linux 5.11
		{Helper: asm.FnMapDeleteElem, Name: "delete of no element", Errors: []int64{enoent}, Half: true, Maps: hash(),
			Program: failing(onMap(), asm.FnMapDeleteElem.Call())},
		{Helper: asm.FnMapDeleteElem, Name: "delete in an update", Errors: []int64{ebusy}, Half: true}, // since Linux 5.11
		reads(asm.FnProbeReadKernel, "kernel memory", badKernel),
		reads(asm.FnProbeReadUser, "user memory", badUser),
		reads(asm.FnProbeReadKernelStr, "a string of the kernel", badKernel),
		reads(asm.FnProbeReadUserStr, "a string of a process", badUser),
		{Helper: asm.FnGetStack, Name: "stack of a size that is no multiple", Errors: []int64{einval}, Zeroes: true, Program: failing(
			toStack(), asm.Mov.Reg(asm.R2, asm.R1), asm.Mov.Imm(asm.R3, 12), asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R4, 0), asm.FnGetStack.Call())},
		{Helper: asm.FnGetStack, Name: "stack of a thread without one", Errors: []int64{efault}, Zeroes: true},
		{Helper: asm.FnGetStackid, Name: "stack in the place of another one", Errors: []int64{eexist}, Maps: stacks(),
			Program: failing(stackID(), stackID())},
		{Helper: asm.FnGetStackid, Name: "number of no stack", Errors: []int64{efault}},
		{Helper: asm.FnCurrentTaskUnderCgroup, Name: "no control group", Errors: []int64{eagain}, Maps: cgroups(), Program: failing(
			mapPtr(), asm.Mov.Imm(asm.R2, 0), asm.FnCurrentTaskUnderCgroup.Call())},
		{Helper: asm.FnCurrentTaskUnderCgroup, Name: "control group in an interrupt", Errors: []int64{einval}}, // in old kernels
		{Helper: asm.FnRingbufReserve, Name: "record for which there is no room", Maps: ring(), Program: reserved()},
		{Helper: asm.FnSeqWrite, Name: "row for which there is no room", Errors: []int64{eoverflow}, Iterator: true, Program: rows()},
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
	eoverflow = 75
)

// Addresses at which there is nothing.
const (
	badKernel = -4096 // the last page
	badUser   = 8     // in the first page
)

func hash() map[string]*ebpf.MapSpec {
	return map[string]*ebpf.MapSpec{"map": {Type: ebpf.Hash, KeySize: 8, ValueSize: 8, MaxEntries: 1}}
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

// stackID numbers the stack of this instruction.
func stackID() asm.Instructions {
	return asm.Instructions{asm.Mov.Reg(asm.R1, asm.R6), asm.LoadMapPtr(asm.R2, 0).WithReference("map"), asm.Mov.Imm(asm.R3, 0), asm.FnGetStackid.Call()}
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
