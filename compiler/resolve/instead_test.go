package resolve

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// TestByKprobe verifies that what fexit has in its own context is kept for a kretprobe,
// and that what was kept before is still kept.
func TestByKprobe(t *testing.T) {
	for _, tc := range []struct {
		spec          string
		before, after bool // whether something is kept
		outcomes      int
	}{
		{"read(count)", false, false, 0},
		{"read(return)", false, false, 0},
		{"read(count, return)", false, false, 0},
		{"read(count == 1, return)", false, true, 0},
		{"read(count == 1, return) if count > return", false, true, 0},
		{"read(count, return) if count == 1 || return == 2", false, true, 1},
		{"read(count, return, $duration)", true, true, 0},
		{"read(*pos, return) if *pos == 1 || return == 2", true, true, 1},
	} {
		trace, err := spec.Parse(tc.spec)
		require.NoError(t, err)
		p, err := One(trace, compilertest.NewTarget(t, of61))
		require.NoError(t, err, tc.spec)
		require.Equal(t, compiler.Fentry, p.Attach.Entry)
		require.Equal(t, tc.before, p.Stash, tc.spec)
		require.NoError(t, ByKprobe(p, "why not"))
		require.Equal(t, compiler.Attach{Entry: compiler.Kprobe, Return: compiler.Kretprobe, Reason: "why not", ReturnInstances: 4096}, p.Attach)
		require.Equal(t, tc.after, p.Stash, tc.spec)
		require.Len(t, p.Outcomes, tc.outcomes, tc.spec)
	}
	p := &compiler.Probe{Func: &compiler.Function{Name: "read"}, Features: compiler.Features{NoKprobe: "not permitted"}}
	require.EqualError(t, ByKprobe(p, "why not"), "attach kprobe to read: not permitted")
	require.Zero(t, p.Attach)
}
