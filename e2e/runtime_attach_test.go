//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime"
)

// testRuntimeKinds checks that programs of every kind run at every place, and
// that the cookie identifies the place.
func testRuntimeKinds(t *testing.T, k *kernel) {
	target := k.target()
	for _, tc := range []struct {
		kind      compiler.Kind
		instances int
		perCall   uint64
	}{
		{compiler.Fentry, 0, 1},
		{compiler.Fexit, 0, 1},
		{compiler.Kprobe, 0, 1},
		{compiler.Kretprobe, 0, 1},
		{compiler.Kretprobe, 4096, 1},
		{compiler.KprobeMulti, 0, 1},
		{compiler.KretprobeMulti, 0, 1},
		{compiler.KprobeSession, 0, 2},
	} {
		for name, byAddr := range map[string][3]bool{"name": {}, "address": {true, true, true}, "both": {false, true, true}} {
			trampoline := programTypes[tc.kind].program == ebpf.Tracing
			if !supports(target.Features, tc.kind) || trampoline && name != "name" {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d/by %s", tc.kind, tc.instances, name), func(t *testing.T) {
				s := load(t, newThree(target, tc.kind, tc.instances, byAddr), k.Kernel)
				n, err := s.Attach()
				require.NoError(t, err)
				require.Equal(t, 3, n)
				require.Empty(t, s.Notes())
				callKernel(getpgid, 5)
				callKernel(getsid, 7)
				callKernel(getpriority, 11)
				require.Equal(t, []uint64{5 * tc.perCall, 7 * tc.perCall, 11 * tc.perCall}, hits(t, s))
				missed, err := s.Missed()
				require.NoError(t, err)
				for _, m := range missed {
					require.Equal(t, tc.kind, m.Kind)
					require.Zero(t, m.N)
				}
			})
		}
	}
}

// newThree returns a unit of the three functions, some given by their address
// alone.
func newThree(target *compiler.Target, kind compiler.Kind, instances int, byAddr [3]bool) counter {
	c := newCounter()
	var places []compiler.Place
	for i, fn := range []string{getpgid, getsid, getpriority} {
		p := compiler.Place{Probe: c.probe(fn), Symbol: fn, Cookie: uint64(i)}
		if byAddr[i] {
			p.Symbol, p.Addr = "the address counts", target.Symbols.Lookup(fn)[0].Addr
		}
		places = append(places, p)
		if !kind.Multi() {
			c.attach(kind, instances, p)
		}
	}
	if kind.Multi() {
		c.attach(kind, instances, places...)
	}
	return c
}

// testRuntimeModule traces functions of modules, whose addresses are far from
// the kernel's text.
func testRuntimeModule(t *testing.T, k *kernel) {
	const xmit = "dummy_xmit"
	target := k.target()
	require.NoError(t, exec.Command("traffic", "dummy", "-n", "0").Run())
	table, err := k.Target(kallsyms.Wanted{Keep: func(name string) bool { return name == xmit }})
	require.NoError(t, err)
	symbols := table.Symbols.Lookup(xmit)
	require.Len(t, symbols, 1)
	for _, kind := range []compiler.Kind{compiler.Kprobe, compiler.Kretprobe, compiler.KprobeMulti, compiler.KretprobeMulti} {
		for _, addr := range []uint64{0, symbols[0].Addr} {
			if !supports(target.Features, kind) {
				continue
			}
			c := newCounter()
			c.attach(kind, 0, compiler.Place{Probe: c.probe(xmit), Symbol: xmit, Addr: addr})
			s := load(t, c, k.Kernel)
			_, err := s.Attach()
			require.NoError(t, err, "%s at %#x", kind, addr)
			require.NoError(t, exec.Command("traffic", "dummy", "-n", "3", "-size", "100").Run())
			require.Equal(t, []uint64{3}, hits(t, s), "%s at %#x", kind, addr)
			require.NoError(t, s.Close())
		}
	}
}

