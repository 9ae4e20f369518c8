package resolve

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// freeing returns the types of the tracepoints at which objects are freed.
func freeing() (types []btf.Type) {
	void, ptr, fn, param := compilertest.Void, compilertest.Ptr, compilertest.Function, compilertest.Param
	params := []btf.FuncParam{param("__data", ptr(void)), param("call_site", compilertest.Ulong), param("ptr", ptr(void))}
	for _, name := range []string{"kfree", "kmem_cache_free"} {
		types = append(types, &btf.Typedef{Name: "btf_trace_" + name, Type: ptr(&btf.FuncProto{Return: void, Params: params})},
			fn("__bpf_trace_"+name, void, params...))
	}
	return types
}

// followSymbols is the symbol table of followTarget.
const followSymbols = compilertest.Symbols + `ffffffff81003000 T ip_rcv
ffffffff81003100 T ip_merge
ffffffff81003200 T kfree_skbmem
ffffffff81003300 T ip_list
`

// followTarget returns a kernel with packets.
func followTarget(t *testing.T, f compiler.Features) *compiler.Target {
	void, ptr, fn, param := compilertest.Void, compilertest.Ptr, compilertest.Function, compilertest.Param
	packet := &btf.Struct{Name: "sk_buff", Size: 8, Members: []btf.Member{{Name: "len", Type: compilertest.Uint}}}
	target := compilertest.NewTarget(t, f, slices.Concat(freeing(), []btf.Type{
		fn("ip_rcv", compilertest.Int, param("skb", ptr(packet))),
		fn("ip_merge", compilertest.Int, param("n", compilertest.Int), param("to", ptr(&btf.Const{Type: packet})), param("from", ptr(packet))),
		fn("kfree_skbmem", void, param("skb", ptr(packet))),
		fn("ip_inlined", void, param("skb", ptr(packet))),
		fn("ip_list", void, param("list", ptr(ptr(packet)))),
	})...)
	symbols, err := kallsyms.Read(strings.NewReader(followSymbols), nil)
	require.NoError(t, err)
	target.Symbols = symbols
	return target
}

// followedBy returns the probes of a plan, each with its role, function, argument and
// attach kind.
func followedBy(plan *compiler.Plan) (all []string) {
	roles := map[compiler.Role]string{compiler.Starts: "starts", compiler.Meets: "meets", compiler.Ends: "ends", compiler.Frees: "frees"}
	for _, p := range plan.Probes {
		line := fmt.Sprintf("%s %s", roles[p.Follow.Role], p.Func.Name)
		if o := p.Follow.Object; o.Base.Param != nil {
			line += " " + o.Base.Param.Name
		}
		all = append(all, line+" "+string(p.Attach.Entry))
	}
	return all
}

// TestFollowByIndex verifies that the functions found by an index of the types are those
// found by decoding all of them, with the names that btf.Spec does not find.
func TestFollowByIndex(t *testing.T) {
	packet := &btf.Struct{Name: "sk_buff", Size: 8, Members: []btf.Member{{Name: "len", Type: compilertest.Uint}}}
	skb := compilertest.Param("skb", compilertest.Ptr(packet))
	types := append(freeing(), compilertest.Function("ip_rcv", compilertest.Void, skb),
		compilertest.Function("___trim", compilertest.Void, skb, compilertest.Param("n", compilertest.Int)),
		compilertest.Function("___other", compilertest.Void, compilertest.Param("n", compilertest.Int)))
	target := compilertest.NewTarget(t, compilertest.WithMulti, types...)
	symbols, err := kallsyms.Read(strings.NewReader("ffffffff81003000 T ip_rcv\nffffffff81003100 T ___trim\n"), nil)
	require.NoError(t, err)
	target.Symbols = symbols
	trace, err := spec.Parse("ip_rcv(skb)")
	require.NoError(t, err)
	decoded, err := Follow(trace, Following{}, target)
	require.NoError(t, err)
	require.Contains(t, followedBy(decoded), "meets ___trim skb kprobe.multi")

	asked := map[string]int{}
	ids := func(wanted func(*btf.Func) bool) (ids []btf.TypeID, known bool) {
		for typ, err := range target.Kernel.All() {
			require.NoError(t, err)
			if fn, ok := typ.(*btf.Func); ok && wanted(fn) {
				id, err := target.Kernel.TypeID(fn)
				require.NoError(t, err)
				ids = append(ids, id)
			}
		}
		return ids, true
	}
	target.FuncsTaking = func(structure string) ([]btf.TypeID, bool) {
		asked[structure]++
		return ids(func(fn *btf.Func) bool { return fn.Name == "ip_rcv" || fn.Name == "___trim" })
	}
	target.FuncsNamed = func(name string) ([]btf.TypeID, bool) {
		asked[name]++
		return ids(func(fn *btf.Func) bool { return fn.Name == name })
	}
	indexed, err := Follow(trace, Following{}, target)
	require.NoError(t, err)
	require.Equal(t, followedBy(decoded), followedBy(indexed))
	require.Equal(t, 1, asked["sk_buff"])
	require.NotZero(t, asked["___trim"])
}

