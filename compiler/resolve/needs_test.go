package resolve

import (
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
)

// TestFewNeeds verifies what specs need, and for which of them that cannot be told.
func TestFewNeeds(t *testing.T) {
	stacks := []string{"thread_union", "task_struct"}
	for text, want := range map[string]*Needs{
		"vfs_read": {Types: functionTypes("vfs_read"), Functions: []string{"vfs_read"}, Variants: []string{"vfs_read_impl"}},
		"f(a->b.c[1] > 3, (struct d *)e, *a, return == -EPERM) if a->g != NULL && !$pid": {
			Types: functionTypes("f", "d"), Members: []string{"c", "b", "g"}, Functions: []string{"f"}, Variants: []string{"f_impl"},
		},
		"tp:switch(prev)": {Types: []string{"btf_trace_switch", "__traceiter_switch", "__bpf_trace_switch", "trace_event_raw_event_switch", "perf_trace_switch", "__x64_sys_switch", "__arm64_sys_switch"}},
		"sys_exit_read": {
			Types: functionTypes("sys_exit_read", "btf_trace_sys_enter", "__traceiter_sys_enter", "__bpf_trace_sys_enter", "trace_event_raw_event_sys_enter", "perf_trace_sys_enter",
				"btf_trace_sys_exit", "__traceiter_sys_exit", "__bpf_trace_sys_exit", "trace_event_raw_event_sys_exit", "perf_trace_sys_exit"),
			Functions: []string{"sys_exit_read"}, Variants: []string{"sys_exit_read_impl"},
		},
		"iter:task(task->pid)": {Types: []string{"bpf_iter_task"}, Members: []string{"pid"}},
		"vfs_*(a->b) if c.d":   {Members: []string{"b", "d"}},
		"dummy:vfs_*":          nil, // any function of the module
		"iter:t*":              nil,
		"f.isra.0":             nil, // any suffix
		"dummy:f":              nil,
		"f(a == SOME_ENUMERATOR, (b + OTHER) & FLAG, (enum WITHOUT_A_NAME)c) if a == 1 || b == PERHAPS": {
			Types: functionTypes("f", "WITHOUT_A_NAME"), Enumerators: []string{"FLAG", "OTHER", "PERHAPS", "SOME_ENUMERATOR", "WITHOUT_A_NAME", "b"},
			Functions: []string{"f"}, Variants: []string{"f_impl"},
		},
		"p:x f a=$arg1 b=c->d e=+8(%di):string if a == 3 && common_pid > 1": {
			Types: functionTypes("f", "kretprobe_find_ret_addr", "rethook_find_ret_addr"), Members: []string{"d"}, Functions: []string{"f"}, Variants: []string{"f_impl"},
		},
		"f(@jiffies, ((struct rq)@runqueues).cpu)": {
			Types: functionTypes("f", "jiffies", "rq", "runqueues"), Members: []string{"cpu"}, Functions: []string{"f"}, Variants: []string{"f_impl"},
			Variables: []string{"__per_cpu_end", "__per_cpu_offset", "__per_cpu_start", "jiffies", "runqueues"},
		},
		"p f+3":                                 nil, // the end of the function
		"p 0xffffffff81000000":                  nil,
		"p f a=$arg1:%pd":                       nil, // structures of the kernel
		`p f a=$arg1:symstr if a == "vfs_read"`: nil, // all symbols
		"p f a=$arg1 if a.function == vfs_read": nil,
		"___f":                                  nil,
	} {
		trace, err := kprobe.ParseAny(text)
		require.NoError(t, err, text)
		got, ok := FewNeeds([]*spec.Trace{trace})
		require.Equal(t, want != nil, ok, text)
		if want != nil {
			if spec.IsGlob(trace.Func.Name) {
				want.Globs = []*spec.Trace{trace}
			}
			want.Types = append(stacks[:2:2], want.Types...)
			slices.Sort(want.Types)
			slices.Sort(want.Members)
			require.Equal(t, *want, got, text)
		}
	}
}

// TestExpand verifies that a glob is replaced by the types of what it matches.
func TestExpand(t *testing.T) {
	kernel := map[string][]string{
		FuncKind:    {"vfs_read", "vfs_write_impl", "vfs_write", "vfs_read", "ksys_read"},
		TypedefKind: {"btf_trace_sched_switch", "btf_trace_console", "sched_t"},
	}
	var asked []string
	names := func(kind, prefix string) iter.Seq[string] {
		asked = append(asked, kind+" "+prefix)
		return func(yield func(string) bool) {
			for _, name := range kernel[kind] {
				if strings.HasPrefix(name, prefix) && !yield(name) {
					return
				}
			}
		}
	}
	needs, ok := FewNeeds(compilertest.ParseAll(t, "vfs_*e*", "tp:*_sw*", "ksys_read"))
	require.True(t, ok)
	require.True(t, needs.Expand(names))
	require.Equal(t, []string{FuncKind + " vfs_", TypedefKind + " btf_trace_"}, asked)
	require.Equal(t, []string{
		"__arm64_sys_ksys_read", "__bpf_trace_sched_switch", "__traceiter_sched_switch", "__x64_sys_ksys_read", "btf_trace_ksys_read", "btf_trace_sched_switch",
		"ksys_read", "ksys_read_impl",
		"perf_trace_sched_switch", "task_struct", "thread_union", "trace_event_raw_event_sched_switch",
		"vfs_read", "vfs_read_impl", "vfs_write", "vfs_write_impl", "vfs_write_impl_impl",
	}, needs.Types)
	require.Equal(t, []string{"ksys_read"}, needs.Functions)

	kernel[FuncKind] = slices.Repeat([]string{"vfs_read"}, fewMatches+1)
	require.False(t, needs.Expand(names))
}

