//go:build linux

package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/codegen"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// testRefused checks that a program that the verifier refuses costs only its
// own probe and those that share the program.
func testRefused(t *testing.T, k *kernel) {
	functions := []string{getpgid, getsid + "(regs->" + firstArgument + " != 1)", getpriority}
	points := []string{fmt.Sprintf("tp:sys_enter($arg2 == %d)", unix.SYS_GETPGID),
		fmt.Sprintf("tp:sys_enter($arg2 == %d)", unix.SYS_GETSID), "tp:sys_exit($arg2 == -3)"}
	for _, attach := range append(k.kinds(t), compiler.TpBTF) {
		specs, w := functions, resolve.Wishes{Attach: attach}
		if attach == compiler.TpBTF {
			specs, w = points, resolve.Wishes{}
		}
		for broken := range specs {
			t.Run(fmt.Sprintf("%s/%d", attach, broken), func(t *testing.T) {
				unit := k.unit(t, w, compiler.Options{}, specs...)
				name := breakProgram(unit, broken)
				k.traceOthers(t, unit, name)
				k.requireNotVerified(t, unit, name)
			})
		}
		t.Run(string(attach)+"/all", func(t *testing.T) {
			unit := k.unit(t, w, compiler.Options{}, specs...)
			for i := range specs {
				breakProgram(unit, i)
			}
			k.requireRefused(t, unit)
		})
	}
	t.Run("level of a stack", func(t *testing.T) {
		unit := k.unit(t, resolve.Wishes{Chain: true}, compiler.Options{}, "ksys_read", "vfs_read")
		breakProgram(unit, 1)
		require.Len(t, k.requireRefused(t, unit).Probes, 2)
	})
	t.Run("what follows processes", func(t *testing.T) {
		tasks, err := resolve.FindTasks(k.target().Kernel)
		require.NoError(t, err)
		unit := k.unit(t, resolve.Wishes{}, compiler.Options{Tree: tasks}, functions...)
		breakInstructions(unit.Collection.Programs[unit.Companions[0].Program])
		k.requireRefused(t, unit)
	})
}

// unit compiles specs for the kernel.
func (k *kernel) unit(t *testing.T, w resolve.Wishes, opts compiler.Options, specs ...string) *compiler.Unit {
	plan, err := k.tryResolve(t, w, specs...)
	require.NoError(t, err)
	opts.RingBytes = 1 << 16
	unit, err := codegen.Compile(plan.Probes, opts)
	require.NoError(t, err)
	return unit
}

// breakProgram breaks the program of a probe that is attached first, so that the
// verifier refuses it, and returns its name.
func breakProgram(unit *compiler.Unit, probe int) string {
	p := unit.Probes()[probe]
	i := slices.IndexFunc(unit.Attachments, func(at compiler.Attachment) bool {
		return slices.ContainsFunc(at.Places, func(place compiler.Place) bool { return place.Probe == p })
	})
	at := unit.Attachments[i]
	name := at.ProgramAt(at.Places[slices.IndexFunc(at.Places, func(place compiler.Place) bool { return place.Probe == p })])
	breakInstructions(unit.Collection.Programs[name])
	return name
}

// breakInstructions inserts the use of an uninitialized register at the
// beginning of a program.
func breakInstructions(p *ebpf.ProgramSpec) {
	use := asm.Mov.Reg(asm.R1, asm.R9).WithSource(asm.Comment("broken on purpose"))
	p.Instructions = append(asm.Instructions{use}, p.Instructions...)
}

// traceOthers loads a unit with a broken program, makes calls, and checks that
// exactly the other probes show them.
func (k *kernel) traceOthers(t *testing.T, unit *compiler.Unit, broken string) {
	session, err := runtime.Load(unit, k.Kernel)
	require.NoError(t, err)
	defer session.Close()
	require.Len(t, session.Refused(), 1)
	refused := session.Refused()[0]
	require.Equal(t, broken, refused.Program)
	require.NotEmpty(t, refused.Probes)
	require.Contains(t, refused.Error(), "a bug of ksnoop")
	require.Contains(t, refused.Report(), "R9 !read_ok")
	require.Contains(t, refused.Report(), "; broken on purpose")

	n, err := session.Attach()
	require.NoError(t, err)
	probes := unit.Probes()
	require.Equal(t, len(probes)-len(refused.Probes), n)
	const calls = 5
	for _, name := range []string{getpgid, getsid, getpriority} {
		callKernel(name, calls)
	}
	unix.Kill(1<<22+1, 0) // there is no such process: -3
	seen := map[*compiler.Probe]bool{}
	shown := map[*compiler.EventType]int{}
	(&tracer{session}).events(t, func(ev *runtime.Event) {
		seen[ev.Probe] = true
		shown[ev.EventType]++
	})
	for _, p := range probes {
		require.Equal(t, !slices.Contains(refused.Probes, p), seen[p], p.Trace.Text)
	}
	for ev, n := range shown {
		if !ev.Probe.Func.Tracepoint {
			require.Equal(t, calls, n, ev.Probe.Trace.Text)
		}
	}
}

// requireNotVerified checks that the tests of the verifier see a broken program among
// others.
func (k *kernel) requireNotVerified(t *testing.T, unit *compiler.Unit, broken string) {
	var refused *runtime.VerifierError
	require.ErrorAs(t, k.verify(unit), &refused)
	require.Equal(t, broken, refused.Program)
}

// requireRefused checks that no part of a unit is loaded, and that the error
// shows the program.
func (k *kernel) requireRefused(t *testing.T, unit *compiler.Unit) *runtime.VerifierError {
	_, err := runtime.Load(unit, k.Kernel)
	var refused *runtime.VerifierError
	require.ErrorAs(t, err, &refused)
	require.Contains(t, refused.Listing, "broken on purpose")
	require.Contains(t, refused.Report(), "R9 !read_ok")
	return refused
}
