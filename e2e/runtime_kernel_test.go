//go:build linux

package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

func testRuntimeFeatures(t *testing.T) {
	kernel, target := openGuest(t)
	start := time.Now()
	again, err := kernel.Features()
	require.NoError(t, err)
	t.Logf("%+v, asked again in %v", target.Features, time.Since(start))
	require.Equal(t, target.Features, again)
	f := target.Features
	f.Preemptible = false
	f.SessionIsReturn = min(f.SessionIsReturn, 1)
	want := map[string]compiler.Features{
		"5.10": {TrampolineWords: 6},
		"6.1.": {TrampolineWords: 6, TrampolineStructs: true, CurrentTask: true, RuntimeAlloc: true},
		"6.12": {TrampolineWords: 12, TrampolineStructs: true, CurrentTask: true, RuntimeAlloc: true, KprobeMulti: true, SessionIsReturn: 1},
		"6.18": {TrampolineWords: 12, TrampolineStructs: true, CurrentTask: true, RuntimeAlloc: true, KprobeMulti: true, SessionIsReturn: 1, ReturnsUnlimited: true, CancelRepeats: true},
		"7.2.": {TrampolineWords: 12, TrampolineStructs: true, CurrentTask: true, RuntimeAlloc: true, KprobeMulti: true, SessionIsReturn: 1, ReturnsUnlimited: true},
	}
	var uts unix.Utsname
	require.NoError(t, unix.Uname(&uts))
	expected, ok := want[unix.ByteSliceToString(uts.Release[:])[:4]]
	if !ok {
		t.Skip("a kernel that this test does not know")
	}
	expected.Trampoline, expected.ReturnInstances = true, 4096
	expected.ConsistentBTF = expected.KprobeMulti // of these kernels the same ones
	require.Equal(t, expected, f)
}

// Threads that preempt each other inside an fentry program are missed on
// preemptible kernels. Runs and misses add up to the calls.
func testRuntimeMissed(t *testing.T) {
	kernel, target := openGuest(t)
	for _, kind := range []compiler.Kind{compiler.Fentry, compiler.Kprobe, compiler.KprobeMulti, compiler.Session} {
		if !supports(target.Features, kind) {
			continue
		}
		c := newCounter()
		c.attach(kind, 0, compiler.Place{Probe: c.probe(getpgid), Symbol: getpgid})
		s := load(t, c, kernel)
		_, err := s.Attach()
		require.NoError(t, err)
		const threads, calls = 4, 100_000
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
		if kind == compiler.Session {
			want *= 2
		}
		if !missed[0].Uncounted {
			require.Equal(t, want, ran+missed[0].N)
		}
		require.NoError(t, s.Close())
	}
}

// A program that the verifier refuses is shown with its source.
func testRuntimeVerifier(t *testing.T) {
	kernel, _ := openGuest(t)
	c := newCounter()
	c.attach(compiler.Kprobe, 0, compiler.Place{Probe: c.probe(getpgid), Symbol: getpgid})
	for _, p := range c.Collection.Programs {
		p.Instructions = asm.Instructions{
			asm.Mov.Imm(asm.R1, 0).WithSource(asm.Comment("the pointer")),
			asm.LoadMem(asm.R0, asm.R1, 0, asm.DWord).WithSource(asm.Comment("filename->len")),
			asm.Return(),
		}
	}
	_, err := runtime.Load(c.Unit, kernel)
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

// Most functions can be hooked, and junk is not listed.
func testRuntimeHooks(t *testing.T) {
	kernel, _ := openGuest(t)
	all, found := 0, 0
	start := time.Now()
	require.NoError(t, kernel.Hooks(func(function, module []byte) {
		all++
		if string(function) == "vfs_read" && len(module) == 0 {
			found++
		}
	}))
	t.Logf("%d hooks in %v", all, time.Since(start))
	require.Equal(t, 1, found)
	require.Greater(t, all, 20_000)
	symbols, err := kernel.Symbols()
	require.NoError(t, err)
	require.Greater(t, symbols.Len(), all)
}
