//go:build linux

package e2e

import (
	"flag"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/codegen"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/e2e/guest"
	"github.com/ksnoop/ksnoop/e2e/vm"
	"github.com/ksnoop/ksnoop/runtime"
)

var (
	costsOn   = flag.String("costs-on", "", "kernels that TestCosts and TestStartCosts run on, others than usual")
	costsArch = flag.String("costs-arch", string(vm.AMD64), "architecture that TestCosts runs on: amd64 or arm64")
	costsAll  = flag.Bool("costs-all", false, "TestCosts counts also what has no bound but that of the table; on with -full and with -run")
)

// costKernels returns the kernels that a test of costs runs on: those of
// -costs-on, or else with -full all the given ones, and without it oneKernel.
func costKernels(all ...string) []string {
	switch {
	case *costsOn != "":
		return strings.Fields(*costsOn)
	case *full:
		return all
	}
	return []string{oneKernel}
}

// TestCosts counts the instructions that tracing adds to a call. It compares them
// with those of empty programs in the same run, and with -full or -run also with
// those in costTable, which are of one release of each kernel. It uses virtual
// machines in which a nanosecond is one instruction, so that the numbers are always
// the same.
func TestCosts(t *testing.T) {
	t.Parallel()
	for _, line := range costKernels("5.10", "6.1", oneKernel, "6.18", "newest") {
		testCostsOn(t, line, vm.Arch(*costsArch))
	}
	if *full && *costsOn == "" && vm.Arch(*costsArch) == vm.AMD64 {
		testCostsOn(t, oneKernel, vm.ARM64)
	}
}

// testCostsOn runs TestGuestCosts on a kernel, whose name in the table has the
// architecture if it is not amd64.
func testCostsOn(t *testing.T, line string, a vm.Arch) {
	row := line
	if a != vm.AMD64 {
		row += " " + string(a)
	}
	t.Run(row, func(t *testing.T) {
		t.Parallel()
		m := vm.Machine{Icount: true, Kernel: vm.Kernel{Arch: a}}
		if *costsAll || *full || named() {
			m.Args = []string{"-costs-all"}
		}
		checkCosts(t, row, testOn(t, line, m, "^TestGuestCosts$"))
	})
}

// A cost is one way to trace vfs_read, with the bounds of what it adds to a
// call.
type cost struct {
	what   string
	attach compiler.Kind
	empty  []compiler.Kind // kinds of the programs that do nothing, to compare with
	spec   string
	stack  []string // specs of a chain, instead of spec
	among  int      // other functions that are traced, too
	// factor bounds the instructions as a multiple of those of the empty
	// programs in the same run. over bounds the difference. 0 means no bound.
	factor float64
	over   float64
	// follows lists the globs of the functions through which the objects that spec
	// chooses are followed. The measured calls have other objects.
	follows []string
	// fcntl is set if do_fcntl is traced instead of vfs_read: it gets a file as its
	// fourth argument.
	fcntl bool
	// measure selects the statistics that replace records. With
	// counted they also count the calls.
	measure compiler.Measure
	counted bool
}

const (
	rejected = "vfs_read(file->f_flags == 0x12345678)"
	kept     = "vfs_read(file->f_flags != 0x12345678, return == -4242)"
	pair     = "vfs_read(count == 1, file->f_mode, return == 1)"
	noPair   = "vfs_read(count == 2, file->f_mode, return == 1)"
)

var (
	// syscallStack is in place of readStack on arm64, where BTF has no read_zero.
	syscallStack  = []string{syscallPrefix + "sys_read(return)", "ksys_read(count, return)", "vfs_read(count, return)"}
	readStack     = []string{"ksys_read(count, return)", "vfs_read(count, return)", "read_zero(count, return)"}
	bothSides     = []compiler.Kind{compiler.Fentry, compiler.Fexit}
	bothProbes    = []compiler.Kind{compiler.Kprobe, compiler.Kretprobe}
	bothOfSession = []compiler.Kind{compiler.KprobeSession}
)

