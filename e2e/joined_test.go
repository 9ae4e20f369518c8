//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/codegen"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime"
)

// testJoined traces many functions with a program each, which share a link: by
// their addresses, and, where those are hidden, by their names.
func testJoined(t *testing.T, k *kernel) {
	if !k.target().Features.KprobeMulti {
		t.Skip("no kprobe.multi")
	}
	plain := k.plainFunctions(t)[:12]
	specs := append([]string{
		getpgid + "(regs->" + firstArgument + ", return)", getsid + "(regs->sp, return)", getpriority + "(regs, return)",
	}, plain...)
	kinds := slices.DeleteFunc(k.allKinds(), func(kind compiler.Kind) bool { return !kind.Multi() })
	for name, k := range map[string]*kernel{"address": k, "name": k.hiding(t, append(slices.Clone(plain), getpgid, getsid, getpriority))} {
		for _, kind := range append(kinds, "") {
			if kind == "" && !k.target().Features.Preemptible && name == "name" {
				continue // trampolines take names
			}
			t.Run(fmt.Sprintf("%s/%s", name, kind), func(t *testing.T) { k.testJoint(t, kind, specs) })
			t.Run(fmt.Sprintf("%s/%s/refused", name, kind), func(t *testing.T) { k.testJointRefused(t, kind, specs) })
		}
	}
	t.Run("no hook", func(t *testing.T) { k.testJointNoHook(t, specs) })
}

// hiding returns the kernel as it looks to users from whom it hides addresses.
func (k *kernel) hiding(t *testing.T, functions []string) *kernel {
	lines := strings.Join(functions, "\n0000000000000000 T ")
	table, err := kallsyms.Read(strings.NewReader("0000000000000000 T "+lines+"\n"), nil)
	require.NoError(t, err)
	target := k.target()
	target.Symbols = table
	require.True(t, table.Hidden())
	return &kernel{Kernel: k.Kernel, described: target, names: k.names}
}

// testJoint checks that one link for each side shows what was called, in the
// events of the right function, and counts it.
func (k *kernel) testJoint(t *testing.T, kind compiler.Kind, specs []string) {
	before := bpfObjects(t)
	twice := append(slices.Clone(specs), getsid+"(return)") // a link can have a function only once
	tr := k.traceAs(t, resolve.Wishes{Attach: kind}, compiler.Options{CountCalls: true}, twice...)
	unit := tr.Unit()
	require.LessOrEqual(t, len(bpfObjects(t).links.without(before.links)), 6) // returns of one type share programs, and few programs have a link each
	require.True(t, slices.ContainsFunc(unit.Attachments, func(a compiler.Attachment) bool { return len(a.Jumps) > 10 }))
	calls := map[string]int{getpgid: 5, getsid: 7, getpriority: 11}
	for name, n := range calls {
		callKernel(name, n)
	}
	shown := map[string]int{}
	tr.events(t, func(ev *runtime.Event) {
		if calls[ev.Probe.Func.Name] > 0 {
			shown[fmt.Sprintf("%s %d %d", ev.Probe.Func.Name, slices.Index(unit.Probes(), ev.Probe), ev.Kind)]++
		}
	})
	want := map[string]int{}
	for i, p := range unit.Probes()[:3] {
		want[fmt.Sprintf("%s %d %d", p.Func.Name, i, compiler.EntryEvent)] = calls[p.Func.Name]
		want[fmt.Sprintf("%s %d %d", p.Func.Name, i, compiler.ReturnEvent)] = calls[p.Func.Name]
	}
	want[fmt.Sprintf("%s %d %d", getsid, len(specs), compiler.ReturnEvent)] = calls[getsid]
	require.Equal(t, want, shown)
	counts, err := tr.EventCounts()
	require.NoError(t, err)
	for _, c := range counts {
		if n := calls[c.Probe.Func.Name]; n > 0 {
			require.Equal(t, uint64(n), c.Matched, c.Probe.Trace.Text)
		}
	}
	require.Zero(t, tr.missed(t))
	require.NoError(t, tr.Close())
	requireNothingLeft(t, before)
}

// testJointRefused checks that a program that the verifier refuses costs its own
// probe alone.
func (k *kernel) testJointRefused(t *testing.T, kind compiler.Kind, specs []string) {
	unit := k.unit(t, resolve.Wishes{Attach: kind}, compiler.Options{}, specs...)
	broken := breakOwn(unit, unit.Probes()[1])
	s, err := runtime.Load(unit, k.Kernel)
	require.NoError(t, err)
	defer s.Close()
	require.Len(t, s.Refused(), 1)
	require.Equal(t, broken, s.Refused()[0].Program)
	require.Len(t, s.Refused()[0].Probes, 1)
	require.Same(t, unit.Probes()[1], s.Refused()[0].Probes[0])
	n, err := s.Attach()
	require.NoError(t, err)
	require.Equal(t, len(specs)-1, n)
	callKernel(getpgid, 3)
	callKernel(getsid, 3)
	shown := map[string]int{}
	(&tracer{s}).events(t, func(ev *runtime.Event) { shown[ev.Probe.Func.Name]++ })
	require.Equal(t, 6, shown[getpgid])
	require.Zero(t, shown[getsid])
}

// breakOwn breaks a program that a probe has for itself, and returns its name.
func breakOwn(unit *compiler.Unit, p *compiler.Probe) string {
	var own string
	places := map[string]int{}
	for _, at := range unit.Attachments {
		for _, place := range at.Places {
			name := at.ProgramAt(place)
			places[name]++
			if place.Probe == p {
				own = name // the program of the entry is the last one
			}
		}
	}
	if places[own] != 1 {
		return "" // it is shared, and left as it is
	}
	breakInstructions(unit.Collection.Programs[own])
	return own
}

// testJointNoHook checks that a function that ftrace has no hook in is found and
// named, and costs its own probe alone.
func (k *kernel) testJointNoHook(t *testing.T, specs []string) {
	hooks := map[string]bool{}
	require.NoError(t, k.Hooks(func(function, _ []byte) { hooks[string(function)] = true }))
	target, without := k.target(), ""
	for typ, err := range k.Types().All() {
		require.NoError(t, err)
		f, ok := typ.(*btf.Func)
		if !ok || hooks[f.Name] || !isPlain(f.Type.(*btf.FuncProto)) || k.refused(t, "", f.Name) != nil {
			continue
		}
		if at := target.Symbols.Lookup(f.Name); len(at) == 1 && inKernel(at[0]) {
			without = f.Name
			break
		}
	}
	require.NotEmpty(t, without)
	specs = append(slices.Clone(specs), without)
	plan, err := k.tryResolve(t, resolve.Wishes{Attach: compiler.KprobeMulti}, specs...)
	require.NoError(t, err)
	unit, err := codegen.Compile(plan.Probes, compiler.Options{RingBytes: 1 << 16})
	require.NoError(t, err)
	s := load(t, counter{unit}, k.Kernel)
	n, err := s.Attach()
	require.Equal(t, len(specs)-1, n)
	var attach *runtime.AttachError
	require.True(t, errors.As(err, &attach))
	require.Equal(t, without, attach.Probe.Func.Name)
	require.ErrorContains(t, err, "to "+without+": the kernel allows no probe there")
	require.NotContains(t, err.Error(), "\n")
	callKernel(getpgid, 3)
	shown := 0
	(&tracer{s}).events(t, func(ev *runtime.Event) {
		if ev.Probe.Func.Name == getpgid {
			shown++
		}
	})
	require.Equal(t, 6, shown)
}
