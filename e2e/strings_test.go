//go:build linux

package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// testStrings checks that strings of any length up to the limit are shown whole, from
// memory of the kernel and of the process, and that records take no more room than
// their strings need.
func testStrings(t *testing.T, k *kernel) {
	for _, attach := range k.twoKinds(t) {
		t.Run("lengths/"+string(attach), func(t *testing.T) { testStringLengths(t, k, attach) })
	}
	t.Run("room", func(t *testing.T) { testStringRoom(t, k) })
}

// pathOf returns the path of a file that does not exist, with n characters.
func pathOf(n int) string {
	return (strings.Repeat("/.", n/2) + "//missing")[n%2:][:n-8] + "/missing"
}

func testStringLengths(t *testing.T, k *kernel, attach compiler.Kind) {
	const most = 1000
	lengths := []int{10, 45, 46, 47, 48, 49, 100, 253, 254, 255, 256, 257, most - 1, most, most + 1, 4000}
	caller := newCaller(t)
	text := opener(t, k) + "(pathname->name, pathname->uptr:ustring)"
	if k.refused(t, attach, text) != nil {
		text = opener(t, k) + "(pathname->name)" // 7.2 keeps no pointer to the memory of the process
	}
	tr := k.trace(t, attach, compiler.Options{TID: caller.tid, CountCalls: true, MaxBytes: most}, text)
	caller.do(func() {
		for _, n := range lengths {
			if fd, err := unix.Open(pathOf(n), unix.O_RDONLY, 0); err == nil {
				unix.Close(fd)
			}
		}
	})
	var got []int
	tr.events(t, func(ev *runtime.Event) {
		n := lengths[len(got)]
		for _, v := range ev.Values {
			require.Equal(t, compiler.NoFault, v.Fault)
			require.Equal(t, pathOf(n)[:min(n, most)], string(v.Data))
			require.Equal(t, n > most, v.Cut)
		}
		got = append(got, n)
	})
	require.Equal(t, lengths, got)
	require.Equal(t, compiler.Counters{Matched: uint64(len(lengths))}, tr.counters(t))
}

// testStringRoom checks that the default ring buffer holds 2,500 records of vfs_read,
// whose buf is memory of the process.
func testStringRoom(t *testing.T, k *kernel) {
	const calls, least = 4000, 2500
	caller := newCaller(t)
	opts := compiler.Options{TID: caller.tid, CountCalls: true, RingBytes: compiler.DefaultRingBytes}
	tr := k.trace(t, compiler.Kprobe, opts, "vfs_read(file, buf, count, pos)")
	read := readZero(t)
	caller.do(func() {
		for range calls {
			read()
		}
	})
	events := 0
	tr.events(t, func(ev *runtime.Event) {
		events++
		buf := &ev.Values[1]
		require.Equal(t, compiler.PointeeFault, buf.Fault)
		require.Contains(t, buf.Reason(), "user-space address")
	})
	require.GreaterOrEqual(t, events, least)
	c := tr.counters(t)
	require.Equal(t, []uint64{calls, uint64(calls - events)}, []uint64{c.Matched, c.Lost})
}
