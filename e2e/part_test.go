//go:build linux

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/stretchr/testify/require"
)

// testPart checks that a spec compiles to the same programs with a part of the
// kernel's types and symbols as with all of them.
func testPart(t *testing.T, k *kernel) {
	t.Run("programs", func(t *testing.T) { testPartPrograms(t, k) })
	t.Run("symbols", func(t *testing.T) { testPartSymbols(t, k) })
	t.Run("table", func(t *testing.T) { testSymbolTable(t, k) })
	t.Run("finder", func(t *testing.T) { testFinder(t, k) })
	t.Run("globs", func(t *testing.T) { testPartGlobs(t, k) })
	t.Run("refused", func(t *testing.T) { testPartRefused(t, k) })
	t.Run("following", func(t *testing.T) { testFollowSymbols(t, k) })
}

// testPartGlobs checks that what a glob matches has the same programs with a part of the
// types as with all of them, and that the same functions are left out.
func testPartGlobs(t *testing.T, k *kernel) {
	whole, err := runtime.OpenKernel()
	require.NoError(t, err)
	globs := []string{
		"vfs_*(file->f_path.dentry->d_name.name, return < 0)", "tp:*_switch(prev->pid)", "vfs_rea*(count(), count:symbol)", "no_such_*",
	}
	if *full {
		globs = append(globs, "vfs_rea*", "*_open(inode->i_sb, $comm)", "tcp_v[46]*(sk)", "tp:sched_*", "ip_*() if $comm ~ \"c*\"", "security_file_*(file->nothing)")
	}
	fits := 0
	for _, text := range globs {
		trace, err := spec.Parse(text)
		require.NoError(t, err)
		traces := []*spec.Trace{trace}
		needs, ok := resolve.FewNeeds(traces)
		require.True(t, ok, text)
		part, err := runtime.OpenPart(needs)
		require.NoError(t, err, text)
		of, err := part.TargetFor(traces)
		require.NoError(t, err, text)
		require.True(t, of.Partial)
		got, partErr := resolve.All(traces, of, resolve.Wishes{})
		of, err = whole.TargetFor(traces)
		require.NoError(t, err, text)
		require.False(t, of.Partial)
		want, err := resolve.All(traces, of, resolve.Wishes{})
		if err != nil {
			require.Error(t, partErr, text)
			continue
		}
		require.NoError(t, partErr, text)
		fits++
		require.Equal(t, want.LeftOut, got.LeftOut, text)
		require.Equal(t, want.Notes, got.Notes, text)
		requireSamePrograms(t, text, want.Probes, got.Probes)
	}
	require.GreaterOrEqual(t, fits, len(globs)-2)
}

// requireSamePrograms checks that probes have the same programs as others.
func requireSamePrograms(t *testing.T, text string, want, got []*compiler.Probe) {
	require.Len(t, got, len(want), text)
	wantUnit, err := compile(want...)
	require.NoError(t, err, text)
	gotUnit, err := compile(got...)
	require.NoError(t, err, text)
	require.Len(t, gotUnit.Collection.Programs, len(wantUnit.Collection.Programs), text)
	for name, p := range wantUnit.Collection.Programs {
		require.Equal(t, fmt.Sprint(p.Instructions), fmt.Sprint(gotUnit.Collection.Programs[name].Instructions), text)
	}
	require.Equal(t, len(wantUnit.Events), len(gotUnit.Events), text)
	for i, ev := range wantUnit.Events {
		require.Equal(t, ev.Layout, gotUnit.Events[i].Layout, text)
		for j, v := range ev.Items {
			require.Equal(t, looks(t, v), looks(t, gotUnit.Events[i].Items[j]), text)
		}
	}
}

// testPartRefused checks that a spec that does not fit a part of the types is bound to all
// of them with the symbols that are known already, and that the kernel can then be asked
// for others.
func testPartRefused(t *testing.T, k *kernel) {
	trace, err := spec.Parse("vfs_read(nosuch)")
	require.NoError(t, err)
	var tables []*kallsyms.Table
	var reasons []error
	opened, err := runtime.OpenFor([]*spec.Trace{trace}, nil, func(target *compiler.Target) bool {
		_, err := resolve.All([]*spec.Trace{trace}, target, resolve.Wishes{})
		tables, reasons = append(tables, target.Symbols), append(reasons, err)
		return err == nil
	})
	require.NoError(t, err)
	require.Len(t, reasons, 2)
	require.ErrorContains(t, reasons[0], "vfs_read has no argument 'nosuch'")
	require.Equal(t, reasons[0].Error(), reasons[1].Error())
	require.Same(t, tables[0], tables[1])
	all, err := opened.Target(kallsyms.Wanted{})
	require.NoError(t, err)
	require.Greater(t, all.Symbols.Len(), 10_000)
}

