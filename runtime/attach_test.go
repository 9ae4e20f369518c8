package runtime

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

func TestAttachError(t *testing.T) {
	const none = "attach fexit to open: the kernel allows no probe there (error %d): it is marked notrace, or its code is not one plain function"
	probe := newUnit().Events[0].Probe
	for err, want := range map[error]string{
		unix.EBUSY:                                  fmt.Sprintf(none, 16),
		fmt.Errorf("multi: %w", os.ErrNotExist):     fmt.Sprintf(none, 3),
		fmt.Errorf("raw: %w", ebpf.ErrNotSupported): fmt.Sprintf(none, 524),
		fmt.Errorf("perf: %w", unix.EACCES):         "attach fexit to open: the kernel does not permit it (error 13): kprobes need CAP_PERFMON with kernel.perf_event_paranoid at most 2, or CAP_SYS_ADMIN",
		fmt.Errorf("raw: %w", unix.E2BIG):           "attach fexit to open: other programs have taken all the room for fentry and fexit there, which is for 38",
		unix.ENOMEM:                                 "attach fexit to open: cannot allocate memory",
	} {
		require.EqualError(t, &AttachError{probe, compiler.Fexit, err}, want)
	}
	inside := *probe
	inside.Offset = 6
	require.EqualError(t, &AttachError{&inside, compiler.Kprobe, errors.New("no instruction begins at +6")},
		"attach kprobe to open+6: no instruction begins at +6")
}

func TestBadPlaces(t *testing.T) {
	for _, tc := range []struct {
		name  string
		n     int
		bad   []int
		tries int // at most
	}{
		{"one place", 1, []int{0}, 0},
		{"two, both bad", 2, []int{0, 1}, 2},
		{"the first of many", 1000, []int{0}, 20},
		{"the last of many", 1000, []int{999}, 10},
		{"some", 100, []int{3, 50, 51, 99}, 60},
		{"too many", 1000, evens(1000), maxTries + 10},
	} {
		tries := 0
		try := func(places []compiler.Place) error {
			tries++
			for _, p := range places {
				if slices.Contains(tc.bad, int(p.Cookie)) {
					return os.ErrNotExist
				}
			}
			return nil
		}
		places := make([]compiler.Place, tc.n)
		for i := range places {
			places[i].Cookie = uint64(i)
		}
		var bad []int
		for _, b := range badPlaces(places, os.ErrNotExist, try) {
			if b.err != errTooManyBad || slices.Contains(tc.bad, int(b.Cookie)) {
				bad = append(bad, int(b.Cookie))
			}
		}
		require.Equal(t, tc.bad, bad, tc.name)
		require.LessOrEqual(t, tries, tc.tries, tc.name)
	}
}

func evens(n int) []int {
	var all []int
	for i := 0; i < n; i += 2 {
		all = append(all, i)
	}
	return all
}

// TestBadPlacesOther verifies that an error that is not about a place needs no
// search.
func TestBadPlacesOther(t *testing.T) {
	bad := badPlaces(make([]compiler.Place, 8), unix.EPERM, func([]compiler.Place) error {
		t.Error("tried")
		return nil
	})
	require.Len(t, bad, 8)
	require.Equal(t, unix.EPERM, bad[7].err)
}

func TestByTarget(t *testing.T) {
	both := byTarget(compiler.Attachment{Program: "p", Places: []compiler.Place{{Symbol: "a"}, {Addr: 1}, {Symbol: "b"}}})
	require.Equal(t, []compiler.Attachment{
		{Program: "p", Places: []compiler.Place{{Symbol: "a"}, {Symbol: "b"}}},
		{Program: "p", Places: []compiler.Place{{Addr: 1}}},
	}, both)
}