// withFewSymbols returns a target that has only the symbols that f needs.
func withFewSymbols(t *testing.T, trace *spec.Trace, f Following, target *compiler.Target) *compiler.Target {
	few := *target
	few.Symbols = nil
	want := f.Symbols(trace, &few)
	require.NotNil(t, want.Keep, "all symbols are needed")
	require.False(t, want.Keep("nobody_takes_it"))
	var err error
	few.Symbols, err = kallsyms.Read(strings.NewReader(followSymbols), want.Keep)
	require.NoError(t, err)
	require.Empty(t, few.Symbols.Lookup("ip_list"), "a pointer to a pointer is no packet")
	return &few
}

// All symbols are needed if the spec or the values to show name one, or if the spec does not
// fit: the sentence about it may need any.
func TestFollowNeedsAllSymbols(t *testing.T) {
	target := followTarget(t, compilertest.WithMulti)
	target.Symbols = nil
	for _, text := range []string{"ip_rcv(skb) if skb->len > @jiffies", "ip_rcve(skb)", "ip_rcv(skb->nothing)"} {
		trace, err := spec.Parse(text)
		require.NoError(t, err, text)
		require.Nil(t, Following{}.Symbols(trace, target).Keep, text)
	}
	trace, err := spec.Parse("ip_rcv(skb)")
	require.NoError(t, err)
	require.NotNil(t, Following{}.Symbols(trace, target).Keep)
}

func TestFollow(t *testing.T) {
	for _, tc := range []struct {
		spec string
		in   []string
		want []string
	}{
		{"ip_rcv(skb)", nil, []string{
			"starts ip_rcv skb kprobe.multi", "meets ip_merge to kprobe.multi", "meets ip_merge from kprobe.multi",
			"ends kfree_skbmem skb kprobe.multi", "frees kfree ptr tp_btf", "frees kmem_cache_free ptr tp_btf",
		}},
		{"ip_merge(to) if n > 3", []string{"*_merge", "nothing"}, []string{
			"starts ip_merge to kprobe.multi", "meets ip_merge from kprobe.multi",
			"ends kfree_skbmem skb kprobe.multi", "frees kfree ptr tp_btf", "frees kmem_cache_free ptr tp_btf",
		}},
		{"open(return) if return->len > 3", []string{"vmlinux:free", "dummy:read"}, []string{
			"starts open return kprobe.multi", "meets free buf kprobe.multi", "frees kfree ptr tp_btf", "frees kmem_cache_free ptr tp_btf",
		}},
	} {
		t.Run(tc.spec, func(t *testing.T) {
			trace, err := spec.Parse(tc.spec)
			require.NoError(t, err)
			target := followTarget(t, compilertest.WithMulti)
			plan, err := Follow(trace, Following{In: tc.in}, target)
			require.NoError(t, err)
			require.ElementsMatch(t, tc.want, followedBy(plan))

			few, err := Follow(trace, Following{In: tc.in}, withFewSymbols(t, trace, Following{In: tc.in}, target))
			require.NoError(t, err)
			require.Equal(t, followedBy(plan), followedBy(few))
			require.Equal(t, plan.Unfollowed, few.Unfollowed)
			require.Equal(t, compiler.Starts, plan.Probes[0].Follow.Role)
			if tc.in == nil {
				require.Equal(t, []string{"ip_inlined: ftrace has no hook in it"}, plan.Unfollowed)
			}
		})
	}
}