// partSpecs lists specs that use only what a part can have.
var partSpecs = []string{
	"tp:sched_switch",
	"vfs_read(file->f_path.dentry->d_name.name, (struct inode *)buf, return < 0)",
	"vfs_read(file->f_flags & O_LARGEFILE, count == PIDTYPE_TGID, count & (PIDTYPE_SID + 1))",
	"vfs_read((enum PIDTYPE_TGID)count)",
	"vfs_read((int)@panic_timeout > 3, (u64)@jiffies_64, ((struct uts_namespace)@init_uts_ns).name.sysname, ((struct rq)@runqueues).cpu)",
	"p:entry vfs_read f=file->f_flags size=$arg3 name=+8($arg1):x64 r=%" + argRegisters[0] + " s=$stack1:symbol c=$comm if size > 10 && common_pid != 1",
	"p vfs_read $arg*",
	"p:old vfs_read a0 s0",
	"r:back vfs_read rv ra",
	"f:both vfs_read%return size=$arg3 $retval",
	"t sched_switch next=$arg3",
}

func testPartPrograms(t *testing.T, k *kernel) {
	whole := k.target()
	functions := sample(slices.DeleteFunc(k.functions(t), func(name string) bool {
		return strings.HasPrefix(name, "___") // these are searched for in all types
	}), rounds(50, 100))
	variables := len(whole.Symbols.Lookup("panic_timeout")) > 0 // the kernel may list functions alone
	same := 0
	for some := range slices.Chunk(functions, 25) {
		part := k.part(t, slices.Concat(partSpecs, some)...)
		require.Equal(t, whole.Features, part.Features)
		for _, text := range some {
			if k.samePrograms(t, text, whole, part) {
				same++
			}
		}
		for _, text := range partSpecs {
			require.True(t, k.samePrograms(t, text, whole, part) || strings.Contains(text, "@") && !variables, text)
		}
	}
	t.Logf("%d of %d functions", same, len(functions))
	require.Greater(t, same, len(functions)*9/10)
}

// part describes the kernel with as little as the specs need.
func (k *kernel) part(t *testing.T, specs ...string) *compiler.Target {
	var traces []*spec.Trace
	for _, text := range specs {
		trace, err := kprobe.ParseAny(text)
		require.NoError(t, err)
		traces = append(traces, trace)
	}
	needs, ok := resolve.FewNeeds(traces)
	require.True(t, ok)
	part, err := runtime.OpenPart(needs)
	require.NoError(t, err)
	target, err := part.Target(resolve.Symbols(traces))
	require.NoError(t, err)
	return target
}

// samePrograms checks that a spec has the same programs with both targets, and
// that its values look the same. It returns false if neither can trace it.
func (k *kernel) samePrograms(t *testing.T, text string, whole, part *compiler.Target) bool {
	trace, err := kprobe.ParseAny(text)
	require.NoError(t, err)
	want, err := resolve.One(trace, whole)
	got, partErr := resolve.One(trace, part)
	if err != nil {
		require.Error(t, partErr, text)
		t.Log(err)
		return false
	}
	require.NoError(t, partErr, text)
	require.Equal(t, want.Attach, got.Attach, text)
	require.Equal(t, want.Func.Addrs, got.Func.Addrs, text)
	require.Equal(t, want.Func.Addr, got.Func.Addr, text)
	requireSamePrograms(t, text, []*compiler.Probe{want}, []*compiler.Probe{got})
	return true
}

// looks returns how random bytes look when they are shown as a value.
func looks(t *testing.T, v *compiler.Value) string {
	typ := v.Type
	if v.Pointee != nil {
		typ = v.Pointee
	}
	size, err := btf.Sizeof(typ)
	if err != nil || size == 0 {
		return fmt.Sprint(size, err)
	}
	d, err := btfdump.New(typ, btfdump.Options{})
	require.NoError(t, err)
	data := make([]byte, min(size, 4096))
	random := rand.New(rand.NewPCG(1, 2))
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return btfdump.TypeName(v.Type) + string(d.AppendText(nil, data)) + string(d.AppendJSON(nil, data))
}

