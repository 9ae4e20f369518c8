//go:build linux

package e2e

import (
	"fmt"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/e2e/feature"
	"github.com/ksnoop/ksnoop/runtime"
)

func testRuntimeFeatures(t *testing.T, k *kernel) {
	target := k.target()
	start := time.Now()
	again, err := k.Features()
	require.NoError(t, err)
	t.Logf("%+v, asked again in %v", target.Features, time.Since(start))
	require.Equal(t, target.Features, again)
	f := target.Features
	f.Preemptible, f.PreemptCount = false, compiler.PreemptCount{}
	f.SessionIsReturn = min(f.SessionIsReturn, 1)
	want := map[string]compiler.Features{
		"5.10": {TrampolineWords: 6},
		"6.1.": {TrampolineWords: 6, TrampolineStructs: true, CurrentTask: true, CountsSkipped: true, FuncArg: true, CompareExchange: true, RuntimeAlloc: true},
		"6.12": {TrampolineWords: 12, TrampolineStructs: true, CurrentTask: true, CountsSkipped: true, FuncArg: true, CompareExchange: true, RuntimeAlloc: true, KprobeMulti: true, SessionIsReturn: 1},
		"6.18": {TrampolineWords: 12, TrampolineStructs: true, CurrentTask: true, CountsSkipped: true, FuncArg: true, CompareExchange: true, RuntimeAlloc: true, KprobeMulti: true, SessionIsReturn: 1, ReturnsUnlimited: true, CancelRepeats: true},
		"7.2.": {TrampolineWords: 12, TrampolineStructs: true, CurrentTask: true, CountsSkipped: true, FuncArg: true, CompareExchange: true, RuntimeAlloc: true, KprobeMulti: true, SessionIsReturn: 1, ReturnsUnlimited: true},
	}
	var uts unix.Utsname
	require.NoError(t, unix.Uname(&uts))
	expected, ok := want[unix.ByteSliceToString(uts.Release[:])[:4]]
	if !ok {
		t.Skip("a kernel that this test does not know")
	}
	amd64 := target.Arch == compiler.AMD64
	described := !amd64 || f.CurrentTask // the types of 5.10 for amd64 lack the variable
	require.Equal(t, described, target.Features.PreemptCount.Known())
	expected.Trampoline, expected.ReturnInstances, expected.CPUs = true, 4096, goruntime.NumCPU()
	expected.ConsistentBTF = expected.KprobeMulti // the same kernels have it
	if !amd64 {
		lackOnARM64(&expected)
	}
	require.Equal(t, expected, f)
	require.Equal(t, feature.Has("fentry"), f.Trampoline)
	require.Equal(t, feature.Has("kprobe.multi"), f.KprobeMulti)
	require.Equal(t, feature.Has("kprobe.session"), f.SessionIsReturn != 0)
}

// lackOnARM64 removes what kernels lack on arm64: trampolines before 6.4, their
// words on the stack before 6.16, and probes of the multi kinds before 6.14.
func lackOnARM64(f *compiler.Features) {
	f.Trampoline = f.ConsistentBTF // the same kernels have both
	f.TrampolineWords = 8
	if f.ReturnsUnlimited {
		f.TrampolineWords = 12
	} else {
		f.KprobeMulti, f.SessionIsReturn = false, 0
	}
}

// testRuntimeMissed checks that runs and misses add up to the calls. On
// preemptible kernels, threads that preempt each other inside an fentry program
// are missed.
func testRuntimeMissed(t *testing.T, k *kernel) {
	target := k.target()
	for _, kind := range []compiler.Kind{compiler.Fentry, compiler.Kprobe, compiler.KprobeMulti, compiler.KprobeSession} {
		if !supports(target.Features, kind) {
			continue
		}
		c := newCounter()
		c.attach(kind, 0, compiler.Place{Probe: c.probe(getpgid), Symbol: getpgid})
		s := load(t, c, k.Kernel)
		_, err := s.Attach()
		require.NoError(t, err)
		const threads = 4
		calls := rounds(5_000, 100_000)
		var wg sync.WaitGroup
		for range threads {
			wg.Go(func() { callKernel(getpgid, calls) })
		}
		wg.Wait()
		missed, err := s.Missed()
		require.NoError(t, err)
		require.Len(t, missed, 1)
		ran := hits(t, s)[0]
		t.Logf("%s: ran %d, missed %d (uncounted: %v)", kind, ran, missed[0].N, missed[0].Uncounted)
		want := uint64(threads * calls)
		if kind == compiler.KprobeSession {
			want *= 2
		}
		if !missed[0].Uncounted {
			require.Equal(t, want, ran+missed[0].N)
		}
		require.NoError(t, s.Close())
	}
}

