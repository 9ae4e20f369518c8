//go:build linux

package e2e

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
)

// testNoRoomDeep nests more calls in a thread than it has room for: a file below two
// overlays is opened, of which each of twelve specs sees three calls. A call without room
// counts once, for the event at return, and its entry is shown.
func testNoRoomDeep(t *testing.T, k *kernel, attach compiler.Kind) {
	const opens, depth, specs, slots = 50, 3, 12, 32
	path := filepath.Join(mountOverlay(t), "file")
	each := slices.Repeat([]string{"do_dentry_open(f->f_mode, return, $duration)"}, specs)
	if k.target().Features.ReturnsUnlimited && attach.Multi() {
		require.ErrorContains(t, k.refused(t, attach, each...), "the kernel follows the returns of a function for 8 links")
		return
	}
	session := k.loadUnit(t, k.unit(t, resolve.Wishes{Attach: attach}, compiler.Options{RingBytes: 4 << 20, CountCalls: true}, each...))
	session.Hold()
	_, err := session.Attach()
	require.NoError(t, err)
	require.NoError(t, session.Begin())
	tr := &tracer{session}
	for range opens {
		fd, err := unix.Open(path, unix.O_RDONLY, 0)
		require.NoError(t, err)
		require.NoError(t, unix.Close(fd))
	}
	require.NoError(t, tr.Stop())
	require.NoError(t, tr.Discard())
	counts, err := tr.EventCounts()
	require.NoError(t, err)
	missed, noRoom := tr.missed(t), uint64(0)
	for _, c := range counts {
		t.Logf("%s: %+v", c.Kind, c.Counters)
		if missed > 0 { // by the kernel, which follows few returns
			continue
		}
		require.Equal(t, uint64(opens*depth), c.Matched+c.NoRoom)
		require.Zero(t, c.Unpaired)
		if c.Kind == compiler.EntryEvent {
			require.Zero(t, c.NoRoom)
		}
		noRoom += c.NoRoom
	}
	if missed == 0 {
		require.Equal(t, uint64(opens*(depth*specs-slots)), noRoom)
	}
}