// testRuntimeReloaded checks that an address in a module that has been unloaded
// since is not attached to, whatever is there by now.
func testRuntimeReloaded(t *testing.T, k *kernel) {
	const xmit = "dummy_xmit"
	features := k.target().Features
	if !features.KprobeMulti {
		t.Skip("no kprobe.multi")
	}
	require.NoError(t, exec.Command("traffic", "dummy", "-n", "0").Run())
	table, err := k.Target(kallsyms.Wanted{Keep: func(name string) bool { return name == xmit }})
	require.NoError(t, err)
	symbol := table.Symbols.Lookup(xmit)[0]
	attach := func() (int, error) {
		c := newCounter()
		module, other := c.probe(xmit), c.probe(getpgid)
		module.Func.Module = symbol.Module
		c.attach(compiler.KprobeMulti, 0, compiler.Place{Probe: module, Symbol: xmit, Addr: symbol.Addr},
			compiler.Place{Probe: other, Symbol: getpgid, Addr: k.target().Symbols.Lookup(getpgid)[0].Addr, Cookie: 1})
		s := load(t, c, k.Kernel)
		defer s.Close()
		n, err := s.Attach()
		callKernel(getpgid, 3)
		require.Equal(t, uint64(3), hits(t, s)[1])
		return n, err
	}
	n, err := attach()
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.NoError(t, unix.DeleteModule(symbol.Module, 0))
	require.NoError(t, exec.Command("traffic", "dummy", "-n", "0").Run())
	n, err = attach()
	require.EqualError(t, err, "attach kprobe.multi to dummy_xmit: module dummy was unloaded after its functions were looked up: start again")
	require.Equal(t, 1, n)
}

func testRuntimeTracepoint(t *testing.T, k *kernel) {
	c := newCounter()
	c.attach(compiler.TpBTF, 0, compiler.Place{Probe: c.probe("task_rename"), Symbol: "task_rename"})
	s := load(t, c, k.Kernel)
	n, err := s.Attach()
	require.NoError(t, err)
	require.Equal(t, 1, n)
	renamed := make(chan error, 3)
	go func() {
		goruntime.LockOSThread() // the thread, with its other name, ends with the goroutine
		for range cap(renamed) {
			name := [16]byte{'w', 'o', 'r', 'k'}
			renamed <- unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name)), 0, 0, 0)
		}
	}()
	for range cap(renamed) {
		require.NoError(t, <-renamed)
	}
	require.Equal(t, []uint64{3}, hits(t, s))
}

// testRuntimeBadPlaces checks that a place that cannot be hooked is found among
// good ones, and that its return side is left out, too.
func testRuntimeBadPlaces(t *testing.T, k *kernel) {
	target := k.target()
	if !target.Features.KprobeMulti {
		t.Skip("no kprobe.multi")
	}
	for name, bad := range map[string]compiler.Place{
		"name":    {Symbol: "no_such_function"},
		"address": {Addr: target.Symbols.Lookup(getpgid)[0].Addr + 16},
	} {
		c := newCounter()
		ok, other := c.probe(getsid), c.probe(getpriority)
		bad.Probe, bad.Cookie = c.probe("bad"), 2
		good := []compiler.Place{{Probe: ok, Symbol: getsid}, {Probe: other, Symbol: getpriority, Cookie: 1}}
		if bad.Addr != 0 {
			for i := range good {
				good[i].Addr = target.Symbols.Lookup(good[i].Symbol)[0].Addr
			}
		}
		// The return side of the bad probe could be attached.
		c.attach(compiler.KretprobeMulti, 0, good[0], compiler.Place{Probe: bad.Probe, Symbol: getpgid, Cookie: 2}, good[1])
		c.attach(compiler.KprobeMulti, 0, good[0], bad, good[1])
		c.attach(compiler.Kprobe, 0, compiler.Place{Probe: bad.Probe, Symbol: getpgid, Cookie: 2})
		s := load(t, c, k.Kernel)
		start := time.Now()
		n, err := s.Attach()
		t.Log(name, "attached in", time.Since(start), err)
		var attach *runtime.AttachError
		require.ErrorAs(t, err, &attach)
		require.Same(t, bad.Probe, attach.Probe)
		require.Equal(t, 2, n)
		callKernel(getpgid, 5)
		callKernel(getsid, 7)
		callKernel(getpriority, 11)
		require.Equal(t, []uint64{14, 22, 0}, hits(t, s), name)
		missed, err := s.Missed()
		require.NoError(t, err)
		require.Len(t, missed, 2)
		require.Equal(t, []*compiler.Probe{ok, other}, missed[0].Probes)
		require.NoError(t, s.Close())
	}
}

