package compiler

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// What a spec that does not fit the kernel is told.
func TestRefusals(t *testing.T) {
	for _, tc := range []struct{ spec, at, want, hint string }{
		{"reed", "reed", "there is no function reed in this kernel", "did you mean 'read'?"},
		{"assembly", "assembly", "assembly has no type in BTF, so its arguments are not known (it is not written in C, or BTF left it out)", ""},
		{"jiffies", "jiffies", "jiffies is data, not a function", ""},
		{"gone", "gone", "gone has a type but no code in this kernel: it was inlined everywhere, or is start-up code that was freed", ""},
		{"cloned", "cloned", "this kernel has cloned only as cloned.isra.0, with arguments that may differ from its type", ""},
		{"cloned.isra.0", "cloned.isra.0", "cloned.isra.0 is a copy that the compiler made of cloned, and may have fewer arguments than its type says", ""},
		{"twin(a)", "twin", "there are 2 functions called twin in this kernel (0xffffffff81000d00, 0xffffffff81000e00), and a name cannot tell them apart", ""},
		{"dummy_xmit", "dummy_xmit", "dummy_xmit is in module dummy, which has no BTF, so its arguments are not known",
			"the kernel must be built with CONFIG_DEBUG_INFO_BTF_MODULES (5.11 and later)"},
		{"read(cuont)", "cuont", "read has no argument 'cuont'", "did you mean 'count'?"},
		{"read(xyzzy)", "xyzzy", "read has no argument 'xyzzy'", "it has buf, ubuf, count, pos"},
		{"nothing(x)", "x", "nothing has no argument 'x'", "it takes no arguments"},
		{"read(buf->lne)", "lne", "struct buf has no member 'lne'", "did you mean 'len'?"},
		{"read(buf->dev->indx)", "indx", "struct dev has no member 'indx'", "did you mean 'index'?"},
		{"read(count->x)", "x", "'count' is not a pointer to a struct or union, so '->x' has no meaning", ""},
		{"free(data->x)", "x", "'data' does not point to a struct or union with known members", ""},
		{"callback(fwd->x)", "x", "'fwd' does not point to a struct or union with known members", ""},
		{"times(lhs->tv_sec)", "tv_sec", "'lhs' is not a pointer to a struct or union, so '->tv_sec' has no meaning", ""},
		{"free(return)", "return", "free returns void", ""},
		{"free(return == 0)", "return", "free returns void", ""},
		{"do_exit(return)", "return", "do_exit returns void", ""},
		{"times(lhs == 0)", "lhs", "'lhs' is struct timespec64, which has no order and cannot be compared", ""},
		{"read(buf->dev->name == 0)", "buf->dev->name", "'buf->dev->name' is an array of 16 bytes, which has no order and cannot be compared", ""},
		{"read(count == -1)", "-1", "-1 does not fit 'count', which is size_t (long unsigned int) and holds 0 to 18446744073709551615", ""},
		{"open(dfd == 0xffffff9c)", "0xffffff9c", "0xffffff9c does not fit 'dfd', which is int and holds -2147483648 to 2147483647", "did you mean -100?"},
		{"open(dfd == 0x100000000)", "0x100000000", "0x100000000 does not fit 'dfd', which is int and holds -2147483648 to 2147483647", ""},
		{"read(buf->type == 8)", "8", "8 does not fit 'buf->type', which is unsigned char and holds 0 to 7", ""},
		{"read(buf->delta == 64)", "64", "64 does not fit 'buf->delta', which is int and holds -64 to 63", "did you mean -64?"},
		{"read(buf->ready == 2)", "2", "2 does not fit 'buf->ready', which is _Bool and holds 0 to 1", ""},
		{"read(count < 0)", "0", "'count < 0' can never hold: 'count' is size_t (long unsigned int) and holds 0 to 18446744073709551615", ""},
		{"read(count >= 0)", "0", "'count >= 0' always holds: 'count' is size_t (long unsigned int) and holds 0 to 18446744073709551615", ""},
		{"open(dfd <= 2147483647)", "2147483647", "'dfd <= 2147483647' always holds: 'dfd' is int and holds -2147483648 to 2147483647", ""},
	} {
		t.Run(tc.spec, func(t *testing.T) {
			trace, err := spec.Parse(tc.spec)
			require.NoError(t, err)
			_, err = Resolve(trace, newTarget(t, withTrampoline))
			var e *spec.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, tc.want, e.Msg)
			require.Equal(t, tc.hint, e.Hint)
			require.Equal(t, tc.at, tc.spec[e.At.Start:e.At.End])
		})
	}
}