// functionTypes returns the names in BTF that are looked up for a function, and others.
func functionTypes(name string, others ...string) []string {
	return append(others, name, name+"_impl", "btf_trace_"+name, "__x64_sys_"+strings.TrimPrefix(name, "sys_"), "__arm64_sys_"+strings.TrimPrefix(name, "sys_"))
}

// TestPartialGlob verifies that functions are left out for what a part of the types
// shows only if all of them show it.
func TestPartialGlob(t *testing.T) {
	target := compilertest.NewTarget(t, compilertest.WithProbes)
	target.Partial = true
	plan, err := All(compilertest.ParseAll(t, "*(count)"), target, Wishes{})
	require.NoError(t, err)
	require.Contains(t, plan.LeftOut, "it has no argument 'count'")
	require.Greater(t, len(plan.LeftOut), 1, "functions that cannot be traced")
	target.Partial = false
	same, err := All(compilertest.ParseAll(t, "*(count)"), target, Wishes{})
	require.NoError(t, err)
	require.Equal(t, plan.LeftOut, same.LeftOut)
	for text, reason := range map[string]string{
		"*(buf->nothing)": "can be traced", "*((struct nothing *)buf)": "there is no type 'struct nothing'",
	} {
		target.Partial = true
		traces := compilertest.ParseAll(t, text)
		_, err = All(traces, target, Wishes{})
		require.ErrorContains(t, err, reason)
		target.Partial = false
		_, err = All(traces, target, Wishes{})
		require.ErrorContains(t, err, "can be traced")
	}
}

// TestManyNeeds verifies that too many specs need all of BTF.
func TestManyNeeds(t *testing.T) {
	_, ok := FewNeeds(slices.Repeat(compilertest.ParseAll(t, "f"), fewTraces))
	require.True(t, ok)
	_, ok = FewNeeds(slices.Repeat(compilertest.ParseAll(t, "f"), fewTraces+1))
	require.False(t, ok)
}

// TestFewNeedsOnce verifies that what several specs need is listed once: a function
// listed twice would count as two of one name.
func TestFewNeedsOnce(t *testing.T) {
	got, ok := FewNeeds(compilertest.ParseAll(t, "f(a->b)", "f(a->b, return)", "f"))
	require.True(t, ok)
	require.Equal(t, Needs{
		Types: slices.Sorted(slices.Values(functionTypes("f", "task_struct", "thread_union"))), Members: []string{"b"}, Functions: []string{"f"}, Variants: []string{"f_impl"},
	}, got)
}

// TestSymbols verifies that the prefixes of the symbols that specs need have an order, as
// they become a program.
func TestSymbols(t *testing.T) {
	want := Symbols(compilertest.ParseAll(t, "vfs_read(@jiffies, @tainted)", "tp:tick => ksys_*e on $tid", "p:x vfs_write"))
	require.Equal(t, []string{
		"__bpf_trace_tick", "__per_cpu_end", "__per_cpu_offset", "__per_cpu_start", "jiffies", "tainted", "vfs_read", "vfs_read_impl", "vfs_write", "vfs_write_impl", "ksys_",
	}, want.Prefixes)
}

// TestNoSymbols verifies that what needs addresses is refused with the cure where there
// are only types.
func TestNoSymbols(t *testing.T) {
	target := compilertest.NewTarget(t, compilertest.WithProbes)
	target.Symbols = nil
	for text, want := range map[string]string{
		"read(count) if @devices":                   "the address of 'devices' is not known, as there is no symbol table",
		"p 0xffffffff81000000":                      "the function at 0xffffffff81000000 is not known: there is no symbol table",
		"p read a=$arg1:u64 if a.function == write": "what 'a' is in is not known, as there is no symbol table",
		`p read a=$arg1:symstr if a == "write"`:     "what 'a' is in is not known, as there is no symbol table",
	} {
		trace, err := kprobe.ParseAny(text)
		require.NoError(t, err, text)
		_, err = All([]*spec.Trace{trace}, target, Wishes{})
		var refused *spec.Error
		require.ErrorAs(t, err, &refused, text)
		require.Equal(t, want, refused.Msg)
		require.Equal(t, spec.NoSymbols, refused.Kind)
		require.Equal(t, "--btf has only types: without it, the symbols of the running kernel are used", refused.Hint)
	}
}