var costs = []cost{
	{what: "member rejected", attach: compiler.Fentry, empty: []compiler.Kind{compiler.Fentry}, spec: rejected, factor: 1.15},
	{what: "member rejected", attach: compiler.Kprobe, empty: []compiler.Kind{compiler.Kprobe}, spec: rejected, factor: 1.3},
	{what: "member rejected", attach: compiler.KprobeMulti, empty: []compiler.Kind{compiler.KprobeMulti}, spec: rejected, factor: 1.4},
	{what: "member kept, return rejected", attach: compiler.Fentry, empty: []compiler.Kind{compiler.Fentry, compiler.Fexit}, spec: kept, over: 940},
	{what: "member kept, return rejected", attach: compiler.Kprobe, empty: []compiler.Kind{compiler.Kprobe, compiler.Kretprobe}, spec: kept},
	{what: "member rejected, counted", attach: compiler.Fentry, empty: []compiler.Kind{compiler.Fentry}, spec: rejected, counted: true, over: 38},
	{what: "member rejected, calls", attach: compiler.Fentry, empty: []compiler.Kind{compiler.Fentry}, spec: rejected, measure: compiler.Calls, over: 52},
	{what: "matching, calls", attach: compiler.Fentry, empty: []compiler.Kind{compiler.Fentry}, spec: "vfs_read(count)", measure: compiler.Calls, over: 44},
	{what: "matching, values", attach: compiler.Fentry, empty: []compiler.Kind{compiler.Fentry}, spec: "vfs_read(count)", measure: compiler.Values, over: 121},
	{what: "matching, durations", attach: compiler.Fentry, empty: []compiler.Kind{compiler.Fentry, compiler.Fexit}, spec: "vfs_read", measure: compiler.Durations, over: 1340},
	{what: "matching, changes", attach: compiler.Fentry, empty: []compiler.Kind{compiler.Fentry, compiler.Fexit}, spec: "vfs_read(file->f_pos)", measure: compiler.Changes},
	{what: "matching, records", attach: compiler.Fentry, empty: []compiler.Kind{compiler.Fentry}, spec: "vfs_read(count)"},
	{what: "counted in a table by a number", attach: compiler.Fentry, empty: []compiler.Kind{compiler.Fentry}, spec: "vfs_read(count, count())", over: 200},
	{what: "counted in a table by name, with histogram", attach: compiler.Fentry, empty: bothSides, spec: "vfs_read($comm, count(), hist($duration))"},
	{what: "matching, calls", attach: compiler.Kprobe, empty: []compiler.Kind{compiler.Kprobe}, spec: "vfs_read(count)", measure: compiler.Calls},
	{what: "whole, records", attach: compiler.Fentry, empty: bothSides, spec: "vfs_read", over: 890},
	{what: "pair, records", attach: compiler.Fentry, empty: bothSides, spec: pair},
	{what: "pair, records", attach: compiler.Kprobe, empty: bothProbes, spec: pair},
	{what: "pair, rejected at entry", attach: compiler.Kprobe, empty: bothProbes, spec: noPair},
	{what: "pair, records", attach: compiler.KprobeSession, empty: bothOfSession, spec: pair},
	{what: "pair, rejected at entry", attach: compiler.KprobeSession, empty: bothOfSession, spec: noPair},
	{what: "pair, rejected at entry, of 500 functions", attach: compiler.KprobeSession, empty: bothOfSession, spec: noPair, among: 499},
	{what: "pair, records, of 500 functions", attach: compiler.KprobeSession, empty: bothOfSession, spec: pair, among: 499},
	{what: "stack of three, records", attach: compiler.Fentry, empty: bothSides, stack: readStack},
	{what: "stack of three, records", attach: compiler.Kprobe, empty: bothProbes, stack: readStack},
	{what: "matching, durations", attach: compiler.Kprobe, empty: []compiler.Kind{compiler.Kprobe, compiler.Kretprobe}, spec: "vfs_read", measure: compiler.Durations},
	{what: "another file than those followed", attach: compiler.KprobeMulti, empty: []compiler.Kind{compiler.KprobeMulti}, spec: "do_dentry_open(f)", follows: []string{"vfs_read"}, over: 40},
	{what: "another file, as the fourth argument", attach: compiler.KprobeMulti, empty: []compiler.Kind{compiler.KprobeMulti}, spec: "do_dentry_open(f)", follows: []string{"do_fcntl", "do_truncate", "vfs_*"}, fcntl: true, over: 40},
}

