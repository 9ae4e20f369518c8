package complete

import (
	"bytes"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
)

// TestLineValues verifies that the compiler accepts all that is offered as an argument of
// a line.
func TestLineValues(t *testing.T) {
	system := madeSystem(t)
	types, err := btf.LoadSpecFromReader(bytes.NewReader(system.raw))
	require.NoError(t, err)
	target := &compiler.Target{Kernel: types, Arch: compiler.AMD64, Features: compiler.Features{CurrentTask: true, KprobeMulti: true}}
	for _, place := range []string{
		"p vfs_read", "p vfs_read+0", "p vfs_read+0x4", "p vfs_read%return", "p:g/x vfs_read", "r vfs_read", "r8:x vfs_read", "f vfs_read", "f vfs_read%return",
		"p hook", "r hook", "p hook%return", "f hook", "t tick", "t tock",
	} {
		for _, arg := range []struct{ before, after string }{{" ", ""}, {" x=", ""}, {" $comm y=", ""}, {" +0(", "):x8"}, {" +8(+0(", ")):x8"}} {
			offered := completeSpec(system, place+arg.before, false)
			if place != "p vfs_read+0x4" && (place != "t tick" || arg.after == "") && place != "t tock" {
				require.NotEmpty(t, offered, place+arg.before)
			}
			for _, c := range offered {
				line, err := kprobe.Parse(c.text + arg.after)
				require.NoError(t, err)
				_, err = resolve.One(line, target)
				require.NoError(t, err)
			}
		}
	}
}
