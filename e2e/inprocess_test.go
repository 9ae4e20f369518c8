//go:build linux

package e2e

import (
	"errors"
	"io"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime"
)

// inProcess lists the tests of the guest that trace in their own process,
// because they look at more calls than can be printed.
var inProcess = []struct {
	name string
	test func(*testing.T, *kernel)
}{
	{"attaching", testAttaching},
	{"chain", testChain},
	{"cycles", testCycles},
	{"flood", testFlood},
	{"frozen", testFrozen},
	{"language", testLanguage},
	{"lines", testLines},
	{"measures", testMeasures},
	{"pairing", testPairing},
	{"part", testPart},
	{"preemption", testPreemption},
	{"runtime", testRuntime},
	{"sweep", testSweep},
	{"unreadable", testUnreadable},
}

// runInProcess runs them with what is read of the kernel once.
func runInProcess(t *testing.T) {
	k := openKernel(t)
	for _, test := range inProcess {
		t.Run(test.name, func(t *testing.T) { test.test(t, k) })
	}
}

// ringBytes is room for the events of a whole test, so that reading them can
// wait until the calls have been made.
const ringBytes = 32 << 20

// A kernel is the running one. It and the tracer are all that these tests know
// of the packages compiler and runtime.
type kernel struct {
	*runtime.Kernel
	described *compiler.Target
}

func openKernel(t *testing.T) *kernel {
	k, err := runtime.OpenKernel()
	require.NoError(t, err)
	target, err := k.Target(kallsyms.Wanted{})
	require.NoError(t, err)
	return &kernel{k, target}
}

// target describes the kernel with all its symbols. They are read once, which
// takes half a second.
func (k *kernel) target() *compiler.Target {
	target := *k.described
	return &target
}

// kinds lists the attach kinds that a user may ask this kernel for.
func (k *kernel) kinds(t *testing.T) []compiler.Kind {
	kinds := []compiler.Kind{compiler.Fentry, compiler.Kprobe}
	f := k.target().Features
	if f.KprobeMulti {
		kinds = append(kinds, compiler.KprobeMulti)
	}
	if f.SessionIsReturn != 0 {
		kinds = append(kinds, compiler.Session)
	}
	return kinds
}

// resolve binds specs to the kernel; attach "" is the default.
func (k *kernel) resolve(t *testing.T, attach compiler.Kind, specs ...string) (*compiler.Plan, *compiler.Target) {
	plan, target, err := k.tryResolve(t, compiler.Wishes{Attach: attach}, specs...)
	require.NoError(t, err)
	return plan, target
}

// refused is why specs cannot be traced.
func (k *kernel) refused(t *testing.T, attach compiler.Kind, specs ...string) error {
	_, _, err := k.tryResolve(t, compiler.Wishes{Attach: attach}, specs...)
	return err
}

func (k *kernel) tryResolve(t *testing.T, w compiler.Wishes, specs ...string) (*compiler.Plan, *compiler.Target, error) {
	var traces []*spec.Trace
	for _, text := range specs {
		trace, err := spec.Parse(text)
		require.NoError(t, err)
		traces = append(traces, trace)
	}
	target := k.target()
	plan, err := compiler.ResolveAll(traces, target, w)
	return plan, target, err
}

// A tracer is a session of this process with everything in place.
type tracer struct {
	*runtime.Session
}

// trace puts specs in place until the test ends, or until close.
func (k *kernel) trace(t *testing.T, attach compiler.Kind, opts compiler.Options, specs ...string) *tracer {
	return k.traceAs(t, compiler.Wishes{Attach: attach}, opts, specs...)
}

func (k *kernel) traceAs(t *testing.T, w compiler.Wishes, opts compiler.Options, specs ...string) *tracer {
	plan, target, err := k.tryResolve(t, w, specs...)
	require.NoError(t, err)
	if opts.RingBytes == 0 {
		opts.RingBytes = ringBytes
	}
	opts.Features, opts.Arch = target.Features, target.Arch
	unit, err := compiler.Compile(plan.Probes, opts)
	require.NoError(t, err)
	session, err := runtime.Load(unit, k.Kernel)
	require.NoError(t, err, "%+v", refusal(err))
	t.Cleanup(func() { session.Close() })
	n, err := session.Attach()
	require.NoError(t, err)
	require.Equal(t, len(specs), n)
	if w.Attach != "" {
		require.Equal(t, w.Attach, plan.Probes[0].Attach.Entry)
	}
	return &tracer{session}
}

// refusal is what the verifier said, or else the error.
func refusal(err error) error {
	var refused *ebpf.VerifierError
	if errors.As(err, &refused) {
		return refused
	}
	return err
}

// events reads all events, once the calls have been made.
func (tr *tracer) events(t *testing.T, show func(*runtime.Event)) {
	require.NoError(t, tr.Stop())
	var ev runtime.Event
	for {
		err := tr.Read(&ev)
		if err == io.EOF {
			return
		}
		require.NoError(t, err)
		show(&ev)
	}
}

// counters is the sum over all events.
func (tr *tracer) counters(t *testing.T) (sum compiler.Counters) {
	all, err := tr.Tallies()
	require.NoError(t, err)
	for _, c := range all {
		sum.Add(c.Counters)
	}
	return sum
}

// missed is how many runs of programs the kernel has skipped.
func (tr *tracer) missed(t *testing.T) (sum uint64) {
	all, err := tr.Missed()
	require.NoError(t, err)
	for _, m := range all {
		sum += m.N
	}
	return sum
}
