package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

// Privileges describes what this process may do by its credentials and where it runs.
type Privileges struct {
	UID int
	// The capabilities in force. CAP_SYS_ADMIN includes CAP_BPF and
	// CAP_PERFMON.
	BPF, Perfmon, SysAdmin, SysResource, Syslog, DACReadSearch bool
	// UserNamespace reports that the capabilities are those of a user
	// namespace, which the kernel does not accept for BPF.
	UserNamespace bool
	// PIDNamespace reports that process ids here differ from those that BPF
	// programs see.
	PIDNamespace bool
	Seccomp      bool // there is a system call filter
	Refused      bool // bpf(2) is refused in spite of the capabilities
}

// ReadPrivileges returns what this process may do.
func ReadPrivileges() Privileges {
	p := Privileges{UID: os.Geteuid()}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&header, &data[0]) == nil {
		has := func(c int) bool { return data[c/32].Effective>>(c%32)&1 != 0 }
		p.SysAdmin = has(unix.CAP_SYS_ADMIN)
		p.BPF, p.Perfmon = p.SysAdmin || has(unix.CAP_BPF), p.SysAdmin || has(unix.CAP_PERFMON)
		p.SysResource, p.Syslog = has(unix.CAP_SYS_RESOURCE), has(unix.CAP_SYSLOG)
		p.DACReadSearch = has(unix.CAP_DAC_READ_SEARCH) || has(unix.CAP_DAC_OVERRIDE)
	}
	p.UserNamespace = !sameNamespace("user", initialUserNamespace)
	p.PIDNamespace = !sameNamespace("pid", initialPIDNamespace)
	status, _ := os.ReadFile("/proc/self/status")
	p.Seccomp = bytes.Contains(status, []byte("\nSeccomp:\t2\n"))
	p.Refused = p.BPF && !p.UserNamespace && bpfRefused()
	return p
}

// Names of the initial namespaces, with PROC_USER_INIT_INO and PROC_PID_INIT_INO of
// include/linux/proc_ns.h. BPF helpers return ids of the initial pid namespace.
const (
	initialUserNamespace = "user:[4026531837]"
	initialPIDNamespace  = "pid:[4026531836]"
)

// sameNamespace reports whether this process is in the namespace of that name. If
// /proc does not tell, it returns true.
func sameNamespace(kind, name string) bool {
	ns, err := os.Readlink("/proc/self/ns/" + kind)
	return err != nil || ns == name
}

// bpfRefused reports whether bpf(2) is refused. It asks for a command that does
// not exist: those who may use bpf(2) get EINVAL.
func bpfRefused() bool {
	const nothing = 1 << 30
	_, _, errno := unix.Syscall(unix.SYS_BPF, nothing, 0, 0)
	return errno == unix.EPERM || errno == unix.EACCES
}

// Refusal returns why the kernel does not let this process load programs and what
// would change that, or "" if the privileges suffice.
func (p Privileges) Refusal() string {
	const needs = "ksnoop needs CAP_BPF and CAP_PERFMON, or root"
	var lacks []string
	if !p.BPF {
		lacks = append(lacks, "CAP_BPF")
	}
	if !p.Perfmon {
		lacks = append(lacks, "CAP_PERFMON")
	}
	switch {
	case p.UserNamespace:
		return needs + ", outside of this user namespace, whose capabilities do not count: run it in the initial one"
	case len(lacks) > 0:
		return needs + ", and lacks " + strings.Join(lacks, " and ") +
			": run it with sudo, or setcap cap_bpf,cap_perfmon+ep its file, or start the container with --cap-add BPF --cap-add PERFMON"
	case p.Refused && p.Seccomp:
		return "it has the capabilities, but a seccomp filter refuses bpf(2): let the container's profile allow bpf and perf_event_open"
	case p.Refused:
		return "it has the capabilities, but a security module refuses bpf(2): let its policy allow that"
	}
	return ""
}

// lockdownFile shows how far the kernel is locked down. It exists only where
// securityfs is mounted and the kernel supports lockdown.
const lockdownFile = "/sys/kernel/security/lockdown"

var errLockdown = errors.New("the kernel is locked down (" + lockdownFile + " is confidentiality), so that no program may read its memory: " +
	"boot it with lockdown=integrity, or without lockdown")