func TestFollowRefuses(t *testing.T) {
	for _, tc := range []struct{ spec, show, in, want string }{
		{"ip_rcv", "", "", "the spec names no object: name the argument to follow: ip_rcv(ARGUMENT)"},
		{"ip_rcv()", "", "", "the spec names no object"},
		{"ip_*(skb)", "", "", "objects are chosen at one function, and 'ip_*' means many"},
		{"ip_rcv(skb->len)", "", "", "'skb->len' is unsigned int, and an object is what a pointer to a structure points to"},
		{"ip_list(list)", "", "", "'list' is a pointer, and an object is what a pointer to a structure points to"},
		{"ip_rcv(skb, skb->len)", "", "", "'skb->len' is a second value: show values with --show 'skb->len'"},
		{"ip_rcv(skb) if return > 0", "", "", "an object is chosen at the entry of ip_rcv or at its return, and the spec is about both"},
		{"ip_rcv(skb, count())", "", "", "count() counts them"},
		{"ip_rcv(skb) => kfree_skbmem() on skb", "", "", "an object is followed from one point on, and this is a span"},
		{"iter:task(task)", "", "", "an object is followed from a call on, and task is an iterator, which reads what is there now: name a function that gets it: FUNC(ARGUMENT)"},
		{"ip_rcv(after(skb))", "", "", "'after' and 'diff' are about both sides of a call"},
		{"ip_rcv(skb)", "skb->lem", "", "struct sk_buff has no member 'lem'"},
		{"ip_rcv(skb)", "skb->len > 3", "", "the values to show have no conditions: write the condition in the spec: ... if skb->len > 3"},
		{"ip_merge(to)", "n", "", "'n' is an argument of ip_merge, and values are shown at all functions that get the object, such as ip_rcv: name a member of the object, as in to->MEMBER"},
		{"ip_rcv(skb)", "return", "", "'return' is not known where the object is shown: at the entry of ip_rcv: name a member of it, as in skb->MEMBER"},
		{"ip_rcv(skb)", "skb->len, after(skb->len)", "", "'after(skb->len)' is not known where the object is shown: at the entry of ip_rcv"},
		{"ip_rcv(skb)", "diff(skb->len)", "", "'diff(skb->len)' is not known where the object is shown: at the entry of ip_rcv"},
		{"open(return)", "dfd", "", "'dfd' is not known where the object is shown: at the return of open"},
		{"ip_rcv(skb) if $duration > 5", "", "", "'$duration' is of a whole call, and an object is chosen at one side of it"},
		{"open(return) if return->len > $duration", "", "", "'$duration' is of a whole call, and an object is chosen at one side of it"},
		{"open(return)", "made->len", "", "open has no argument 'made': did you mean 'return'?"},
		{"open(return)", "$duration", "", "'$duration' is not known where the object is shown: at the return of open"},
		{"ip_rcv($task)", "$duration", "", "'$duration' is not known where the object is shown: at the entry of ip_rcv"},
		{"ip_rcv(skb)", "ret", "", "ip_rcv has no argument 'ret': it has skb"},
		{"ip_rcv(skb)", "duration", "", "ip_rcv has no argument 'duration': it has skb"},
		{"ip_rcv(skb)", "comm", "", "ip_rcv has no argument 'comm': it is written '$comm'"},
		{"ip_rcv(skb)", "", "no_such*", "no function that takes struct sk_buff * matches no_such*"},
		{"ip_rcv(skb)", "", "ip_marge", "no function that takes struct sk_buff * matches ip_marge: did you mean 'ip_merge'?"},
		{"ip_rcv(skb)", "", "ip_list", "no function that takes struct sk_buff * matches ip_list"},
		{"ip_rcv(skb)", "", "dumy:ip_rcv", "no function that takes struct sk_buff * matches dumy:ip_rcv: module dumy is not loaded"},
		{"ip_rcv(skb)", "", "vmlinux:nosuch", "'nosuch' alone matches functions of the kernel and of all modules"},
	} {
		t.Run(tc.spec+" "+tc.show, func(t *testing.T) {
			trace, err := spec.Parse(tc.spec)
			require.NoError(t, err)
			var f Following
			if tc.show != "" {
				show, err := spec.ParseItems(tc.show)
				require.NoError(t, err)
				f.Show = append(f.Show, show)
			}
			if tc.in != "" {
				f.In = []string{tc.in}
			}
			_, err = Follow(trace, f, followTarget(t, compilertest.WithMulti))
			require.ErrorContains(t, err, "")
			text := strings.Join(strings.Fields(err.Error()), " ")
			for _, part := range strings.Split(tc.want, ": ") {
				require.Contains(t, text, part)
			}
		})
	}
	trace, err := spec.Parse("ip_rcv(skb)")
	require.NoError(t, err)
	plan, err := Follow(trace, Following{In: []string{"ip_*", "ip_marge", "dumy:*"}}, followTarget(t, compilertest.WithMulti))
	require.NoError(t, err)
	require.Equal(t, []string{
		"no function that takes struct sk_buff * matches ip_marge: did you mean 'ip_merge'?", "no function that takes struct sk_buff * matches dumy:*: module dumy is not loaded",
	}, plan.Notes)
	_, err = Follow(trace, Following{}, followTarget(t, compilertest.WithTrampoline))
	require.ErrorContains(t, err, "this kernel attaches probes one by one, as it has no kprobe.multi links, and 4 functions take struct sk_buff *: choose those to show with --in GLOB")
}