// testRuntimeVerifier checks that the error for a program that the verifier
// refuses shows the program with its source.
func testRuntimeVerifier(t *testing.T, k *kernel) {
	c := newCounter()
	c.attach(compiler.Kprobe, 0, compiler.Place{Probe: c.probe(getpgid), Symbol: getpgid})
	for _, p := range c.Collection.Programs {
		p.Instructions = asm.Instructions{
			asm.Mov.Imm(asm.R1, 0).WithSource(asm.Comment("the pointer")),
			asm.LoadMem(asm.R0, asm.R1, 0, asm.DWord).WithSource(asm.Comment("filename->len")),
			asm.Return(),
		}
	}
	_, err := runtime.Load(c.Unit, k.Kernel)
	var refused *runtime.VerifierError
	require.ErrorAs(t, err, &refused)
	t.Log(err)
	require.Equal(t, "kprobe 0", refused.Program)
	require.Contains(t, err.Error(), "a bug of ksnoop")
	require.Contains(t, err.Error(), "R1 invalid mem access")
	require.NotContains(t, err.Error(), "\n")
	require.Contains(t, fmt.Sprintf("%+v", err), "; filename->len")
	require.Contains(t, fmt.Sprintf("%+v", err), "processed ")
	t.Logf("%+v", err)
}

// testRuntimeHooks checks that most functions can be hooked, and that the list
// has only functions.
func testRuntimeHooks(t *testing.T, k *kernel) {
	all, found := 0, 0
	start := time.Now()
	require.NoError(t, k.Hooks(func(function, module []byte) {
		all++
		if string(function) == "vfs_read" && len(module) == 0 {
			found++
		}
	}))
	t.Logf("%d hooks in %v", all, time.Since(start))
	require.Equal(t, 1, found)
	require.Greater(t, all, 20_000)
	symbols, err := k.Symbols()
	require.NoError(t, err)
	require.Greater(t, symbols.Len(), all)
	checkHookable(t, k)
}

// checkHookable checks that a target knows the same hooks as tracefs shows.
func checkHookable(t *testing.T, k *kernel) {
	names := map[string]bool{}
	require.NoError(t, k.Hooks(func(function, _ []byte) { names[string(function)] = true }))
	trace, err := spec.Parse("*")
	require.NoError(t, err)
	target, err := k.TargetFor([]*spec.Trace{trace})
	require.NoError(t, err)
	symbols, err := k.Symbols()
	require.NoError(t, err)
	// on kernels before 5.16, and those that list no variables, tracefs is all there is
	records := target.Features.CompareExchange && len(symbols.Lookup("ftrace_pages_start")) > 0
	hooked, wrong, at := 0, []string{}, map[uint64]bool{}
	for s := range target.Symbols.Functions() {
		at[s.Addr] = at[s.Addr] || names[s.Name]
	}
	for s := range target.Symbols.Functions() { // tracefs shows one of several names of a function
		names[s.Name] = names[s.Name] || at[s.Addr] && records
	}
	for s := range target.Symbols.Functions() {
		if got := target.Hookable(s.Name); got != names[s.Name] {
			wrong = append(wrong, fmt.Sprintf("%s %t", s.Name, got))
		} else if got {
			hooked++
		}
	}
	require.Empty(t, wrong)
	require.Greater(t, hooked, 20_000)
}