// locked reports whether the kernel keeps its memory confidential. Programs that
// read none by a helper could still be loaded, but the administrator's intention
// is clear.
func locked(readFile func(string) ([]byte, error)) bool {
	return lockdown(readFile) == "confidentiality"
}

// noProbeRead matches the verifier's message on a locked-down kernel, which
// refuses the helpers that read kernel memory; there is no other reason to refuse
// them. Where the newer helpers are refused, package ebpf uses the older ones that
// they replaced.
var noProbeRead = regexp.MustCompile(`(unknown func|cannot use helper) bpf_probe_read(_kernel)?(_str)?#`)

// refusedByLockdown reports whether the verifier's log shows lockdown. It is for
// systems without lockdownFile.
func refusedByLockdown(log []string) bool {
	return slices.ContainsFunc(log, noProbeRead.MatchString)
}

// countsLocked reports whether maps and programs count against the user's limit of
// locked memory. From 5.11 on they count for the cgroup.
func (v version) countsLocked() bool { return !v.atLeast(5, 11) }

// lockable raises the limit of locked memory where maps count against it, and
// returns how many bytes they may take.
func lockable(v version) uint64 {
	if !v.countsLocked() {
		return math.MaxUint64
	}
	all := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	if unix.Setrlimit(unix.RLIMIT_MEMLOCK, &all) == nil {
		return math.MaxUint64
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) != nil {
		return math.MaxUint64
	}
	limit.Cur = limit.Max
	_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit)
	return limit.Max
}

// lockableHere calls lockable for the running kernel.
func lockableHere() uint64 {
	v, _, err := release()
	if err != nil {
		return math.MaxUint64
	}
	return lockable(v)
}

// ringSizes returns the sizes in bytes to try for the ring buffer of a unit, if
// maps may take limit bytes: half of that or less, if a record fits. A size of 0 stands
// for the unit's own.
func ringSizes(u *compiler.Unit, limit uint64) []uint32 {
	ring := u.Collection.Maps[compiler.EventsMap]
	if ring == nil || uint64(ring.MaxEntries) <= limit/2 {
		return []uint32{0}
	}
	least := uint32(os.Getpagesize())
	for _, ev := range u.Events {
		least = max(least, uint32(ev.Layout.Size)+8)
	}
	var sizes []uint32
	for size := uint32(1) << bits.Len64(limit/2) / 2; size >= least; size /= 2 {
		sizes = append(sizes, size)
	}
	if sizes == nil {
		return []uint32{0}
	}
	return sizes
}

// withRing returns c with a ring buffer of size bytes, or c itself if size is 0.
func withRing(c *ebpf.CollectionSpec, size uint32) *ebpf.CollectionSpec {
	if size == 0 {
		return c
	}
	c = c.Copy()
	c.Maps[compiler.EventsMap].MaxEntries = size
	return c
}

func memlockNote(asked, got uint32, limit uint64) string {
	return fmt.Sprintf("the ring buffer has %d KiB instead of %d: the limit of locked memory is %d KiB, and %s", got>>10, asked>>10, limit>>10, memlockCure)
}

const memlockCure = "before Linux 5.11 it counts maps: raise it (ulimit -l unlimited), or give ksnoop CAP_SYS_RESOURCE"

// refusedMap returns the name of the map that an error of package ebpf is about,
// which only its text tells, and what would take less memory.
func refusedMap(c *ebpf.CollectionSpec, err error) (what, less string) {
	for name, m := range c.Maps {
		switch {
		case !strings.Contains(err.Error(), "map "+name+": "):
		case m.Type == ebpf.RingBuf:
			return fmt.Sprintf("the ring buffer of %d KiB", m.MaxEntries>>10), "lower --pages, or "
		case strings.HasPrefix(name, "table_"):
			return fmt.Sprintf("a table of %d keys", m.MaxEntries), "lower --keys, or "
		case m.Type == ebpf.StackTrace:
			return "the stacks of a table", "lower --keys, or "
		default:
			return fmt.Sprintf("the map %q", name), ""
		}
	}
	return "the programs and maps", "lower --pages, or "
}
