package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/kallsyms"
)

// Survey describes what can be seen of the system without attaching anything.
type Survey struct {
	Release, Build string
	Preemption     Preemption
	Privileges     Privileges
	Types          error // why the kernel has no types
	ModuleTypes    int   // number of modules that have types
	Settings       []Setting
	Lockdown       string // none, integrity or confidentiality, or "" if unknown
	Tracefs        error  // why its files cannot be read
	Debugfs        error
	Addresses      error  // why those of symbols are hidden
	Modules        string // why fentry is impossible in modules
	CountsLocked   bool   // whether maps count against LockedMemory, in bytes
	LockedMemory   uint64
	Ring           error // why a ring buffer cannot be made
}

// Setting is a sysctl, or another file that holds one word.
type Setting struct {
	Name, Value string // Value is "" if it cannot be read
	Err         error  // why it cannot be read
}

// settings are the files that limit what the kernel lets users trace.
var settings = []struct{ name, file string }{
	{"kernel.unprivileged_bpf_disabled", "/proc/sys/kernel/unprivileged_bpf_disabled"},
	{"kernel.perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid"},
	{"kernel.kptr_restrict", "/proc/sys/kernel/kptr_restrict"},
	{"kernel.ftrace_enabled", "/proc/sys/kernel/ftrace_enabled"},
	{"kprobes/enabled", "/sys/kernel/debug/kprobes/enabled"},
	{"net.core.bpf_jit_enable", "/proc/sys/net/core/bpf_jit_enable"},
}

// NewSurvey examines the running system. Any user may call it.
func NewSurvey() (*Survey, error) {
	v, build, err := release()
	if err != nil {
		return nil, err
	}
	name, err := Release()
	if err != nil {
		return nil, err
	}
	s := &Survey{
		Build:        build,
		Release:      name,
		Preemption:   preemption(v, build, os.ReadFile),
		Privileges:   ReadPrivileges(),
		Lockdown:     lockdown(os.ReadFile),
		CountsLocked: v.countsLocked(),
		LockedMemory: lockable(v),
		Modules:      modulesRefusal(),
		Ring:         tryRing(),
		Debugfs:      tryOpen("/sys/kernel/debug/kprobes/enabled"),
	}
	if f, err := openTracefs("kprobe_events"); err == nil {
		f.Close()
	} else {
		s.Tracefs = err
	}
	s.Addresses = tryAddresses()
	s.ModuleTypes = len(LoadedModules())
	for _, file := range settings {
		b, err := os.ReadFile(file.file)
		s.Settings = append(s.Settings, Setting{file.name, strings.TrimSpace(string(b)), err})
	}
	return s, nil
}

// tryAddresses reads the first lines of the symbol table. If their addresses are zero,
// all are hidden.
func tryAddresses() error {
	f, err := openSymbolFile()
	if err != nil {
		return err
	}
	defer f.Close()
	first := make([]byte, os.Getpagesize()) // the kernel gives whole lines, as many as fit
	n, err := f.Read(first)
	if err != nil && err != io.EOF {
		return fmt.Errorf("read %s: %w", f.Name(), err)
	}
	table, err := kallsyms.Read(bytes.NewReader(first[:n]), nil)
	if err != nil {
		return fmt.Errorf("read %s: %w", f.Name(), err)
	}
	return table.NeedAddresses()
}

func tryOpen(name string) error {
	f, err := os.Open(name)
	if err == nil {
		f.Close()
	}
	return err
}

// lockdown returns the word in brackets of a line like "none [integrity]
// confidentiality".
func lockdown(readFile func(string) ([]byte, error)) string {
	b, err := readFile("/sys/kernel/security/lockdown")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(b), "[")
	mode, _, _ := strings.Cut(rest, "]")
	return mode
}

// tryRing tries to make a ring buffer.
func tryRing() error {
	ring, err := ebpf.NewMap(&ebpf.MapSpec{Name: "try", Type: ebpf.RingBuf, MaxEntries: uint32(os.Getpagesize())})
	switch {
	case err == nil:
		return ring.Close()
	case errors.Is(err, unix.EPERM):
		return errors.New("the kernel does not permit it")
	}
	return fmt.Errorf("make a ring buffer: %w", err)
}