// TestGuestCosts runs in the machine that TestCosts boots.
func TestGuestCosts(t *testing.T) {
	if !guest.Inside() {
		t.Skip("runs inside a virtual machine, see TestCosts")
	}
	k := openKernel(t)
	kinds := k.allKinds()
	m := newMeter(t)
	reportRelease(t)
	t.Logf("a call takes %.1f instructions; more with", m.nothing)
	reportCost(baseRow, m.nothing)
	t.Logf("%-30s %-13s %8s %8s %8s", "", "", "traced", "empty", "factor")
	for _, c := range costs {
		refused := c.attach == compiler.Fentry && len(c.empty) > 1 && k.target().Features.Preemptible // see testPairing
		compared := *costsAll || c.factor > 0 || c.over > 0
		if slices.Contains(kinds, c.attach) && !refused && compared {
			c.test(t, k, m)
		}
	}
	testLiveCosts(t, m)
	testRecordCosts(t, m)
}

// testLiveCosts bounds what a call costs while ksnoop is awake and shows it, 5,000
// times a second, and what ksnoop does with each event.
func testLiveCosts(t *testing.T, m *meter) {
	const mostCall, mostEvent = 700, 6000
	if !bounded() {
		return
	}
	call, event, err := liveToll(t, ours(&scalarCase), m.call, liveCalls)
	require.NoError(t, err)
	t.Logf("live: %.0f for a call, %.0f for an event", call, event)
	if call > mostCall || event > mostEvent {
		t.Errorf("live: more than %d for a call, or %d for an event", mostCall, mostEvent)
	}
}

// bounded reports whether the bounds are for this kernel. On other kernels and
// architectures calls and empty programs take other numbers of instructions.
func bounded() bool {
	release, err := runtime.Release()
	return err == nil && strings.HasPrefix(release, oneKernel+".") && goruntime.GOARCH == string(vm.AMD64)
}

// followIn follows objects in the functions that globs match.
func (k *kernel) followIn(t *testing.T, text string, globs ...string) *tracer {
	trace, err := spec.Parse(text)
	require.NoError(t, err)
	plan, err := resolve.Follow(trace, resolve.Following{In: globs}, k.target())
	require.NoError(t, err)
	unit, err := codegen.Compile(plan.Probes, compiler.Options{Self: 1, RingBytes: ringBytes})
	require.NoError(t, err)
	session, err := runtime.Load(unit, k.Kernel)
	require.NoError(t, err, "%+v", refusal(err))
	t.Cleanup(func() { session.Close() })
	_, err = session.Attach()
	require.NoError(t, err)
	return &tracer{session}
}

func (c *cost) test(t *testing.T, k *kernel, m *meter) {
	fn := "vfs_read"
	if c.fcntl {
		fn, m = "do_fcntl", m.of(readFlags(t))
	}
	empty := m.added(t, func() func() error { return attachEmpty(t, emptyOn(fn, c.empty...)) })
	traced := m.added(t, func() func() error {
		wishes, opts := resolve.Wishes{Attach: c.attach}, compiler.Options{Self: 1, CountCalls: c.counted, RingBytes: ringBytes}
		if c.follows != nil {
			return k.followIn(t, c.spec, c.follows...).Close
		}
		if c.stack != nil {
			wishes.Chain = true
			if k.target().Arch == compiler.ARM64 {
				return k.traceAs(t, wishes, opts, syscallStack...).Close
			}
			return k.traceAs(t, wishes, opts, c.stack...).Close
		}
		specs := []measured{{c.spec, c.measure}}
		if c.among > 0 {
			for _, name := range k.plainFunctions(t)[:c.among] {
				specs = append(specs, measured{name, c.measure})
			}
		}
		return k.measure(t, wishes, opts, specs...).Close
	})
	t.Logf("%-30s %-13s %8.1f %8.1f %8.2f", c.what, c.attach, traced, empty, traced/empty)
	reportCost(fmt.Sprintf("%s by %s", c.what, c.attach), traced)
	if !bounded() {
		return
	}
	if c.factor > 0 && traced > c.factor*empty {
		t.Errorf("%s by %s: more than %.2f times the empty program", c.what, c.attach, c.factor)
	}
	if c.over > 0 && traced-empty > c.over {
		t.Errorf("%s by %s: more than %.0f over the empty program", c.what, c.attach, c.over)
	}
}