// testPartSymbols checks that a lookup of single names returns the same symbols
// as the whole symbol table.
func testPartSymbols(t *testing.T, k *kernel) {
	table := k.target().Symbols
	counts := map[string]int{}
	var names []string
	for s := range table.All() {
		if s.Entry() && spec.IsName(s.Name) && kallsyms.Base(s.Name) == s.Name {
			if counts[s.Name]++; counts[s.Name] == 1 {
				names = append(names, s.Name)
			}
		}
	}
	slices.Sort(names)
	several := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return counts[name] == 1 })
	require.NotEmpty(t, several)
	once := sample(slices.DeleteFunc(names, func(name string) bool { return counts[name] > 1 }), 40)
	for _, some := range append([][]string{once, {several[0]}, {several[len(several)-1]}}, []string{"dummy_xmit"}, []string{"jiffies"}, []string{"no_such_function"}) {
		part := k.part(t, some...).Symbols
		for _, name := range some {
			require.Equal(t, places(table.Lookup(name)), places(part.Lookup(name)), name)
		}
	}
	for _, name := range []string{"jiffies", "runqueues", "init_task", "linux_banner", "vfs_read", "no_such_variable"} {
		part := k.part(t, fmt.Sprintf("ksys_read(@%s)", name)).Symbols
		for _, of := range []string{name, "ksys_read", "__per_cpu_offset", "__per_cpu_start", "__per_cpu_end"} {
			require.Equal(t, places(table.Lookup(of)), places(part.Lookup(of)), of)
		}
	}
	for s := range table.All() {
		if !s.Text() && s.Module != "" && s.Module != "bpf" && spec.IsName(s.Name) && len(table.Lookup(s.Name)) == 1 {
			k.refusesPart(t, fmt.Sprintf("ksys_read(@%s)", s.Name))
			break
		}
	}
}

// refusesPart checks that a spec is not bound to a part of the kernel.
func (k *kernel) refusesPart(t *testing.T, text string) {
	trace, err := spec.Parse(text)
	require.NoError(t, err)
	needs, ok := resolve.FewNeeds([]*spec.Trace{trace})
	require.True(t, ok)
	part, err := runtime.OpenPart(needs)
	require.NoError(t, err)
	_, err = part.Target(resolve.Symbols([]*spec.Trace{trace}))
	require.ErrorContains(t, err, "a module has other types")
}

// testFollowSymbols checks that objects are followed by the same programs with the symbols
// of the functions that get them as with all symbols, and that no others are read.
func testFollowSymbols(t *testing.T, k *kernel) {
	if !k.target().Features.KprobeMulti {
		return // follow needs --in, or is refused
	}
	opened, err := runtime.OpenKernel()
	require.NoError(t, err)
	trace, err := spec.Parse("vfs_fallocate(file)")
	require.NoError(t, err)
	whole := *k.target()
	whole.Kernel, whole.FuncsTaking = opened.Types(), nil
	f := resolve.Following{In: []string{"vfs_*", "do_*", "*poll*"}, Modules: runtime.LoadedModules()}
	target, err := opened.TargetFollowing(trace, f)
	require.NoError(t, err)
	require.NotEmpty(t, target.Symbols.Lookup("vfs_fsync"))
	require.Empty(t, target.Symbols.Lookup("ip_send_skb"), "it takes no file")
	whole.Module, whole.Hookable = target.Module, target.Hookable
	want, err := resolve.Follow(trace, f, &whole)
	require.NoError(t, err)
	got, err := resolve.Follow(trace, f, target)
	require.NoError(t, err)
	require.Greater(t, len(got.Probes), 20)
	require.Equal(t, want.Unfollowed, got.Unfollowed)
	requireSamePrograms(t, trace.Text, want.Probes, got.Probes)
}

