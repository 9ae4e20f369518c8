package runtime

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// TestOpenForBindsOnce verifies that specs that fit are bound once, to a part of the
// types, and that those that do not fit are bound again to all types, which have the
// name that was meant.
func TestOpenForBindsOnce(t *testing.T) {
	requireTypes(t)
	for _, tc := range []struct {
		spec  string
		times int
		part  bool
		err   string
	}{
		{"vfs_read()", 1, true, ""},
		{"vfs_raed()", 2, false, "did you mean"},
		{"vfs_rea*()", 1, true, ""},
		{"tp:sched_*()", 1, true, ""},
		{"s*()", 1, false, ""}, // needs too many for a part
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
			if spec.IsGlob(trace.Func.Name) {
				_, err = resolve.Names(trace, target)
			}
			return err == nil
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
