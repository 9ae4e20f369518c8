//go:build linux

package e2e

import (
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/codegen"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/stretchr/testify/require"
)

// inProcess lists the tests of the guest that trace in their own process,
// because they look at more calls than ksnoop can print.
var inProcess = []struct {
	name string
	test func(*testing.T, *kernel)
}{
	{"accounting", testAccounting},
	{"astyped", testAsTyped},
	{"attaching", testAttaching},
	{"casts", testCasts},
	{"chain", testChain},
	{"cycles", testCycles},
	{"ends", testEnds},
	{"fallback", testFallback},
	{"flood", testFlood},
	{"frozen", testFrozen},
	{"helpers", testHelpers},
	{"iterators", testIterators},
	{"joined", testJoined},
	{"kstack", testKstack},
	{"language", testLanguage},
	{"library", testLibrary},
	{"limited", testLimited},
	{"lines", testLines},
	{"measures", testMeasures},
	{"noroom", testNoRoom},
	{"pairing", testPairing},
	{"part", testPart},
	{"paths", testPaths},
	{"preemption", testPreemption},
	{"printing", testPrinting},
	{"recordings", testRecordings},
	{"refused", testRefused},
	{"replaced", testReplaced},
	{"runtime", testRuntime},
	{"spanning", testSpans},
	{"strings", testStrings},
	{"sweep", testSweep},
	{"tables", testTables},
	{"tagged", testTagged},
	{"taken", testTaken},
	{"unreadable", testUnreadable},
	{"ustack", testUstack},
	{"watching", testWatch},
}

// runInProcess runs these tests. They share one description of the kernel.
func runInProcess(t *testing.T) {
	var k *kernel
	for _, test := range inProcess {
		t.Run(test.name, func(t *testing.T) {
			if k == nil {
				k = openKernel(t)
			}
			logCPU(t)
			test.test(t, k)
		})
	}
}

// ringBytes is the size of a ring buffer in bytes that has room for all events of
// a test, so that the test can read them after the calls.
const ringBytes = 32 << 20

// A kernel is the running kernel, with a description that the tests share.
type kernel struct {
	*runtime.Kernel
	described *compiler.Target
	names     []string // set by the method functions
	taken     bool     // whether every bucket of the tracers is taken, see testTaken
}

func openKernel(t *testing.T) *kernel {
	k, err := runtime.OpenKernel()
	require.NoError(t, err)
	target, err := k.Target(kallsyms.Wanted{})
	require.NoError(t, err)
	return &kernel{Kernel: k, described: target}
}

// target returns a copy of the kernel's description with all its symbols, which
// openKernel has read once, as that takes half a second.
func (k *kernel) target() *compiler.Target {
	target := *k.described
	return &target
}

// kinds lists the attach kinds that a test goes through: with -full all. Without, it
// leaves out kprobe.multi where there is kprobe.session, which has the same programs
// and follows returns as well.
func (k *kernel) kinds(t *testing.T) []compiler.Kind {
	all := k.allKinds()
	if !*full && slices.Contains(all, compiler.KprobeSession) {
		all = slices.DeleteFunc(all, func(kind compiler.Kind) bool { return kind == compiler.KprobeMulti })
	}
	return all
}

// twoKinds lists the attach kinds that a test of values goes through: with -full all. Without,
// it has fentry, and of the two kinds of kprobes, which call the same programs, one: the tests
// take turns. Those that make test-seeds repeats go through all.
func (k *kernel) twoKinds(t *testing.T) []compiler.Kind {
	all := k.kinds(t)
	if left := []compiler.Kind{compiler.Kprobe, compiler.KprobeSession}[len(t.Name())%2]; !*full && len(all) > 2 {
		all = slices.DeleteFunc(all, func(kind compiler.Kind) bool { return kind == left })
	}
	return all
}

// allKinds lists the attach kinds that a user can choose on this kernel.
func (k *kernel) allKinds() []compiler.Kind {
	f := k.target().Features
	kinds := []compiler.Kind{compiler.Kprobe}
	if f.Trampoline {
		kinds = []compiler.Kind{compiler.Fentry, compiler.Kprobe}
	}
	if f.KprobeMulti {
		kinds = append(kinds, compiler.KprobeMulti)
	}
	if f.SessionIsReturn != 0 {
		kinds = append(kinds, compiler.KprobeSession)
	}
	return kinds
}

// resolve binds specs to the kernel. An empty attach stands for the default
// kind.
func (k *kernel) resolve(t *testing.T, attach compiler.Kind, specs ...string) *compiler.Plan {
	plan, err := k.tryResolve(t, resolve.Wishes{Attach: attach}, specs...)
	require.NoError(t, err)
	return plan
}

// refused returns the reason why specs cannot be traced, or nil.
func (k *kernel) refused(t *testing.T, attach compiler.Kind, specs ...string) error {
	_, err := k.tryResolve(t, resolve.Wishes{Attach: attach}, specs...)
	return err
}

// accepts reports whether an attach kind takes a spec. Only fentry may refuse, on a
// preemptible kernel, where it can keep nothing from entry to return.
func (k *kernel) accepts(t *testing.T, attach compiler.Kind, spec string) bool {
	err := k.refused(t, attach, spec)
	if err != nil {
		require.True(t, attach == compiler.Fentry && k.target().Features.Preemptible, "%s by %s: %v", spec, attach, err)
		require.ErrorContains(t, err, "what is kept from entry to return could be that of another call", spec)
	}
	return err == nil
}

func (k *kernel) tryResolve(t *testing.T, w resolve.Wishes, specs ...string) (*compiler.Plan, error) {
	var traces []*spec.Trace
	for _, text := range specs {
		trace, err := spec.Parse(text)
		require.NoError(t, err)
		traces = append(traces, trace)
	}
	return resolve.All(traces, k.target(), w)
}

// A tracer is an attached session of this process.
type tracer struct {
	*runtime.Session
}

// trace traces specs until the test ends, or until Close.
func (k *kernel) trace(t *testing.T, attach compiler.Kind, opts compiler.Options, specs ...string) *tracer {
	return k.traceAs(t, resolve.Wishes{Attach: attach}, opts, specs...)
}

func (k *kernel) traceAs(t *testing.T, w resolve.Wishes, opts compiler.Options, specs ...string) *tracer {
	plan, err := k.tryResolve(t, w, specs...)
	require.NoError(t, err)
	if opts.RingBytes == 0 {
		opts.RingBytes = ringBytes
	}
	unit, err := codegen.Compile(plan.Probes, opts)
	require.NoError(t, err)
	session := k.loadUnit(t, unit)
	n, err := session.Attach()
	require.NoError(t, err)
	require.Equal(t, len(plan.Probes), n)
	if first := plan.Probes[0]; w.Attach != "" && !first.Func.Tracepoint {
		require.Equal(t, w.Attach, first.Attach.Entry)
	}
	return &tracer{session}
}

// refusal returns the verifier's error in err, or else err.
func refusal(err error) error {
	var refused *ebpf.VerifierError
	if errors.As(err, &refused) {
		return refused
	}
	return err
}

// events stops the session and passes all its events to show.
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

// counters returns the sum of the counters of all event types.
func (tr *tracer) counters(t *testing.T) (sum compiler.Counters) {
	all, err := tr.EventCounts()
	require.NoError(t, err)
	for _, c := range all {
		sum.Add(c.Counters)
	}
	return sum
}

// missed returns how many runs of programs the kernel has skipped.
func (tr *tracer) missed(t *testing.T) (sum uint64) {
	all, err := tr.Missed()
	require.NoError(t, err)
	for _, m := range all {
		sum += m.N
	}
	return sum
}
