package codegen

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// How a probe is attached, and how many programs it needs.
func TestDecisions(t *testing.T) {
	old := compiler.Features{Trampoline: true, TrampolineWords: 6}
	preemptible := compilertest.WithTrampoline
	preemptible.Preemptible = true
	var args []btf.FuncParam
	for i := range 12 {
		args = append(args, compilertest.Param(fmt.Sprintf("a%d", i), compilertest.Long))
	}
	quad := &btf.Int{Name: "__int128", Size: 16, Encoding: btf.Signed}
	dozen := []btf.Type{compilertest.Function("dozen", compilertest.Int, args...), compilertest.Function("void_dozen", compilertest.Void, args...),
		compilertest.Function("product", quad, compilertest.Param("a", compilertest.Ulong)), compilertest.Function("either", compilertest.Void, compilertest.Param("u", &btf.Union{Name: "either", Size: 8, Members: []btf.Member{{Name: "a", Type: compilertest.Long}}}))}
	for _, tc := range []struct {
		spec     string
		features compiler.Features
		want     string
		reason   string
	}{
		{"read", compilertest.WithTrampoline, "fexit, fentry", "the cheapest kind, and the signature allows it"},
		{"read(count)", compilertest.WithTrampoline, "fentry", "the cheapest kind, and the signature allows it"},
		{"read(return)", compilertest.WithTrampoline, "fexit", "the cheapest kind, and the signature allows it"},
		{"read(count, return)", compilertest.WithTrampoline, "fexit, fentry", "the cheapest kind, and the signature allows it"},
		{"read(count == 5, return)", compilertest.WithTrampoline, "fexit", "the cheapest kind, and the signature allows it"},
		{"read(buf, count == 5, return)", compilertest.WithTrampoline, "fexit with stash, fentry", "the cheapest kind, and the signature allows it"},
		{"read(buf->len > 5, return)", compilertest.WithTrampoline, "fexit with stash, fentry", "the cheapest kind, and the signature allows it"},
		{"read(count == 5, return)", compilertest.WithProbes, "kretprobe with stash, kprobe", "this kernel has no BPF trampolines"},
		{"read(count == 5, return)", preemptible, "kretprobe with stash, kprobe", "this kernel preempts tasks inside fentry programs, and hits would be lost"},
		{"free", compilertest.WithTrampoline, "fentry", "the cheapest kind, and the signature allows it"},
		{"nothing", compilertest.WithTrampoline, "fentry", "the cheapest kind, and the signature allows it"},
		{"print", compilertest.WithTrampoline, "kretprobe, kprobe", "fentry refuses a variable number of arguments"},
		{"times(lhs)", compilertest.WithTrampoline, "kprobe", "fentry refuses functions that return struct timespec64"},
		{"product(a)", compilertest.WithTrampoline, "kprobe", "fentry passes on only 8 bytes of the result, which has 16"},
		{"product(return)", compilertest.WithTrampoline, "kretprobe", "fentry passes on only 8 bytes of the result, which has 16"},
		{"spill(n)", compilertest.WithTrampoline, "fentry", "the cheapest kind, and the signature allows it"},
		{"spill(n)", old, "kprobe", "this kernel's fentry refuses argument t, which is struct timespec64 by value"},
		{"bybig(n)", compilertest.WithTrampoline, "kprobe", "fentry refuses argument big, which is struct big of 9000 bytes by value"},
		{"many(a)", old, "kprobe", "its arguments take 8 registers and stack words, and this kernel's fentry takes 6"},
		{"twice(a)", compilertest.WithTrampoline, "kprobe", "its name is in BTF 2 times"},
		{"dozen(a0)", compilertest.WithTrampoline, "kprobe", "behind arguments of 12 registers and stack words fexit does not reach the result"},
		{"void_dozen(a11)", compilertest.WithTrampoline, "fentry", "the cheapest kind, and the signature allows it"},
		{"either(u)", compilertest.WithTrampoline, "kprobe", "fentry refuses argument u, which is union either by value"},
	} {
		t.Run(tc.spec, func(t *testing.T) {
			target := compilertest.NewTarget(t, tc.features, append(dozen, compilertest.Function("twice", compilertest.Void, compilertest.Param("a", compilertest.Int)))...)
			p := mustResolve(t, target, tc.spec)
			unit, err := generate([]*compiler.Probe{p}, compiler.Options{RingBytes: 1 << 20})
			require.NoError(t, err)
			var kinds []string
			for _, a := range unit.Attachments {
				kind := string(a.Kind)
				if p.Stash && len(kinds) == 0 {
					kind += " with stash"
				}
				kinds = append(kinds, kind)
			}
			require.Equal(t, tc.want, strings.Join(kinds, ", "))
			require.Equal(t, tc.reason, p.Attach.Reason)
		})
	}
}

