//go:build linux

package e2e

import (
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
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
	follow(t, kernel)
}

// follow traces this process as the root of a tree.
func follow(t *testing.T, kernel *runtime.Kernel) {
	_, err := kernel.Process(1 << 22)
	require.EqualError(t, err, "process 4194304 does not exist: --comm NAME traces processes by their name, also those to come")
	own, err := kernel.Process(uint32(os.Getpid()))
	require.NoError(t, err)
	trace, err := spec.Parse("vfs_read(count == 4321)")
	require.NoError(t, err)
	target, err := kernel.Target(compiler.Symbols([]*spec.Trace{trace}))
	require.NoError(t, err)
	tasks, err := compiler.FindTasks(target.Kernel)
	require.NoError(t, err)
	probe, err := compiler.Resolve(trace, target)
	require.NoError(t, err)
	unit, err := compiler.Compile([]*compiler.Probe{probe}, compiler.Options{
		Tree: tasks, PID: own, RingBytes: 4096, Arch: target.Arch, Features: target.Features,
	})
	require.NoError(t, err)
	s, err := runtime.Load(unit, kernel)
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Attach()
	require.NoError(t, err)
	zero, err := os.Open("/dev/zero")
	require.NoError(t, err)
	defer zero.Close()
	_, err = zero.Read(make([]byte, 4321))
	require.NoError(t, err)
	require.NoError(t, s.Stop())
	require.NoError(t, s.Read(new(runtime.Event)))
	require.ErrorIs(t, s.Read(new(runtime.Event)), io.EOF)
	n, err := s.Unfollowed()
	require.NoError(t, err)
	require.Zero(t, n)
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
	require.ErrorContains(t, err, "lacks CAP_BPF and CAP_PERFMON")
}

func openUser(t *testing.T) (*runtime.Kernel, *compiler.Target) {
	if os.Getenv(asUser) == "" {
		t.Skip("runs as a user, see testRuntimeUser")
	}
	kernel, target := openGuest(t)
	t.Logf("%+v", target.Features)
	return kernel, target
}
