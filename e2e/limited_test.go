//go:build linux

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// testLimited checks, by every kind, that threads that make calls at the same time get no
// more events in a second than the rate allows, and that all other calls are counted.
func testLimited(t *testing.T, k *kernel) {
	const rate, hurried = 30, 4
	each := rounds(2000, 20_000) // of which every other one matches
	for _, attach := range k.kinds(t) {
		for _, spec := range []string{"null_lseek(offset > 1, offset)", "null_lseek(offset > 1, file->f_flags, return >= 0)"} {
			if attach == compiler.Fentry && spec != "null_lseek(offset > 1, offset)" && k.target().Features.Preemptible {
				continue // refused, see testPairing
			}
			t.Run(fmt.Sprintf("%s by %s", spec, attach), func(t *testing.T) {
				tr := k.trace(t, attach, compiler.Options{CountCalls: true, Rate: rate, RingBytes: 1 << 20}, spec)
				threads(t, hurried, func(int) error { return seekEach(each) })
				seconds := map[time.Duration]int{}
				tr.events(t, func(ev *runtime.Event) { seconds[ev.Time/time.Second]++ })
				counts, missed := tr.counts(t), tr.missed(t)
				t.Logf("%v events in each second; %d missed, %+v", seconds, missed, counts.Counters)
				first, last, all := time.Duration(1<<62), time.Duration(0), 0
				for second, n := range seconds {
					first, last, all = min(first, second), max(last, second), all+n
					require.LessOrEqual(t, n, 2*rate, "a program asks before the time of its event")
				}
				require.LessOrEqual(t, all, rate*int(last-first+2))
				require.GreaterOrEqual(t, all, rate)
				require.NotZero(t, counts.Limited)
				require.Zero(t, counts.Lost)
				require.Equal(t, counts.Matched, uint64(all)+counts.Limited)
				require.GreaterOrEqual(t, counts.Matched+missed, uint64(hurried*each/2))
			})
		}
	}
}

// seekEach moves in a file n times, every other time to offset 3.
func seekEach(n int) error {
	fd, err := unix.Open("/dev/null", unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for i := range n {
		if _, err := unix.Seek(fd, int64(i%2*3), unix.SEEK_SET); err != nil {
			return err
		}
	}
	return nil
}
