package runtime

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// attachAt attaches prog to a kprobe at an address. The library knows kprobes by
// a symbol and an offset behind it, and there is no symbol in front of the modules
// of arm64.
func attachAt(prog *ebpf.Program, addr, options uint64) (link.Link, error) {
	event, err := perfProbe("", addr, options)
	if err != nil {
		return nil, err
	}
	attr := linkCreate{prog: uint32(prog.FD()), target: uint32(event), kind: uint32(ebpf.AttachPerfEvent)}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_LINK_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno != 0 {
		return attachEvent(prog, event)
	}
	l, err := link.NewFromFD(int(fd)) // it holds the event
	if err == nil {
		err = unix.IoctlSetInt(event, unix.PERF_EVENT_IOC_ENABLE, 0)
	}
	if err = errors.Join(err, unix.Close(event)); err != nil {
		if l != nil {
			l.Close()
		}
		return nil, fmt.Errorf("link a perf event: %w", err)
	}
	return l, nil
}

// eventLink is a perf event with a program, on kernels without links for that
// (before 5.15). It has no information.
type eventLink struct {
	link.Link
	event *os.File
}

func (l *eventLink) Close() error { return l.event.Close() }

func attachEvent(prog *ebpf.Program, event int) (link.Link, error) {
	err := unix.IoctlSetInt(event, unix.PERF_EVENT_IOC_SET_BPF, prog.FD())
	if err == nil {
		err = unix.IoctlSetInt(event, unix.PERF_EVENT_IOC_ENABLE, 0)
	}
	if err != nil {
		unix.Close(event)
		return nil, fmt.Errorf("attach a program to a perf event: %w", err)
	}
	return &eventLink{event: os.NewFile(uintptr(event), "kprobe")}, nil
}
