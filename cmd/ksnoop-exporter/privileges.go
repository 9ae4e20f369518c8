package main

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// privileges are the capabilities of this process: those that tracing takes are in
// force only during the attaching of probes, and during the reading of what was counted
// where the kernel asks for them.
type privileges struct {
	mu   sync.Mutex
	kept [2]unix.CapUserData // Permitted has those that may be in force
	read bool                // whether reading takes them, too
	all  bool                // nothing was given up
}

// giveUp gives up all capabilities but those that tracing takes, for ever, and leaves
// none in force. If all is true, nothing is given up.
func giveUp(all bool) (*privileges, error) {
	p := &privileges{all: all}
	// Before Linux 5.11, maps count against this limit, and raising it later would
	// take one more capability.
	limit := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit)
	if all {
		return p, nil
	}
	var now [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capget(&header, &now[0]); err != nil {
		return nil, fmt.Errorf("read the capabilities: %w", err)
	}
	for _, c := range []int{unix.CAP_BPF, unix.CAP_PERFMON} {
		p.kept[c/32].Permitted |= now[c/32].Permitted & (1 << (c % 32))
	}
	_, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0)
	if errno == unix.ENOTSUP {
		return nil, errors.New("give up privileges: a program with cgo cannot: build it with CGO_ENABLED=0, or give --keep-privileges")
	}
	if errno != 0 {
		return nil, fmt.Errorf("give up privileges: %w", errno)
	}
	return p, p.set(false)
}

// set puts the kept capabilities in force, or none.
func (p *privileges) set(force bool) error {
	data := p.kept
	if force {
		for i := range data {
			data[i].Effective = data[i].Permitted
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0)
	if errno != 0 {
		return fmt.Errorf("set the capabilities: %w", errno)
	}
	return nil
}

// with calls f with the capabilities in force.
func (p *privileges) with(f func() error) error {
	if p.all {
		return f()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.raised(f)
}

func (p *privileges) raised(f func() error) error {
	if err := p.set(true); err != nil {
		return err
	}
	err := f()
	return errors.Join(err, p.set(false))
}

// reading calls read, which reads what was counted. From Linux 5.19 on this takes no
// capabilities; before, it does where kernel.unprivileged_bpf_disabled is not 0.
func (p *privileges) reading(read func() error) error {
	if p.all {
		return read()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.read {
		err := read()
		if !errors.Is(err, unix.EPERM) {
			return err
		}
		p.read = true
	}
	return p.raised(read)
}
