package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/kallsyms"
)

// System identifies a running system.
type System struct {
	Kernel string // release of the kernel, as uname -r prints it
	Host   string // name of the host; may be empty
	Boot   string // id of the boot; "" where its file in /proc/sys cannot be read
}

// ThisSystem returns the running system.
func ThisSystem() (System, error) {
	u, err := uname()
	if err != nil {
		return System{}, err
	}
	s := System{Kernel: unix.ByteSliceToString(u.Release[:]), Host: unix.ByteSliceToString(u.Nodename[:])}
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		s.Boot = strings.TrimSpace(string(id))
	}
	return s, nil
}

// version is a kernel's major and minor version.
type version struct{ major, minor int }

func (v version) atLeast(major, minor int) bool {
	return v.major > major || v.major == major && v.minor >= minor
}

// release returns the running kernel's version and its build string, as uname -r
// and uname -v print them.
func release() (version, string, error) {
	u, err := uname()
	if err != nil {
		return version{}, "", err
	}
	v, err := parseRelease(unix.ByteSliceToString(u.Release[:]))
	return v, unix.ByteSliceToString(u.Version[:]), err
}

// Release returns the running kernel's release, as uname -r prints it.
func Release() (string, error) {
	u, err := uname()
	return unix.ByteSliceToString(u.Release[:]), err
}

func uname() (u unix.Utsname, err error) {
	if err := unix.Uname(&u); err != nil {
		return u, fmt.Errorf("ask for the kernel's version: %w", err)
	}
	return u, nil
}

func parseRelease(s string) (version, error) {
	var v version
	if _, err := fmt.Sscanf(s, "%d.%d", &v.major, &v.minor); err != nil {
		return v, fmt.Errorf("read kernel release %q: %w", s, err)
	}
	return v, nil
}

// OnlineCPUs returns the numbers of the CPUs that run, in ascending order.
func OnlineCPUs() ([]int, error) { return cpusIn("/sys/devices/system/cpu/online") }

// PossibleCPUs returns the numbers of the CPUs that may ever run. Each of them has
// per-CPU variables.
func PossibleCPUs() ([]int, error) { return cpusIn("/sys/devices/system/cpu/possible") }

// cpusIn returns the CPUs that a file lists. Without sysfs, it returns as many as this
// process can use.
func cpusIn(file string) ([]int, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		cpus := make([]int, goruntime.NumCPU())
		for i := range cpus {
			cpus[i] = i
		}
		return cpus, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the CPUs: %w", err)
	}
	return ParseCPUs(strings.TrimSpace(string(text)))
}

// mostCPUs bounds the number of a CPU.
const mostCPUs = 1 << 16

var errCPUs = errors.New("the CPUs are not numbers and ranges such as 0-3,8")

// ParseCPUs returns the numbers in a list such as 0-3,8.
func ParseCPUs(list string) (cpus []int, err error) {
	for part := range strings.SplitSeq(list, ",") {
		from, to, ranged := strings.Cut(part, "-")
		if !ranged {
			to = from
		}
		first, err := strconv.ParseUint(from, 10, 32)
		last, wrong := strconv.ParseUint(to, 10, 32)
		if err != nil || wrong != nil || last < first || last >= mostCPUs {
			return nil, errCPUs
		}
		for cpu := first; cpu <= last; cpu++ {
			cpus = append(cpus, int(cpu))
		}
	}
	return cpus, nil
}

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
		Tracefs:      tryOpen(openTracefs, "kprobe_events"),
		Debugfs:      tryOpen(os.Open, "/sys/kernel/debug/kprobes/enabled"),
		Addresses:    tryAddresses(),
		ModuleTypes:  len(LoadedModules()),
	}
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

func tryOpen(open func(name string) (*os.File, error), name string) error {
	f, err := open(name)
	if err == nil {
		f.Close()
	}
	return err
}

// lockdown returns the word in brackets of lockdownFile, whose line is like "none [integrity]
// confidentiality", or "" if there is no such file.
func lockdown(readFile func(string) ([]byte, error)) string {
	b, err := readFile(lockdownFile)
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
