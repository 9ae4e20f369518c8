//go:build linux

package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/codegen"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/e2e/feature"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// asUser is set in the environment of a test that runs with only CAP_BPF and
// CAP_PERFMON.
const asUser = "KSNOOP_TEST_USER"

// hasFentry is set to 1 or 0 in that environment: whether root has found fentry.
const hasFentry = "KSNOOP_TEST_FENTRY"

// testRuntimeUser runs the tests below as a user whom the kernel denies
// kprobes, as one whom it allows them, and as one without any capability.
func testRuntimeUser(t *testing.T, _ *kernel) {
	caps := []uintptr{unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_SYS_RESOURCE}
	fentry := 0
	if feature.Has("fentry") {
		fentry = 1
	}
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
		cmd.Env = append(os.Environ(), asUser+"=1", fmt.Sprintf("%s=%d", hasFentry, fentry))
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
	require.Equal(t, os.Getenv(hasFentry) == "1", target.Features.Trampoline)
	require.ErrorContains(t, kernel.Hooks(nil), "permission denied")
	c := newCounter()
	c.attach(compiler.Kprobe, 0, compiler.Place{Probe: c.probe(getpgid), Symbol: getpgid})
	s := load(t, c, kernel)
	_, err := s.Attach()
	require.ErrorContains(t, err, "the kernel does not permit it")
	if target.Features.Trampoline {
		follow(t, kernel)
	}
}

// follow traces this process as the root of a tree.
func follow(t *testing.T, kernel *runtime.Kernel) {
	_, err := kernel.Process(1 << 22)
	require.EqualError(t, err, "process 4194304 does not exist: --comm NAME traces processes by their name, also those to come")
	own, err := kernel.Process(uint32(os.Getpid()))
	require.NoError(t, err)
	trace, err := spec.Parse("vfs_read(count == 4321)")
	require.NoError(t, err)
	target, err := kernel.Target(resolve.Symbols([]*spec.Trace{trace}))
	require.NoError(t, err)
	tasks, err := resolve.FindTasks(target.Kernel)
	require.NoError(t, err)
	probe, err := resolve.One(trace, target)
	require.NoError(t, err)
	unit, err := codegen.Compile([]*compiler.Probe{probe}, compiler.Options{
		Tree: tasks, PID: own, RingBytes: 4096,
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

// TestGuestRuntimeAsUserAllowed checks that a kretprobe has the default number
// of instances without tracefs.
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

// TestGuestRuntimeAsNobody checks that a user without capabilities can describe
// this kernel, and is told which ones loading takes.
func TestGuestRuntimeAsNobody(t *testing.T) {
	kernel, target := openUser(t)
	require.Empty(t, target.Features.NoKprobe)
	require.Equal(t, os.Getenv(hasFentry) == "1", target.Features.Trampoline)
	c := newCounter()
	c.attach(compiler.Kprobe, 0, compiler.Place{Probe: c.probe(getpgid), Symbol: getpgid})
	_, err := runtime.Load(c.Unit, kernel)
	require.ErrorContains(t, err, "lacks CAP_BPF and CAP_PERFMON")
}

// openUser opens the kernel as the user, with the symbols of the three functions.
func openUser(t *testing.T) (*runtime.Kernel, *compiler.Target) {
	if os.Getenv(asUser) == "" {
		t.Skip("runs as a user, see testRuntimeUser")
	}
	kernel, err := runtime.OpenKernel()
	require.NoError(t, err)
	target, err := kernel.Target(kallsyms.Wanted{Keep: func(name string) bool {
		return name == getpgid || name == getsid || name == getpriority
	}})
	require.NoError(t, err)
	t.Logf("%+v", target.Features)
	return kernel, target
}
