//go:build linux

// Package feature finds out what the running kernel can attach by attaching it,
// without ksnoop. Tests that leave something out where a kernel lacks it ask here:
// what is left out is then what the kernel has refused.
package feature

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// subject is a function that every kernel has, with a hook for ftrace.
const subject = "vfs_fsync_range"

// Names are the features that [Has] knows.
var Names = []string{"fentry", "kprobe.multi", "kprobe.session"}

// Has reports whether the kernel attaches programs of a kind. It panics if the
// kernel's error is not that of a kernel without them.
func Has(kind string) bool { return has[kind]() }

var has = map[string]func() bool{
	"fentry": sync.OnceValue(func() bool {
		return attaches(ebpf.Tracing, ebpf.AttachTraceFEntry, func(p *ebpf.Program) (link.Link, error) {
			return link.AttachTracing(link.TracingOptions{Program: p})
		})
	}),
	"kprobe.multi": sync.OnceValue(func() bool {
		return attaches(ebpf.Kprobe, ebpf.AttachTraceKprobeMulti, func(p *ebpf.Program) (link.Link, error) {
			return link.KprobeMulti(p, link.KprobeMultiOptions{Symbols: []string{subject}})
		})
	}),
	"kprobe.session": sync.OnceValue(func() bool {
		return attaches(ebpf.Kprobe, ebpf.AttachTraceKprobeSession, func(p *ebpf.Program) (link.Link, error) {
			return link.KprobeMulti(p, link.KprobeMultiOptions{Symbols: []string{subject}, Session: true})
		})
	}),
}

// notSupported is the kernel's ENOTSUPP, which user space has no name for.
const notSupported = unix.Errno(524)

// attaches reports whether a program that does nothing can be loaded and attached.
// Before Linux 5.11 programs of other processes, too, count towards the limit of
// locked memory, which therefore does not hold here.
func attaches(kind ebpf.ProgramType, at ebpf.AttachType, attach func(*ebpf.Program) (link.Link, error)) bool {
	var own unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_MEMLOCK, &own) // never fails
	_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &own) }()
	spec := &ebpf.ProgramSpec{
		Type: kind, AttachType: at, License: "Dual MIT/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	}
	if kind == ebpf.Tracing {
		spec.AttachTo = subject
	}
	prog, err := ebpf.NewProgram(spec)
	if err == nil {
		defer prog.Close()
		var l link.Link
		if l, err = attach(prog); err == nil {
			l.Close()
			return true
		}
	}
	for _, lacking := range []error{ebpf.ErrNotSupported, notSupported, unix.EOPNOTSUPP, unix.EINVAL} {
		if errors.Is(err, lacking) {
			return false
		}
	}
	panic(fmt.Sprintf("try to attach %s to %s: %v", at, subject, err))
}