// How a probe is attached, and which programs it takes.
func TestDecisions(t *testing.T) {
	old := Features{Trampoline: true, TrampolineWords: 6}
	preemptible := withTrampoline
	preemptible.Preemptible = true
	for _, tc := range []struct {
		spec     string
		features Features
		want     string
		reason   string
	}{
		{"read", withTrampoline, "fexit, fentry", "the cheapest kind, and the signature allows it"},
		{"read(count)", withTrampoline, "fentry", "the cheapest kind, and the signature allows it"},
		{"read(return)", withTrampoline, "fexit", "the cheapest kind, and the signature allows it"},
		{"read(count, return)", withTrampoline, "fexit, fentry", "the cheapest kind, and the signature allows it"},
		{"read(count == 5, return)", withTrampoline, "fexit", "the cheapest kind, and the signature allows it"},
		{"read(buf, count == 5, return)", withTrampoline, "fexit with stash, fentry", "the cheapest kind, and the signature allows it"},
		{"read(buf->len > 5, return)", withTrampoline, "fexit with stash, fentry", "the cheapest kind, and the signature allows it"},
		{"read(count == 5, return)", withProbes, "kretprobe with stash, kprobe", "this kernel has no BPF trampolines"},
		{"read(count == 5, return)", preemptible, "kretprobe with stash, kprobe", "this kernel preempts tasks inside fentry programs, and hits would be lost"},
		{"free", withTrampoline, "fentry", "the cheapest kind, and the signature allows it"},
		{"nothing", withTrampoline, "fentry", "the cheapest kind, and the signature allows it"},
		{"print", withTrampoline, "kretprobe, kprobe", "fentry refuses a variable number of arguments"},
		{"times(lhs)", withTrampoline, "kprobe", "fentry refuses functions that return struct timespec64"},
		{"spill(n)", withTrampoline, "fentry", "the cheapest kind, and the signature allows it"},
		{"spill(n)", old, "kprobe", "this kernel's fentry refuses argument t, which is struct timespec64 by value"},
		{"bybig(n)", withTrampoline, "kprobe", "fentry refuses argument big, which is struct big of 9000 bytes by value"},
		{"many(a)", old, "kprobe", "its arguments take 8 registers and stack words, and this kernel's fentry takes 6"},
		{"twice(a)", withTrampoline, "kprobe", "its name is in BTF 2 times"},
	} {
		t.Run(tc.spec, func(t *testing.T) {
			target := newTarget(t, tc.features, function("twice", fixtureVoid, param("a", tInt)))
			p := mustResolve(t, target, tc.spec)
			unit, err := Compile([]*Probe{p}, Options{Arch: AMD64, RingBytes: 1 << 20})
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

// A function whose prototypes differ is not one function.
func TestDifferentPrototypes(t *testing.T) {
	target := newTarget(t, withTrampoline, function("twice", fixtureVoid, param("b", tInt)))
	trace, err := spec.Parse("twice(a)")
	require.NoError(t, err)
	_, err = Resolve(trace, target)
	require.EqualError(t, err, "twice is in BTF with different prototypes, and a name cannot tell them apart: (a: int) and (b: int)\n  twice(a)\n  ^^^^^")
}

// A result in memory takes the first argument register, and is read at return.
func TestResultInMemory(t *testing.T) {
	r := newRig(t, withProbes, Options{}, "large")
	result := make([]byte, 9000)
	insns := map[Kind]int16{Kprobe: AMD64.ArgRegs[1], Kretprobe: AMD64.RetRegs[0]}
	values := map[Kind]uint64{Kprobe: 7, Kretprobe: r.alloc(result)}
	for _, a := range r.unit.Attachments {
		regs := make([]byte, 168)
		copy(regs[insns[a.Kind]:], le(values[a.Kind]))
		require.NoError(t, r.run(r.unit.Collection.Programs[a.Program].Instructions, r.alloc(regs)))
	}
	require.ElementsMatch(t, []string{"entry x=7", "return return=4096 bytes of 9000"}, r.shown())
}
