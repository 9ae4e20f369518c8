package compiler

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// What a spec that does not fit the kernel is told.
func TestRefusals(t *testing.T) {
	for _, tc := range []struct{ spec, at, want, hint string }{
		{"reed", "reed", "there is no function reed in this kernel", "did you mean 'read'?"},
		{"assembly", "assembly", "assembly has no type in BTF, so its arguments are not known (it is not written in C, or BTF left it out)", ""},
		{"jiffies", "jiffies", "jiffies is data, not a function", "its content is '@jiffies' in the list of a function"},
		{"gone", "gone", "gone has a type but no code in this kernel: it was inlined everywhere, or is start-up code that was freed", ""},
		{"cloned", "cloned", "this kernel has cloned only as cloned.isra.0, with arguments that may differ from its type", "to trace it all the same, name it so: cloned.isra.0"},
		{"twin(a)", "twin", "there are 2 functions called twin in this kernel (0xffffffff81000d00, 0xffffffff81000e00), and BTF describes only one of them, not saying which", ""},
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
		{"times(lhs->tv_sec)", "tv_sec", "'lhs' is not a pointer to a struct or union, so '->tv_sec' has no meaning", "it is the struct itself: write 'lhs.tv_sec'"},
		{"free(return)", "return", "free returns void", ""},
		{"free(return == 0)", "return", "free returns void", ""},
		{"do_exit(return)", "return", "do_exit returns void", ""},
		{"times(lhs == 0)", "lhs", "'lhs' is struct timespec64, which has no order and cannot be compared", ""},
		{"read(buf->dev->name == 0)", "0", "'buf->dev->name' is a string, and 0 is none", `strings stand in quotes: buf->dev->name == "0"`},
		{"read(buf->dev->name < \"x\")", "<", "strings have no order: 'buf->dev->name' is compared by ==, != or ~", ""},
		{"read(buf->dev->name == \"12345678901234567\")", "\"12345678901234567\"", "\"12345678901234567\" does not fit 'buf->dev->name', which holds 16 characters", ""},
		{"read(count ~ \"x*\")", "~", "'count' is size_t (long unsigned int), no string, so '~' has no meaning", ""},
		{"read(buf.len)", "len", "'buf' is not a struct or union, so '.len' has no meaning", "it is a pointer: write 'buf->len'"},
		{"read(buf->dev->name[16])", "[16]", "'buf->dev->name' has 16 elements, from [0] to [15]", ""},
		{"read(count[1])", "[1]", "'count' is size_t (long unsigned int), no array and no pointer, so '[1]' has no meaning", ""},
		{"read(*count)", "*", "'count' is size_t (long unsigned int), no pointer, so '*' has no meaning", ""},
		{"free(*data)", "*", "'data' points to something of unknown size", "say what it is with a cast: *(u64 *)data"},
		{"read((struct bufs *)count)", "struct bufs *", "there is no type 'struct bufs' in this kernel", "did you mean 'struct buf'?"},
		{"read((buf *)count)", "buf *", "there is no type 'buf' in this kernel", "did you mean 'struct buf'?"},
		{"open((struct buf *)dfd)", "(struct buf *)", "'dfd' is int, which has not the size of a pointer", ""},
		{"times((int)lhs)", "(int)", "'lhs' is struct timespec64, which is no number", ""},
		{"read(@jifies)", "@jifies", "there is no variable 'jifies' in this kernel", "did you mean '@jiffies'?"},
		{"read($arg5)", "$arg5", "read has no $arg5: it takes 4", "arguments count from $arg1"},
		{"free($retval)", "$retval", "free returns void", ""},
		{"read(count:ip4)", "ip4", "'count' is size_t (long unsigned int): ':ip4' shows addresses of 4 bytes, or what a pointer points to", ""},
		{"open(dfd:string)", "string", "'dfd' is int: ':string' shows strings, behind a pointer or in an array of bytes", ""},
		{"read(buf->stamp:x)", "x", "'buf->stamp' is struct timespec64: ':x' shows numbers", ""},
		{"open(dfd:symbol)", "symbol", "'dfd' is int: ':symbol' shows addresses, of 8 bytes", ""},
		{"work(why:c, now:be)", "be", "'now' is _Bool: ':be' shows numbers of 2, 4 or 8 bytes", ""},
		{"read(count == NULL)", "NULL", "'count' is size_t (long unsigned int), and NULL is for pointers", "write 0"},
		{"work(mode == RESUM)", "RESUM", "there is no constant 'RESUM': no enumerator and no error has this name", "did you mean 'RESUME'?"},
		{"read(return == -EAGIN)", "-EAGIN", "there is no constant 'EAGIN': no enumerator and no error has this name", "did you mean '-EAGAIN'?"},
		{"read(count == PAGE_SIZE)", "PAGE_SIZE", "there is no constant 'PAGE_SIZE': no enumerator and no error has this name", "macros of C are not in BTF: write the number"},
		{"read(count & O_DIRCT)", "O_DIRCT", "there is no constant 'O_DIRCT': no enumerator and no error has this name", "did you mean 'O_DIRECT'?"},
		{"read(count & O_RDONLY)", "O_RDONLY", "'count & O_RDONLY' can never hold: no bit is set in 0", ""},
		{"read(return == -O_DIRECT)", "-O_DIRECT", "there is no constant 'O_DIRECT': no enumerator and no error has this name", "macros of C are not in BTF: write the number"},
		{"read(return is-err)", "is-err", "'return' is long int, and 'is-err' is about pointers", "write return < 0"},
		{"open(dfd is-err)", "is-err", "'dfd' is int, and 'is-err' is about pointers", "write dfd < 0"},
		{"read(buf->stamp is-err)", "is-err", "'buf->stamp' is struct timespec64, and 'is-err' is about pointers", ""},
		{"read(buf->len is-err)", "is-err", "'buf->len' is unsigned int, and 'is-err' is about pointers", ""},
		{"read(count == -EAGAIN)", "-EAGAIN", "-EAGAIN does not fit 'count', which is size_t (long unsigned int) and holds 0 to 18446744073709551615", ""},
		{"read(count == 5ms)", "5ms", "'count' is size_t (long unsigned int), no duration", "durations are compared with $duration"},
		{"read(count & 0)", "0", "'count & 0' can never hold: no bit is set in 0", ""},
		{"read(buf->type & 8)", "8", "8 does not fit 'buf->type', which is unsigned char and has 3 bits", ""},
		{"read if buf->stamp", "buf->stamp", "'buf->stamp' is struct timespec64, which is neither true nor false", "compare it with a constant"},
		{"read if !(count >= 0)", "0", "'count >= 0' always holds: 'count' is size_t (long unsigned int) and holds 0 to 18446744073709551615", ""},
		{"tp:tik", "tik", "there is no tracepoint tik in this kernel", "did you mean 'tp:tick'?"},
		{"tp:tick(return)", "return", "tick is a tracepoint, which returns nothing", ""},
		{"tp:tick($duration)", "$duration", "tick is a tracepoint, which takes no time", ""},
		{"xyz_*", "xyz_*", "no function of this kernel matches 'xyz_*'", "those of a module take its name: MODULE:xyz_*; tracepoints are tp:xyz_*"},
		{"re*(xyzzy)", "re*", "none of the 1 functions that match 're*' can be traced", "of most: it has no argument 'xyzzy'"},
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
	var args []btf.FuncParam
	for i := range 12 {
		args = append(args, param(fmt.Sprintf("a%d", i), tLong))
	}
	dozen := []btf.Type{function("dozen", tInt, args...), function("void_dozen", fixtureVoid, args...),
		function("either", fixtureVoid, param("u", &btf.Union{Name: "either", Size: 8, Members: []btf.Member{{Name: "a", Type: tLong}}}))}
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
		{"dozen(a0)", withTrampoline, "kprobe", "behind arguments of 12 registers and stack words fexit does not reach the result"},
		{"void_dozen(a11)", withTrampoline, "fentry", "the cheapest kind, and the signature allows it"},
		{"either(u)", withTrampoline, "kprobe", "fentry refuses argument u, which is union either by value"},
	} {
		t.Run(tc.spec, func(t *testing.T) {
			target := newTarget(t, tc.features, append(dozen, function("twice", fixtureVoid, param("a", tInt)))...)
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

// Which kind is taken where there are several, and which may be asked for.
func TestAttachKinds(t *testing.T) {
	lazy := withSession
	lazy.Trampoline, lazy.TrampolineWords, lazy.TrampolineStructs, lazy.Preemptible = true, 12, true, true
	early := lazy // as 6.12
	early.Preemptible, early.ReturnsUnlimited = false, false
	poor := early
	poor.NoKprobe = "kernel.perf_event_paranoid is 3"
	poorer := poor
	poorer.KprobeMulti, poorer.SessionIsReturn = false, 0
	for _, tc := range []struct {
		spec     string
		features Features
		wishes   Wishes
		want     string // kinds, or the error
	}{
		{"read(count)", lazy, Wishes{}, "kprobe.multi"},
		{"read(return)", lazy, Wishes{}, "kretprobe.multi"},
		{"read(count, return)", lazy, Wishes{}, "kprobe.session"},
		{"read(count)", early, Wishes{}, "fentry"},
		{"print(fmt)", early, Wishes{}, "kprobe.multi"},
		{"print(fmt, return)", early, Wishes{}, "kretprobe kprobe"},
		{"print(return)", early, Wishes{}, "kretprobe"},
		{"*(a, return)", early, Wishes{}, "fexit fentry"},
		{"print(fmt, return)", poor, Wishes{}, "kprobe.session"},
		{"print(fmt)", poorer, Wishes{}, "attach kprobe to print: kernel.perf_event_paranoid is 3, and fentry refuses a variable number of arguments"},
		{"read(count, return)", poorer, Wishes{}, "fexit fentry"},
		{"read(count, return)", lazy, Wishes{Attach: Fentry}, "fexit fentry"},
		{"read(buf->len > 5, return)", lazy, Wishes{Attach: Fentry},
			"attach fentry to read: this kernel preempts tasks inside fentry programs, and what is kept from entry to return could be that of another call"},
		{"read(count, return)", lazy, Wishes{Attach: Kprobe}, "kretprobe kprobe"},
		{"read(count, return)", lazy, Wishes{Attach: KprobeMulti}, "kretprobe.multi kprobe.multi"},
		{"read(count)", lazy, Wishes{Attach: Session}, "kprobe.session"},
		{"read(count)", withTrampoline, Wishes{Attach: KprobeMulti}, "attach kprobe.multi to read: this kernel has no kprobe.multi links"},
		{"read(count)", withTrampoline, Wishes{Attach: Session}, "attach kprobe.session to read: this kernel has no kprobe.session links"},
		{"read(count)", poor, Wishes{Attach: Kprobe}, "attach kprobe to read: kernel.perf_event_paranoid is 3"},
		{"tp:tick(cpu)", lazy, Wishes{Attach: Kprobe}, "tp_btf"},
	} {
		t.Run(tc.spec+" "+string(tc.wishes.Attach), func(t *testing.T) {
			trace, err := spec.Parse(tc.spec)
			require.NoError(t, err)
			plan, err := ResolveAll([]*spec.Trace{trace}, newTarget(t, tc.features), tc.wishes)
			if err != nil {
				require.EqualError(t, err, tc.want)
				return
			}
			unit, err := Compile(plan.Probes, Options{Arch: AMD64, RingBytes: 1 << 20, Features: tc.features})
			require.NoError(t, err)
			var kinds []string
			for _, a := range unit.Attachments {
				kinds = append(kinds, string(a.Kind))
			}
			require.Equal(t, tc.want, strings.Join(kinds, " "))
		})
	}
}

// Who may not have trampolines in modules gets another kind there, or the
// reason.
func TestNoModules(t *testing.T) {
	f := withTrampoline
	f.NoModules = "fentry in a module takes more"
	probe := func() *Probe {
		p := mustResolve(t, newTarget(t, withTrampoline), "read(count)")
		require.Equal(t, Fentry, p.Attach.Entry)
		return p
	}
	a, err := chooseAttach(probe(), f, "", crowd{functions: 1})
	require.NoError(t, err)
	require.Equal(t, Fentry, a.Entry) // of the kernel itself
	p := probe()
	p.Func.Module = "dummy"
	a, err = chooseAttach(p, f, "", crowd{functions: 1})
	require.NoError(t, err)
	require.Equal(t, Kprobe, a.Entry)
	require.Equal(t, f.NoModules, a.Reason)
	_, err = chooseAttach(p, f, Fentry, crowd{functions: 1})
	require.EqualError(t, err, "attach fentry to read: fentry in a module takes more")
	p.Func.Tracepoint = true
	_, err = chooseAttach(p, f, "", crowd{functions: 1})
	require.EqualError(t, err, "attach tp_btf to read: fentry in a module takes more")
}

// The kernel follows the returns of a function for a few links alone.
func TestManyReturns(t *testing.T) {
	trace, err := spec.Parse("read(count, return)")
	require.NoError(t, err)
	for n, want := range map[int]Kind{followedReturns: Session, followedReturns + 1: Kprobe} {
		plan, err := ResolveAll(slices.Repeat([]*spec.Trace{trace}, n), newTarget(t, withSession), Wishes{})
		require.NoError(t, err)
		require.Equal(t, want, plan.Probes[0].Attach.Entry)
	}
	_, err = ResolveAll(slices.Repeat([]*spec.Trace{trace}, followedReturns+1), newTarget(t, withSession), Wishes{Attach: Session})
	require.ErrorContains(t, err, "attach kprobe.session to read: the kernel follows the returns of a function for 8 links, and there are 9")
	poor := withSession
	poor.NoKprobe = "kernel.perf_event_paranoid is 3"
	_, err = ResolveAll(slices.Repeat([]*spec.Trace{trace}, followedReturns+1), newTarget(t, poor), Wishes{})
	require.ErrorContains(t, err, "attach kprobe to read: kernel.perf_event_paranoid is 3, and this kernel has no BPF trampolines, "+
		"and the kernel follows the returns of a function for 8 links, and there are 9")
}

// A trampoline has room for so many programs; more are attached in another way.
func TestCrowd(t *testing.T) {
	var traces []*spec.Trace
	for range trampolinePrograms + 1 {
		trace, err := spec.Parse("read(count)")
		require.NoError(t, err)
		traces = append(traces, trace)
	}
	plan, err := ResolveAll(traces, newTarget(t, withTrampoline), Wishes{})
	require.NoError(t, err)
	require.Equal(t, Kprobe, plan.Probes[0].Attach.Entry)
	require.Equal(t, "a trampoline takes 38 programs, and there are 39 for this function", plan.Probes[0].Attach.Reason)
}

// Of prototypes that differ, the one that has the named arguments is taken.
func TestDifferentPrototypes(t *testing.T) {
	target := newTarget(t, withTrampoline, function("twice", fixtureVoid, param("b", tInt)))
	p := mustResolve(t, target, "twice(b)")
	require.Equal(t, "b", p.Func.Params[0].Name)
	require.Equal(t, Kprobe, p.Attach.Entry)
	trace, err := spec.Parse("twice")
	require.NoError(t, err)
	_, err = Resolve(trace, target)
	require.EqualError(t, err, "twice is in BTF with different prototypes, and a name cannot tell them apart: (a: int) and (b: int)\n"+
		"  twice\n  ^^^^^\n  name arguments that only one of them has")
}

// A result in memory takes the first argument register, and is read at return.
func TestResultInMemory(t *testing.T) {
	r := newRig(t, withProbes, Options{}, "large")
	result := make([]byte, 9000)
	insns := map[Kind]int16{Kprobe: AMD64.ArgRegs[1], Kretprobe: AMD64.RetRegs[0]}
	values := map[Kind]uint64{Kprobe: 7, Kretprobe: r.alloc(result)}
	for _, a := range r.unit.Attachments {
		regs := make([]byte, registersSize)
		copy(regs[insns[a.Kind]:], le(values[a.Kind]))
		require.NoError(t, r.run(r.unit.Collection.Programs[a.Program].Instructions, r.alloc(regs)))
	}
	require.ElementsMatch(t, []string{"entry x=7", "return return=4096 bytes of 9000"}, r.shown())
}

// BTF has the arguments that the verifier adds to a call under another name,
// unless there is a function of that name.
func TestImplicitArguments(t *testing.T) {
	target := newTarget(t, withTrampoline,
		function("nothing_impl", fixtureVoid, param("aux", ptr(tDev))),
		function("free_impl", fixtureVoid, param("b", ptr(tBuf)), param("data", ptr(fixtureVoid)), param("aux", ptr(tDev))))
	require.Len(t, mustResolve(t, target, "nothing").Func.Params, 1)
	require.Len(t, mustResolve(t, target, "free").Func.Params, 2, "its arguments are others")
	symbols, err := kallsyms.Read(strings.NewReader(fixtureSymbols+"ffffffff81002000 T nothing_impl\n"), nil)
	require.NoError(t, err)
	target.Symbols = symbols
	require.Empty(t, mustResolve(t, target, "nothing").Func.Params)
	keep := Symbols([]*spec.Trace{mustResolve(t, target, "nothing").Trace}).Keep
	require.True(t, keep("nothing_impl"))
}
