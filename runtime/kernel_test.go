package runtime

import (
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
)

// TestOpenForBindsOnce verifies that specs that fit are bound once, to a part of the
// types, and so are those that have a name of which the part knows what was meant; and that
// others are bound again to all types.
func TestOpenForBindsOnce(t *testing.T) {
	requireTypes(t)
	for _, tc := range []struct {
		spec  string
		times int
		part  bool
		err   string
	}{
		{"vfs_read()", 1, true, ""},
		{"vfs_raed()", 1, true, "did you mean"},
		{"tp:sched_swich()", 1, true, "did you mean"},
		{"iter:taks()", 2, false, "did you mean"},
		{"vfs_rea*()", 1, true, ""},
		{"tp:sched_*()", 1, true, ""},
		{"vfs_*(return)", 1, true, ""}, // some return nothing
		{"s*()", 1, false, ""},         // needs too many for a part
	} {
		trace, err := spec.Parse(tc.spec)
		require.NoError(t, err)
		traces := []*spec.Trace{trace}
		times := 0
		var last *compiler.Target
		k, err := OpenFor(traces, nil, func(target *compiler.Target) bool {
			times++
			last = target
			_, err = resolve.FindFunction(trace, target)
			switch {
			case len(trace.Items) > 0:
				_, err = resolve.All(traces, target, resolve.Wishes{})
			case spec.IsGlob(trace.Func.Name):
				_, err = resolve.Names(trace, target)
			}
			return resolve.Settled(err, target)
		})
		require.NoError(t, err, tc.spec)
		require.Equal(t, tc.times, times, tc.spec)
		require.Same(t, k.Types(), last.Kernel, "the last target is that of the kernel")
		require.Equal(t, tc.part, k.part != nil, tc.spec)
		require.Equal(t, tc.part, last.Partial, tc.spec)
		if _, err := resolve.FindFunction(trace, last); tc.err != "" {
			require.ErrorContains(t, err, tc.err)
		}
	}
}

// TestSettled verifies that what is said of specs that a part of the types settles is what is
// said with all types.
func TestSettled(t *testing.T) {
	requireTypes(t)
	whole, err := OpenKernel()
	require.NoError(t, err)
	wrong := map[string]bool{ // and whether the part settles it
		"vfs_raed": true, "vfs_raed(nosuch)": true, "no_such_function_at_all": true, "sched_switch": true, "openat": true, "sys_read": true,
		"sys_enter_openat": true, "sys_exit_nosuch": true, "sys_enter": true, "begin": true, "jiffies": true, "tcp": true, "printf": true,
		"tp:sched_swich": true, "tp:vfs_read": true, "tp:sys_enter_read": true, "tp:nosuch(id)": true,
		"vfs_read(fiel)": true, "vfs_read(nosuch)": true, "vfs_read(ret)": true, "vfs_read(current, nosuch)": true, "vfs_read(arg0)": true,
		"vfs_read(file_f_flags)": true, "vfs_read(fd->f_flags)": true, "vfs_read(latency)": true,
		"vfs_read(file->f_flgs)": true, "vfs_read(file->f_inode->i_inoo == 1)": true, "vfs_read(file->dentry)": true, "sock_sendmsg(sock->sk->sk_state)": true,
		"vfs_read((struct nosuch *)buf)": false, "vfs_read(((struct sk_buff *)buf)->lenn)": true, "vfs_read(@nosuch)": false,
		"vfs_read(count == NOSUCH)": false, "vfs_raed*": false, "iter:taks": false, "vfs_read(@init_task.nosuch)": false,
		"p vfs_raed $arg1": true, "p:name vfs_read siez": true, "r vfs_raed $retval": true, "t sched_swich": true, "vfs_*(nosuch)": false,
		"vfs_caches_init(return)": true, "do_exit(return == 0)": true, "tp:sched_switch(return)": true, "iter:task(return)": true,
	}
	var functions []string
	names, _ := TypeNames(resolve.FuncKind)
	for name := range names {
		functions = append(functions, name)
	}
	for i := 7; i < len(functions); i += len(functions) / 8 {
		name := functions[i]
		wrong[name[:len(name)-1]+"qq"], wrong[name+"_x(nosuch)"] = true, true
	}
	for _, text := range slices.Sorted(maps.Keys(wrong)) {
		settled := wrong[text]
		traces, err := kprobe.ParseFile("specs", text)
		require.NoError(t, err, text)
		reason := func(k *Kernel) (error, bool) {
			target, err := k.TargetFor(traces)
			require.NoError(t, err, text)
			_, err = resolve.All(traces, target, resolve.Wishes{})
			return err, resolve.Settled(err, target)
		}
		needs, ok := resolve.FewNeeds(traces)
		require.True(t, ok, text)
		part, err := OpenPart(needs)
		require.NoError(t, err, text)
		inPart, same := reason(part)
		require.Equal(t, settled, same, "%s: %v", text, inPart)
		if same {
			inAll, _ := reason(whole)
			require.Error(t, inAll, "%s: %v", text, inPart)
			require.EqualError(t, inPart, inAll.Error(), text)
		}
	}
}

// TestNoSymbolFile verifies what is said where procfs is not mounted, or has only
// processes, or the kernel has no symbol table.
func TestNoSymbolFile(t *testing.T) {
	proc := t.TempDir()
	const mount = "read the symbol table: there is no /proc/kallsyms: mount procfs (mount -t proc proc /proc), or boot a kernel built with CONFIG_KALLSYMS=y"
	require.EqualError(t, noSymbolFile(proc), mount)
	require.NoError(t, os.Mkdir(proc+"/self", 0o700))
	require.EqualError(t, noSymbolFile(proc), "read the symbol table: there is no /proc/kallsyms, as /proc is mounted with subset=pid: mount it without (mount -t proc proc /proc)")
	require.NoError(t, os.WriteFile(proc+"/version", nil, 0o600))
	require.EqualError(t, noSymbolFile(proc), mount)
}
