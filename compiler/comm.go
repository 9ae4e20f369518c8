package compiler

import (
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// commSize is TASK_COMM_LEN.
const commSize = 16

// findComm is where the name of a thread is in its task_struct; 0 if programs
// cannot load it from there.
func findComm(target *Target) int {
	var task *btf.Struct
	if !target.Features.CurrentTask || target.Kernel.TypeByName("task_struct", &task) != nil {
		return 0
	}
	at, ok := findMember(task, "comm")
	if !ok || at.inUnion || at.offset.Bytes()+commSize > maxStore {
		return 0
	}
	if size, err := btf.Sizeof(at.member.Type); err != nil || size != commSize {
		return 0
	}
	return int(at.offset.Bytes())
}

// comm stores the name of the thread, NUL-terminated, at an offset from a
// register. The loads take a tenth of what bpf_get_current_comm does. Its bytes
// behind the NUL are zeros, these may be of an earlier name. A name that is being
// changed may be half of each, as in the kernel's own readers, but ends in a NUL.
func (p *program) comm(to asm.Register, off int) {
	if p.probe.Comm == 0 {
		p.move(asm.R1, to, off)
		p.emit(asm.Mov.Imm(asm.R2, commSize), asm.FnGetCurrentComm.Call())
		return
	}
	p.emit(asm.FnGetCurrentTaskBtf.Call())
	for i := 0; i < commSize; i += 8 {
		p.emit(load(asm.R1, asm.R0, p.probe.Comm+i, 8), asm.StoreMem(to, int16(off+i), asm.R1, asm.DWord))
	}
}
