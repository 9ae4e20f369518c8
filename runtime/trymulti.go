package runtime

import (
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

// tryMulti finds out whether kprobe.multi and kprobe.session links can be
// made. That the program loads says nothing: without CONFIG_FPROBE it does.
func tryMulti(f *compiler.Features) {
	f.KprobeMulti = f.KprobeMulti && tryLink(ebpf.AttachTraceKprobeMulti)
	if !f.KprobeMulti || !tryLink(ebpf.AttachTraceKprobeSession) {
		f.SessionIsReturn = 0
	}
}

// linkCreate is what BPF_LINK_CREATE takes for many functions (union bpf_attr
// in include/uapi/linux/bpf.h).
type linkCreate struct {
	prog, target, kind, flags uint32
	multiFlags, count         uint32
	symbols, addrs, cookies   uint64
}

// tryLink asks for a link on an address that is to be read from where nothing
// is. A kernel that makes such links says EFAULT, the others EOPNOTSUPP or
// EINVAL. To make a link and to detach it takes 0.1 s.
func tryLink(kind ebpf.AttachType) bool {
	prog, err := inert(kind)
	if err != nil {
		return false
	}
	defer prog.Close()
	const nowhere = 1
	attr := linkCreate{prog: uint32(prog.FD()), kind: uint32(kind), count: 1, addrs: nowhere}
	_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_LINK_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	return errno == unix.EFAULT
}

// inert loads a program that does nothing.
func inert(kind ebpf.AttachType) (*ebpf.Program, error) {
	return ebpf.NewProgramWithOptions(&ebpf.ProgramSpec{
		Name: "try", Type: ebpf.Kprobe, AttachType: kind,
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
		License:      "Dual MIT/GPL",
	}, ebpf.ProgramOptions{LogDisabled: true})
}
