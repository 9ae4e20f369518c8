//go:build linux

package confine

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// calls lists the system calls that confine can forbid.
var calls = map[string]uint32{"bpf": unix.SYS_BPF, "perf_event_open": unix.SYS_PERF_EVENT_OPEN}

// forbidCall makes a system call fail with EPERM, as container runtimes do.
func (r *restrictions) forbidCall() error {
	if r.no == "" {
		return nil
	}
	number, ok := calls[r.no]
	if !ok {
		return fmt.Errorf("unknown system call %q", r.no)
	}
	const numberOffset = 0 // in struct seccomp_data
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: numberOffset},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
		return fmt.Errorf("forbid %s: %w", r.no, err)
	}
	return nil
}
