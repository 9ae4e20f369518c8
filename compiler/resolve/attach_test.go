package resolve

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// These are the features that root has on Debian's kernels 6.1, 6.12 and 7.2.
var (
	of61  = compiler.Features{Trampoline: true, TrampolineWords: 6, TrampolineStructs: true, ReturnInstances: 4096}
	of612 = compiler.Features{Trampoline: true, TrampolineWords: 12, TrampolineStructs: true, ReturnInstances: 4096, KprobeMulti: true, SessionIsReturn: 77}
	of72  = compiler.Features{
		Trampoline: true, TrampolineWords: 12, TrampolineStructs: true, ReturnInstances: 4096, KprobeMulti: true, SessionIsReturn: 77,
		Preemptible: true, ReturnsUnlimited: true,
	}
)

const (
	manySpecs = "send nothing open work times spill free huge read(count, return) do_exit callback"
	cheapest  = "the cheapest kind, and the signature allows it"
	preempts  = "this kernel preempts tasks inside fentry programs, and hits would be lost"
	oneForAll = "one attachment for many functions"
)

func TestAttachChoice(t *testing.T) {
	for _, tc := range []struct {
		kernel        string
		features      compiler.Features
		specs         string
		entry, ret    compiler.Kind
		reason        string
		joined, hides bool
	}{
		{"6.1", of61, "read(count)", compiler.Fentry, compiler.Fexit, cheapest, false, false},
		{"6.1", of61, "read", compiler.Fentry, compiler.Fexit, cheapest, false, false},
		{"6.1", of61, manySpecs, compiler.Fentry, compiler.Fexit, cheapest, false, false},
		{"6.12", of612, "read", compiler.Fentry, compiler.Fexit, cheapest, false, false},
		{"6.12", of612, manySpecs, compiler.KprobeSession, compiler.KprobeSession, oneForAll, true, false},
		{"6.12", of612, manySpecs, compiler.KprobeSession, compiler.KprobeSession, oneForAll, true, true},
		{"6.12, full preemption", preemptible(of612), "read(count)", compiler.KprobeMulti, compiler.Kretprobe, preempts, false, false},
		{"6.12, full preemption", preemptible(of612), "read(count, return)", compiler.Kprobe, compiler.Kretprobe, preempts, false, false},
		{"7.2", of72, "read(count)", compiler.KprobeMulti, compiler.KretprobeMulti, preempts, false, false},
		{"7.2", of72, "read(return)", compiler.KprobeMulti, compiler.KretprobeMulti, preempts, false, false},
		{"7.2", of72, "read(count, return)", compiler.KprobeSession, compiler.KprobeSession, preempts, false, false},
		{"7.2", of72, "read(count==1,return)", compiler.KprobeSession, compiler.KprobeSession, preempts, false, false},
		{"7.2", of72, manySpecs, compiler.KprobeSession, compiler.KprobeSession, preempts, true, false},
	} {
		t.Run(fmt.Sprintf("%s/%s/%v", tc.kernel, tc.specs, tc.hides), func(t *testing.T) {
			target := compilertest.NewTarget(t, tc.features)
			if tc.hides {
				zeros := regexp.MustCompile("(?m)^[0-9a-f]+").ReplaceAllString(compilertest.Symbols, "0000000000000000")
				var err error
				target.Symbols, err = kallsyms.Read(strings.NewReader(zeros), nil)
				require.NoError(t, err)
			}
			var traces []*spec.Trace
			for _, text := range strings.Fields(strings.ReplaceAll(tc.specs, ", ", ",")) {
				trace, err := spec.Parse(text)
				require.NoError(t, err)
				traces = append(traces, trace)
			}
			plan, err := All(traces, target, Wishes{})
			require.NoError(t, err)
			for _, p := range plan.Probes {
				if p.Func.Name != "read" {
					continue
				}
				require.Equal(t, []any{tc.entry, tc.ret, tc.reason, tc.joined}, []any{p.Attach.Entry, p.Attach.Return, p.Attach.Reason, p.Attach.Joined})
				require.Equal(t, tc.hides, p.Func.Addr == 0)
			}
		})
	}
}

func preemptible(f compiler.Features) compiler.Features {
	f.Preemptible = true
	return f
}

// TestAddresses verifies that a name that is not unique has no single address.
func TestAddresses(t *testing.T) {
	f := compilertest.WithMulti
	f.ConsistentBTF = true
	target := compilertest.NewTarget(t, f)
	for text, want := range map[string]struct {
		addr  uint64
		addrs int
	}{"send": {0xffffffff81000000, 0}, "pair": {0, 2}, "cloned.isra.0": {0xffffffff81000f00, 0}} {
		trace, err := spec.Parse(text)
		require.NoError(t, err)
		fn, err := FindFunction(trace, target)
		require.NoError(t, err)
		require.Equal(t, want.addr, fn.Addr, text)
		require.Len(t, fn.Addrs, want.addrs, text)
	}
}

// TestForeignKind verifies that only what can be asked for is an attach kind to ask for.
func TestForeignKind(t *testing.T) {
	for _, kind := range []compiler.Kind{compiler.Breakpoint, compiler.RawTP, compiler.Iter, compiler.Fexit, "bogus"} {
		plan, err := All(nil, &compiler.Target{}, Wishes{Attach: kind})
		require.EqualError(t, err, "attach kind "+string(kind)+" cannot be asked for: only [fentry kprobe kprobe.multi kprobe.session] can")
		require.Nil(t, plan)
	}
}

// TestEndless checks that no trampoline and no tracepoint is where the kernel may come to at the
// end of a program: neither by default, nor if the kind is chosen, nor as a part of a glob.
func TestEndless(t *testing.T) {
	void := &btf.Void{}
	point := func(name string) btf.Type {
		return &btf.Typedef{Name: "btf_trace_" + name, Type: &btf.Pointer{Target: &btf.FuncProto{Return: void, Params: []btf.FuncParam{
			{Type: &btf.Pointer{Target: void}}, {Type: compilertest.Int},
		}}}}
	}
	target := compilertest.NewTarget(t, of612, point("sched_set_need_resched_tp"), point("sched_set_other"),
		compilertest.Function("rcu_read_unlock_special", void, compilertest.Param("n", compilertest.Int)))
	symbols, err := kallsyms.Read(strings.NewReader(compilertest.Symbols+"ffffffff8100ff00 T rcu_read_unlock_special\n"+
		"ffffffff8100ff10 t __bpf_trace_sched_set_need_resched_tp\nffffffff8100ff20 t __bpf_trace_sched_set_other\n"), nil)
	require.NoError(t, err)
	target.Symbols = symbols

	require.Equal(t, compiler.KprobeMulti, mustResolve(t, target, "rcu_read_unlock_special()").Attach.Entry)
	_, err = All(compilertest.ParseAll(t, "rcu_read_unlock_special()"), target, Wishes{Attach: compiler.Fentry})
	require.EqualError(t, err, "attach fentry to rcu_read_unlock_special: "+endlessReason)
	_, err = All(compilertest.ParseAll(t, "tp:sched_set_need_resched_tp()"), target, Wishes{})
	require.EqualError(t, err, "attach tp_btf to sched_set_need_resched_tp: "+endlessReason)
	plan, err := All(compilertest.ParseAll(t, "tp:sched_set_*()"), target, Wishes{})
	require.NoError(t, err)
	require.Len(t, plan.Probes, 1)
	require.Equal(t, "sched_set_other", plan.Probes[0].Func.Name)
	require.Equal(t, map[string]int{"attach tp_btf to it: " + endlessReason: 1}, plan.LeftOut)
}
