package runtime

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// A fakeProc is files of /proc and /sys.
type fakeProc map[string]string

func (f fakeProc) readFile(name string) ([]byte, error) {
	text, ok := f[name]
	if !ok {
		return nil, os.ErrNotExist
	}
	return []byte(text), nil
}

const (
	allIDs = "         0          0 4294967295\n"
	root   = "Name:\tksnoop\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n"
	// CAP_PERFMON is bit 38, CAP_BPF bit 39.
	both    = "CapEff:\t000000c000000000\nSeccomp:\t0\n"
	bpf     = "CapEff:\t0000008000000000\nSeccomp:\t2\n"
	none    = "CapEff:\t0000000000000000\nSeccomp:\t0\n"
	filters = "CapEff:\t000001ffffffffff\nSeccomp:\t2\n"
)

func TestDenied(t *testing.T) {
	const refusal = "the kernel does not permit it"
	for _, tc := range []struct{ status, ids, want string }{
		{none, allIDs, refusal + ": ksnoop lacks CAP_BPF and CAP_PERFMON: give it what is missing, or run it as root"},
		{bpf, allIDs, refusal + ": ksnoop lacks CAP_PERFMON: give it what is missing, or run it as root"},
		{root, "0 1000 1\n", refusal + ": the capabilities of a user namespace do not count: run ksnoop as root outside of it"},
		{filters, allIDs, refusal + ": a seccomp filter refuses bpf(2): allow it in the profile of the container or service"},
		{both, allIDs, refusal + ", though ksnoop has CAP_BPF and CAP_PERFMON: a security module may refuse bpf(2) (/sys/kernel/security/lsm)"},
	} {
		proc := fakeProc{"/proc/self/status": tc.status, "/proc/self/uid_map": tc.ids}
		require.Equal(t, tc.want, denied(proc.readFile))
	}
	require.Contains(t, denied(fakeProc{}.readFile), "a security module")
}

func TestKprobesDenied(t *testing.T) {
	for _, tc := range []struct{ status, lockdown, want string }{
		{both, "[none] integrity confidentiality\n", "kernel.perf_event_paranoid is 3, which keeps kprobes from users without CAP_SYS_ADMIN"},
		{root, "none integrity [confidentiality]\n", errLockdown.Error()},
		{filters, "", "a seccomp filter refuses perf_event_open(2): allow it in the profile of the container or service"},
		{root, "", "the kernel does not permit it, though ksnoop has CAP_SYS_ADMIN: a security module may refuse perf_event_open(2) (/sys/kernel/security/lsm)"},
	} {
		proc := fakeProc{
			"/proc/self/status": tc.status, "/proc/self/uid_map": allIDs, lockdownFile: tc.lockdown,
			"/proc/sys/kernel/perf_event_paranoid": "3\n",
		}
		require.Equal(t, tc.want, kprobesDenied(proc.readFile))
	}
}

func TestNoTypes(t *testing.T) {
	for _, tc := range []struct {
		have []string
		want string
	}{
		{nil, "read the kernel's types: there is no /sys/kernel/btf/vmlinux, as sysfs is not mounted: mount -t sysfs sysfs /sys"},
		{[]string{"/sys/kernel"}, "read the kernel's types: there is no /sys/kernel/btf/vmlinux: boot a kernel built with CONFIG_DEBUG_INFO_BTF=y"},
		{[]string{"/sys/kernel", typesFile}, "read the kernel's types: /sys/kernel/btf/vmlinux is of no use (permission denied): it must be that of a kernel built with CONFIG_DEBUG_INFO_BTF=y, and readable"},
	} {
		err := noTypes(os.ErrPermission, func(name string) (os.FileInfo, error) {
			for _, n := range tc.have {
				if n == name {
					return nil, nil
				}
			}
			return nil, os.ErrNotExist
		})
		require.EqualError(t, err, tc.want)
	}
}
