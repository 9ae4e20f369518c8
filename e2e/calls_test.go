//go:build linux

package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A call holds what an event at return shows of both sides. in and out are
// equal if both sides are of the same call: each test chooses values of the entry and
// of the return that distinguish its calls.
type call struct {
	thread     int
	id         uint64
	start, end time.Duration
	in, out    uint64
}

func (c call) String() string {
	return fmt.Sprintf("call %#x of thread %d from %d to %d (%#x, %#x)", c.id, c.thread, c.start, c.end, c.in, c.out)
}

// checkCalls finds sides of different calls in one event: by their values, and by
// their times, because calls of one thread, including interrupts, begin and end
// like parentheses. It returns how many calls are nested in others, by depth.
func checkCalls(calls []call) (depths []int, err error) {
	threads := map[int][]call{}
	var wrong []error
	for _, c := range calls {
		if c.in != c.out || c.start > c.end {
			wrong = append(wrong, fmt.Errorf("%v has the sides of two calls", c))
		}
		threads[c.thread] = append(threads[c.thread], c)
	}
	for _, calls := range threads {
		wrong = append(wrong, checkNesting(calls, func(depth int) {
			if depth == len(depths) {
				depths = append(depths, 0)
			}
			depths[depth]++
		})...)
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("%d wrong of %d, the first: %w", len(wrong), len(calls), wrong[0])
	}
	return depths, nil
}

// checkNesting finds calls of one thread that end after a call in which they
// began or have the same id as that call. It passes the depth of each call to
// show.
func checkNesting(calls []call, show func(depth int)) (wrong []error) {
	slices.SortFunc(calls, func(a, b call) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	var open []call
	for _, c := range calls {
		open = slices.DeleteFunc(open, func(outer call) bool { return outer.end <= c.start })
		for _, outer := range open {
			if c.end > outer.end {
				wrong = append(wrong, fmt.Errorf("%v ends after %v, in which it began", c, outer))
			}
			if c.id == outer.id {
				wrong = append(wrong, fmt.Errorf("%v has the id of %v", c, outer))
			}
		}
		show(len(open))
		open = append(open, c)
	}
	return wrong
}

// overlap returns the greatest number of calls that were active at once.
func overlap(calls []call) int {
	var steps []time.Duration // the end of a call is negative
	for _, c := range calls {
		steps = append(steps, c.start, -c.end)
	}
	slices.SortFunc(steps, func(a, b time.Duration) int { return cmp.Or(cmp.Compare(a.Abs(), b.Abs()), cmp.Compare(a, b)) })
	now, most := 0, 0
	for _, s := range steps {
		if s >= 0 {
			now++
		} else {
			now--
		}
		most = max(most, now)
	}
	return most
}

func TestCheckCalls(t *testing.T) {
	nested := []call{
		{thread: 1, id: 0x90, start: 3, end: 4, in: 5, out: 5},
		{thread: 1, id: 0xa0, start: 2, end: 6, in: 6, out: 6},
		{thread: 1, id: 0xa0, start: 7, end: 8, in: 6, out: 6},
		{thread: 2, id: 0xb0, start: 1, end: 9, in: 7, out: 7},
	}
	for _, test := range []struct {
		what   string
		change func(c []call)
		want   string
	}{
		{"right", func([]call) {}, ""},
		{"two threads mixed up", func(c []call) { c[1].out, c[3].out = c[3].out, c[1].out }, "has the sides of two calls"},
		{"the return of the call before", func(c []call) { c[2].end = 1 }, "has the sides of two calls"},
		{"inner and outer mixed up", func(c []call) { c[0].end, c[1].end = c[1].end, c[0].end }, "in which it began"},
		{"a return of a later call", func(c []call) { c[0].end = 8 }, "in which it began"},
		{"one frame twice", func(c []call) { c[0].id = 0xa0 }, "has the id of"},
	} {
		calls := slices.Clone(nested)
		test.change(calls)
		depths, err := checkCalls(calls)
		if test.want != "" {
			require.ErrorContains(t, err, test.want, test.what)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, []int{3, 1}, depths)
		require.Equal(t, 3, overlap(calls))
	}
}
