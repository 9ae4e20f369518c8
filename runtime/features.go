package runtime

import (
	"fmt"
	"os"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

// maxReturnInstances is the most that a kretprobe can ask for
// (KRETPROBE_MAXACTIVE_MAX in kernel/trace/trace_kprobe.c).
const maxReturnInstances = 4096

// version is a kernel's major and minor version.
type version struct{ major, minor int }

func (v version) atLeast(major, minor int) bool {
	return v.major > major || v.major == major && v.minor >= minor
}

// release is the running kernel's version and its build string, the -r and -v
// of uname.
func release() (version, string, error) {
	u, err := uname()
	if err != nil {
		return version{}, "", err
	}
	v, err := parseRelease(unix.ByteSliceToString(u.Release[:]))
	return v, unix.ByteSliceToString(u.Version[:]), err
}

// Release is the name of the running kernel's release, as uname -r has it.
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

// Features finds out what the running kernel can do. What its types tell is
// read there, the rest is tried: nothing is ever attached to a function that
// could be called. A user who may not load programs learns what the kernel's
// types and version promise to those who may.
func (k *Kernel) Features() (compiler.Features, error) {
	v, build, err := release()
	if err != nil {
		return compiler.Features{}, err
	}
	f := promised(v, k.types)
	if f.KprobeMulti {
		f.SessionIsReturn = k.typeID("bpf_session_is_return", (*btf.Func)(nil))
	}
	f.Preemptible = preemption(v, build, os.ReadFile).Possible
	// EPERM for a lack of memory would be taken for one of capabilities.
	lockable(v)
	if k.tryTrampoline(&f) || ReadPrivileges().Refusal() == "" {
		tryMulti(&f)
		f.NoKprobe = kprobeRefusal()
		f.NoModules = modulesRefusal()
	}
	return f, nil
}

// promised is what a kernel of a version and with these types can do.
func promised(v version, types *btf.Spec) compiler.Features {
	f := compiler.Features{
		Trampoline:        v.atLeast(5, 5) && hasStruct(types, "dyn_ftrace"),
		TrampolineWords:   6,
		TrampolineStructs: v.atLeast(6, 1),
		CurrentTask:       v.atLeast(5, 11),
		RuntimeAlloc:      hasMember(types, "bpf_htab", "ma"),
		ConsistentBTF:     v.atLeast(6, 4), // how BTF was made shows nowhere
		ReturnInstances:   maxReturnInstances,
		KprobeMulti:       hasStruct(types, "bpf_kprobe_multi_link"), // not without CONFIG_FPROBE
		ReturnsUnlimited:  hasMember(types, "fprobe", "hlist_array"),
	}
	f.CancelRepeats = f.ReturnsUnlimited && !v.atLeast(7, 2)
	if v.atLeast(6, 6) {
		f.TrampolineWords = 12
	}
	return f
}