// Which kind is chosen where there are several, and which may be asked for.
func TestAttachKinds(t *testing.T) {
	lazy := compilertest.WithKprobeSession
	lazy.Trampoline, lazy.TrampolineWords, lazy.TrampolineStructs, lazy.Preemptible = true, 12, true, true
	early := lazy // like 6.12
	early.Preemptible, early.ReturnsUnlimited = false, false
	poor := early
	poor.NoKprobe = "kernel.perf_event_paranoid is 3"
	poorer := poor
	poorer.KprobeMulti, poorer.SessionIsReturn = false, 0
	for _, tc := range []struct {
		spec     string
		features compiler.Features
		wishes   resolve.Wishes
		want     string // kinds, or the error
	}{
		{"read(count)", lazy, resolve.Wishes{}, "kprobe.multi"},
		{"read(return)", lazy, resolve.Wishes{}, "kretprobe.multi"},
		{"read(count, return)", lazy, resolve.Wishes{}, "kprobe.session"},
		{"read(count)", early, resolve.Wishes{}, "fentry"},
		{"print(fmt)", early, resolve.Wishes{}, "kprobe.multi"},
		{"print(fmt, return)", early, resolve.Wishes{}, "kretprobe kprobe"},
		{"print(return)", early, resolve.Wishes{}, "kretprobe"},
		{"*(a, return)", early, resolve.Wishes{}, "fexit fentry"},
		{"print(fmt, return)", poor, resolve.Wishes{}, "kprobe.session"},
		{"print(fmt)", poorer, resolve.Wishes{}, "attach kprobe to print: kernel.perf_event_paranoid is 3, and fentry refuses a variable number of arguments"},
		{"read(count, return)", poorer, resolve.Wishes{}, "fexit fentry"},
		{"read(count, return)", lazy, resolve.Wishes{Attach: compiler.Fentry}, "fexit fentry"},
		{"read(buf->len > 5, return)", lazy, resolve.Wishes{Attach: compiler.Fentry},
			"attach fentry to read: this kernel preempts tasks inside fentry programs, and what is kept from entry to return could be that of another call"},
		{"read(count, return)", lazy, resolve.Wishes{Attach: compiler.Kprobe}, "kretprobe kprobe"},
		{"read(count, return)", lazy, resolve.Wishes{Attach: compiler.KprobeMulti}, "kretprobe.multi kprobe.multi"},
		{"read(count)", lazy, resolve.Wishes{Attach: compiler.KprobeSession}, "kprobe.session"},
		{"read(count)", compilertest.WithTrampoline, resolve.Wishes{Attach: compiler.KprobeMulti}, "attach kprobe.multi to read: this kernel has no kprobe.multi links"},
		{"read(count)", compilertest.WithTrampoline, resolve.Wishes{Attach: compiler.KprobeSession}, "attach kprobe.session to read: this kernel has no kprobe.session links"},
		{"read(count)", poor, resolve.Wishes{Attach: compiler.Kprobe}, "attach kprobe to read: kernel.perf_event_paranoid is 3"},
		{"tp:tick(cpu)", lazy, resolve.Wishes{Attach: compiler.Kprobe}, "tp_btf"},
	} {
		t.Run(tc.spec+" "+string(tc.wishes.Attach), func(t *testing.T) {
			trace, err := spec.Parse(tc.spec)
			require.NoError(t, err)
			plan, err := resolve.All([]*spec.Trace{trace}, compilertest.NewTarget(t, tc.features), tc.wishes)
			if err != nil {
				require.EqualError(t, err, tc.want)
				return
			}
			unit, err := generate(plan.Probes, compiler.Options{RingBytes: 1 << 20})
			require.NoError(t, err)
			var kinds []string
			for _, a := range unit.Attachments {
				kinds = append(kinds, string(a.Kind))
			}
			require.Equal(t, tc.want, strings.Join(kinds, " "))
		})
	}
}

// A result in memory takes the first argument register, and is read at return.
func TestResultInMemory(t *testing.T) {
	r := newRig(t, compilertest.WithProbes, compiler.Options{}, "large")
	result := make([]byte, 9000)
	insns := map[compiler.Kind]int16{compiler.Kprobe: compiler.AMD64.ArgRegs[1], compiler.Kretprobe: compiler.AMD64.RetRegs[0]}
	values := map[compiler.Kind]uint64{compiler.Kprobe: 7, compiler.Kretprobe: r.alloc(result)}
	for _, a := range r.unit.Attachments {
		regs := make([]byte, registersSize)
		copy(regs[insns[a.Kind]:], le(values[a.Kind]))
		require.NoError(t, r.run(r.unit.Collection.Programs[a.Program].Instructions, r.alloc(regs)))
	}
	require.ElementsMatch(t, []string{"entry x=7", "return return=4096 bytes of 9000"}, r.shown())
}
