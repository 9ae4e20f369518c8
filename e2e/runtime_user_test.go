//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// asUser is set in the environment of a test that runs with CAP_BPF and
// CAP_PERFMON alone.
const asUser = "KSNOOP_TEST_USER"

// testRuntimeUser runs the tests below as a user whom the kernel denies
// kprobes, as one whom it does not, and without any capability.
func testRuntimeUser(t *testing.T) {
	openGuest(t)
	caps := []uintptr{unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_SYS_RESOURCE}
	for _, tc := range []struct {
		run, paranoid string
		caps          []uintptr
	}{
		{"TestGuestRuntimeAsUserDenied", "3", caps},
		{"TestGuestRuntimeAsUserAllowed", "2", caps},
		{"TestGuestRuntimeAsNobody", "3", nil},
	} {
		require.NoError(t, os.WriteFile("/proc/sys/kernel/perf_event_paranoid", []byte(tc.paranoid), 0))
		cmd := exec.Command("/init", "-test.v", "-test.run=^"+tc.run+"$")
		cmd.Env = append(os.Environ(), asUser+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Credential:  &syscall.Credential{Uid: 1000, Gid: 1000},
			AmbientCaps: tc.caps,
		}
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		require.NoError(t, err)
	}
}

func TestGuestRuntimeAsUserDenied(t *testing.T) {
	kernel, target := openUser(t)
	require.Contains(t, target.Features.NoKprobe, "kernel.perf_event_paranoid is 3")
	require.True(t, target.Features.Trampoline)
	require.ErrorContains(t, kernel.Hooks(nil), "permission denied")
	c := newCounter()
	c.attach(compiler.Kprobe, 0, compiler.Place{Probe: c.probe(getpgid), Symbol: getpgid})
	s := load(t, c, kernel)
	_, err := s.Attach()
	require.ErrorContains(t, err, "the kernel does not permit it")
}

// Without tracefs, a kretprobe has the default number of instances.
func TestGuestRuntimeAsUserAllowed(t *testing.T) {
	kernel, target := openUser(t)
	require.Empty(t, target.Features.NoKprobe)
	c := newCounter()
	c.attach(compiler.Kretprobe, 4096, compiler.Place{Probe: c.probe(getpgid), Symbol: getpgid})
	s := load(t, c, kernel)
	_, err := s.Attach()
	require.NoError(t, err)
	callKernel(getpgid, 5)
	require.Equal(t, []uint64{5}, hits(t, s))
	require.Len(t, s.Notes(), 1)
	t.Log(s.Notes())
	_, err = s.Missed()
	require.NoError(t, err)
}

// A user without capabilities can compile for this kernel.
func TestGuestRuntimeAsNobody(t *testing.T) {
	kernel, target := openUser(t)
	require.Empty(t, target.Features.NoKprobe)
	require.True(t, target.Features.Trampoline)
	c := newCounter()
	c.attach(compiler.Kprobe, 0, compiler.Place{Probe: c.probe(getpgid), Symbol: getpgid})
	_, err := runtime.Load(c.Unit, kernel)
	require.ErrorContains(t, err, "ksnoop lacks CAP_BPF and CAP_PERFMON")
}

func openUser(t *testing.T) (*runtime.Kernel, *compiler.Target) {
	if os.Getenv(asUser) == "" {
		t.Skip("runs as a user, see testRuntimeUser")
	}
	kernel, target := openGuest(t)
	t.Logf("%+v", target.Features)
	return kernel, target
}
