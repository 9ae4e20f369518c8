package runtime

import (
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
		err   string
	}{
		{"vfs_read()", 1, ""},
		{"vfs_raed()", 2, "did you mean"},
		{"vfs_rea*()", 1, ""}, // a glob needs all names
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
		require.Equal(t, tc.spec == "vfs_read()", k.part != nil, tc.spec)
		if _, err := resolve.FindFunction(trace, last); tc.err != "" {
			require.ErrorContains(t, err, tc.err)
		}
	}
}