// TestFollowShowsText verifies that a value that the spec compares with a string is one at
// all functions: it would be another value for the reader of the lines otherwise.
func TestFollowShowsText(t *testing.T) {
	show, err := spec.ParseItems("$comm, $task->comm")
	require.NoError(t, err)
	for _, cond := range []string{"", ` if $comm == "a" && $task->comm ~ "b*"`} {
		trace, err := spec.Parse("ip_rcv(skb)" + cond)
		require.NoError(t, err)
		plan, err := Follow(trace, Following{Show: []*spec.Trace{show}}, followTarget(t, compilertest.WithMulti))
		require.NoError(t, err)
		shown := map[string]int{}
		for _, p := range plan.Probes {
			if p.Follow.Role == compiler.Frees {
				continue
			}
			for _, v := range p.Entry {
				shown[fmt.Sprintf("%s %d %s", v.Name, v.Text, v.Format)]++
			}
		}
		format, probes := "", len(plan.Probes)-2
		if cond != "" {
			format = "string"
		}
		require.Equal(t, map[string]int{"$comm 0 " + format: probes, "$task->comm 0 " + format: probes}, shown)
	}
}

// TestOrderedStores verifies that what needs stores in their order is refused where the
// kernel has no exchange of words and the machine keeps no order.
func TestOrderedStores(t *testing.T) {
	target := followTarget(t, compilertest.WithMulti)
	target.Arch, target.Features.CompareExchange = compiler.ARM64, false
	trace, err := spec.Parse("ip_rcv(skb)")
	require.NoError(t, err)
	_, err = Follow(trace, Following{}, target)
	require.ErrorContains(t, err, "to follow objects needs Linux 5.18 on this machine")
	watch, err := spec.ParseWatch("ip_rcv(skb->len)")
	require.NoError(t, err)
	_, err = All([]*spec.Trace{watch}, target, Wishes{})
	require.ErrorContains(t, err, "to watch an object that calls find needs Linux 5.18 on this machine")
	target.Arch = compiler.AMD64
	_, err = Follow(trace, Following{}, target)
	require.NoError(t, err)
}

// TestFollowEndFunctions verifies where objects of the types that docs/follow.md lists
// end, and that there is a note if the kernel has none of a type's functions.
func TestFollowEndFunctions(t *testing.T) {
	void, ptr, fn, param := compilertest.Void, compilertest.Ptr, compilertest.Function, compilertest.Param
	freed := []string{"frees kfree", "frees kmem_cache_free"}
	for _, tc := range []struct {
		structure string
		functions string
		want      []string
	}{
		{"sk_buff", "kfree_skbmem napi_skb_cache_put", append([]string{"ends kfree_skbmem", "ends napi_skb_cache_put"}, freed...)},
		{"file", "__fput", append([]string{"ends __fput"}, freed...)},
		{"inode", "evict", append([]string{"ends evict"}, freed...)},
		{"dentry", "dentry_free", append([]string{"ends dentry_free"}, freed...)},
		{"request", "__blk_mq_free_request", append([]string{"ends __blk_mq_free_request"}, freed...)},
		{"request", "blk_mq_free_request", append([]string{"ends blk_mq_free_request"}, freed...)},
		{"bio", "bio_free", append([]string{"ends bio_free"}, freed...)},
		{"bio", "bio_put", freed},
		{"sock", "sk_free", freed},
		{"page", "free_pages", []string{"frees mm_page_free"}},
		{"folio", "free_pages", []string{"frees mm_page_free"}},
	} {
		t.Run(tc.structure+" "+tc.functions, func(t *testing.T) {
			object := param("x", ptr(&btf.Struct{Name: tc.structure, Size: 8}))
			pages := []btf.FuncParam{param("__data", ptr(void)), object, param("order", compilertest.Uint)}
			types := append(freeing(), fn("begin", void, object),
				&btf.Typedef{Name: "btf_trace_mm_page_free", Type: ptr(&btf.FuncProto{Return: void, Params: pages})}, fn("__bpf_trace_mm_page_free", void, pages...))
			text := "ffffffff81000000 T begin\n"
			for i, name := range strings.Fields(tc.functions) {
				types = append(types, fn(name, void, object))
				text += fmt.Sprintf("ffffffff8100%d000 T %s\n", i+1, name)
			}
			target := compilertest.NewTarget(t, compilertest.WithMulti, types...)
			symbols, err := kallsyms.Read(strings.NewReader(text), nil)
			require.NoError(t, err)
			target.Symbols = symbols
			trace, err := spec.Parse("begin(x)")
			require.NoError(t, err)
			plan, err := Follow(trace, Following{}, target)
			require.NoError(t, err)
			var ends []string
			for _, p := range plan.Probes {
				if p.Follow.Ending() {
					ends = append(ends, strings.Join(strings.Fields(followedBy(&compiler.Plan{Probes: []*compiler.Probe{p}})[0])[:2], " "))
				}
			}
			require.ElementsMatch(t, tc.want, ends)
			require.Equal(t, tc.functions == "bio_put", len(plan.Notes) > 0, plan.Notes)
		})
	}
}