// testSymbolTable checks that the symbol table is that of /proc/kallsyms,
// however it is read.
func testSymbolTable(t *testing.T, k *kernel) {
	f, err := os.Open("/proc/kallsyms")
	require.NoError(t, err)
	defer f.Close()
	want, err := kallsyms.Read(f, nil)
	require.NoError(t, err)
	require.Equal(t, lastingSymbols(want), lastingSymbols(k.target().Symbols))

	// Of many names, the kernel's program chooses (6.0), by their first eight bytes.
	var names []string
	n := 0
	for s := range want.All() {
		if !s.Entry() || s.Module == "bpf" || strings.HasPrefix(s.Name, "_") {
			continue
		}
		if n++; n%200 == 0 || s.Module != "" && n%50 == 0 || len(s.Name) == 8 && n%20 == 0 {
			names = append(names, s.Name)
		}
	}
	require.Greater(t, len(names), 150)
	chosen := map[string]bool{}
	for _, name := range names {
		chosen[name] = true
	}
	opened, err := runtime.OpenKernel()
	require.NoError(t, err)
	asked := 0
	target, err := opened.Target(kallsyms.Wanted{Prefixes: names, Keep: func(name string) bool {
		asked++
		return chosen[name]
	}})
	require.NoError(t, err)
	for name := range chosen {
		require.Equal(t, want.Lookup(name), target.Symbols.Lookup(name), name)
	}
	if _, err := opened.Types().AnyTypesByName("bpf_iter_ksym"); err == nil {
		require.Less(t, asked, want.Len()/5)
	} else {
		require.Greater(t, asked, want.Len()/2)
	}
}

// testFinder checks that the kernel, where it can be asked, says of addresses what its
// symbol table says, of modules, data and BPF programs, too.
func testFinder(t *testing.T, k *kernel) {
	opened, err := runtime.OpenKernel()
	require.NoError(t, err)
	_, err = opened.Target(kallsyms.Wanted{Keep: func(name string) bool { return name == "vfs_read" }, Prefixes: []string{"vfs_read"}})
	require.NoError(t, err)
	f, err := opened.Finder()
	require.NoError(t, err)
	again, err := runtime.OpenKernel()
	require.NoError(t, err)
	table, err := again.Symbols() // with the program that asks
	require.NoError(t, err)
	_, isTable := f.(*kallsyms.Table)
	_, noHelper := opened.Types().AnyTypesByName("bpf_snprintf")
	require.Equal(t, noHelper != nil, isTable)
	require.Equal(t, table.Lookup("vfs_read"), f.Lookup("vfs_read"))
	modules := map[string]int{}
	end := ^uint64(0) // the kernel may list functions alone
	if image := table.Lookup("_end"); len(image) > 0 {
		end = image[0].Addr
	}
	n := 0
	for s := range table.All() {
		gone := s.Module == "bpf" && (isTable || strings.HasSuffix(s.Name, "_symbols")) // the program that has read the table
		// Of what lies behind its image the kernel says nothing: it was freed after the boot.
		gone = gone || s.Module == "" && s.Addr >= end
		if n++; gone || s.Absolute() || strings.HasPrefix(s.Module, "__builtin__") || s.Module == "" && n%rounds(100, 10) != 0 {
			continue
		}
		addr := s.Addr + uint64(n%16)
		want, offset, ok := table.At(addr)
		got, gotOffset, gotOK := f.At(addr)
		require.Equal(t, fmt.Sprintf("%v %s+%#x [%s]", ok, want.Name, offset, want.Module), fmt.Sprintf("%v %s+%#x [%s]", gotOK, got.Name, gotOffset, got.Module), "%#x", addr)
		if want.Text() && want.Module == "" {
			require.Equal(t, table.Size(want), f.Size(got), want.Name)
		}
		modules[s.Module]++
	}
	require.Equal(t, !isTable, modules["bpf"] > 0)
}

// lastingSymbols returns the symbols that do not come and go with programs.
func lastingSymbols(table *kallsyms.Table) []kallsyms.Symbol {
	return slices.DeleteFunc(slices.Collect(table.All()), func(s kallsyms.Symbol) bool {
		return s.Module == "bpf" || s.Module == "__builtin__ftrace" || s.Module == "__builtin__kprobes"
	})
}

// places returns the addresses of symbols, and whether they are functions.
func places(symbols []kallsyms.Symbol) string {
	var all []string
	for _, s := range symbols {
		all = append(all, fmt.Sprintf("%#x %v %s", s.Addr, s.Text(), s.Module))
	}
	return strings.Join(all, "\n")
}