// testRuntimeLeftOut checks that a probe is left out as a whole if one of its
// sides cannot be attached.
func testRuntimeLeftOut(t *testing.T, k *kernel) {
	c := newCounter()
	bad, good := c.probe("bad"), c.probe(getsid)
	c.attach(compiler.Kretprobe, 0, compiler.Place{Probe: bad, Symbol: getpgid})
	c.attach(compiler.Kretprobe, 4096, compiler.Place{Probe: good, Symbol: getsid, Cookie: 1})
	c.attach(compiler.Kprobe, 0, compiler.Place{Probe: bad, Symbol: "no_such_function"})
	c.attach(compiler.Kprobe, 0, compiler.Place{Probe: good, Symbol: getsid, Cookie: 1})
	s := load(t, c, k.Kernel)
	n, err := s.Attach()
	require.EqualError(t, err, "attach kprobe to bad: the kernel allows no probe there (error 2): it is marked notrace, or its code is not one plain function")
	require.Equal(t, 1, n)
	callKernel(getpgid, 5)
	callKernel(getsid, 7)
	require.Equal(t, []uint64{0, 14}, hits(t, s))
}

// testRuntimeReturnInstances makes more concurrent calls than a kretprobe has
// instances, and checks that the followed and the missed calls add up.
func testRuntimeReturnInstances(t *testing.T, k *kernel) {
	const poll, threads = syscallPrefix + "sys_ppoll", 40
	target := k.target()
	for _, tc := range []struct {
		kind      compiler.Kind
		instances int
	}{
		{compiler.Kretprobe, 0},
		{compiler.Kretprobe, 3},
		{compiler.Kretprobe, 4096},
		{compiler.KretprobeMulti, 0},
		{compiler.KprobeSession, 0},
	} {
		if !supports(target.Features, tc.kind) {
			continue
		}
		c := newCounter()
		c.attach(tc.kind, tc.instances, compiler.Place{Probe: c.probe(poll), Symbol: poll})
		s := load(t, c, k.Kernel)
		_, err := s.Attach()
		require.NoError(t, err)
		var wg sync.WaitGroup
		for range threads {
			wg.Go(func() { unix.Ppoll(nil, &unix.Timespec{Sec: 1}, nil) })
		}
		wg.Wait()
		missed, err := s.Missed()
		require.NoError(t, err)
		ran := hits(t, s)[0]
		t.Logf("%s %d: ran %d, %+v", tc.kind, tc.instances, ran, missed[0].N)
		if tc.kind == compiler.KprobeSession {
			ran /= 2
		}
		if !missed[0].Uncounted {
			require.Equal(t, uint64(threads), ran+missed[0].N)
		}
		switch {
		case tc.instances == 3:
			require.GreaterOrEqual(t, ran, uint64(3))
			require.Less(t, ran, uint64(threads))
		case tc.instances > 3, tc.kind != compiler.Kretprobe && target.Features.ReturnsUnlimited:
			require.Equal(t, uint64(threads), ran)
		}
		require.NoError(t, s.Close())
	}
}

// testRuntimeStale checks that a process removes what a killed process has left
// in tracefs.
func testRuntimeStale(t *testing.T, k *kernel) {
	const events = "/sys/kernel/tracing/kprobe_events"
	f, err := os.OpenFile(events, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = f.WriteString("r16:ksnoop_999999_1_0123456789abcdef/left vfs_read")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	c := newCounter()
	c.attach(compiler.Kretprobe, 16, compiler.Place{Probe: c.probe(getpgid), Symbol: getpgid})
	s := load(t, c, k.Kernel)
	_, err = s.Attach()
	require.NoError(t, err)
	text, err := os.ReadFile(events)
	require.NoError(t, err)
	require.NotContains(t, string(text), "ksnoop_999999_")
	require.Contains(t, string(text), fmt.Sprintf("r16:ksnoop_%d_1_", os.Getpid()))
	require.NoError(t, s.Close())
	text, err = os.ReadFile(events)
	require.NoError(t, err)
	require.Empty(t, text)
}
