//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/runtime"
)

const countedCalls = 6000 // of each thread

// countedFunctions lists the functions that the threads of the test call, with
// the items and conditions that a spec of them is drawn from.
var countedFunctions = []struct {
	function   string
	items      []string
	conditions []string
}{
	{
		"vfs_read", []string{"count", "file->f_mode", "file->f_inode->i_ino", "return", "$comm", "$duration"},
		[]string{"count > 64", "count == 1", "return >= 0", "return < 0", "return == 64", "file->f_mode != 0"},
	},
	{"ksys_read", []string{"count", "fd", "return"}, []string{"count > 64", "return == 64", "fd != 1"}},
	{"rw_verify_area", []string{"return", "count"}, []string{"count > 1", "return >= 0"}},
	{"null_lseek", []string{"offset", "file->f_mode", "return"}, []string{"offset > 1", "return == 2", "file->f_mode != 0"}},
	{getpgid, []string{"regs->" + firstArgument, "return"}, []string{"regs->" + firstArgument + " == 0", "return > 0"}},
	{"do_sys_openat2", []string{"dfd", "filename:ustring", "return"}, []string{"return >= 0", "dfd < 0"}},
	{"tp:sys_exit", []string{"ret", "$tid"}, []string{"ret > 1", "ret < 0"}},
}

// nested lists those of them that call each other, the outermost first.
var nested = []int{1, 0, 2}

// testAccounting traces by random lists of specs while threads make more calls
// than a ring buffer of one page has room for. It checks that every match on each
// side of each probe was delivered, lost or left unread.
func testAccounting(t *testing.T, k *kernel) {
	for seed := range uint64(rounds(4, 20)) {
		t.Run(fmt.Sprintf("list %d", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			w, specs := k.draw(t, rnd, resolve.Wishes{}, drawList)
			checkCounts(t, k, rnd, w, specs)
		})
		t.Run(fmt.Sprintf("chain %d", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 2))
			w, specs := k.draw(t, rnd, resolve.Wishes{Chain: true}, drawChain)
			checkCounts(t, k, rnd, w, specs)
		})
	}
}

// draw draws specs and an attach kind until ksnoop refuses none of the specs.
func (k *kernel) draw(t *testing.T, rnd *rand.Rand, w resolve.Wishes, specs func(*rand.Rand) []string) (resolve.Wishes, []string) {
	kinds := append([]compiler.Kind{""}, k.kinds(t)...)
	for range 100 {
		w.Attach = kinds[rnd.IntN(len(kinds))]
		list := specs(rnd)
		_, err := k.tryResolve(t, w, list...)
		if err == nil {
			return w, list
		}
		t.Logf("by %s: %v", w.Attach, err)
	}
	require.Fail(t, "everything is refused")
	return w, nil
}

func drawList(rnd *rand.Rand) (specs []string) {
	for range 1 + rnd.IntN(4) {
		specs = append(specs, drawSpec(rnd, rnd.IntN(len(countedFunctions))))
	}
	return specs
}

// drawChain draws a spec for each of the nested functions, or leaves one out.
func drawChain(rnd *rand.Rand) (specs []string) {
	without := rnd.IntN(2 * len(nested))
	for i, function := range nested {
		if i != without {
			specs = append(specs, drawSpec(rnd, function))
		}
	}
	return specs
}

// drawSpec draws a spec of one of countedFunctions.
func drawSpec(rnd *rand.Rand, function int) string {
	a := countedFunctions[function]
	var list []string
	for _, item := range a.items {
		if rnd.IntN(3) == 0 {
			list = append(list, item)
		}
	}
	var conditions []string
	for _, c := range a.conditions {
		switch rnd.IntN(10) {
		case 0:
			list = append(list, c)
		case 1:
			conditions = append(conditions, c)
		}
	}
	rnd.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	text := a.function + "(" + strings.Join(list, ", ") + ")"
	if len(conditions) > 0 {
		text += " if " + strings.Join(conditions, []string{" || ", " && "}[rnd.IntN(2)])
	}
	return text
}

// checkCounts traces calls, reads some of the events while they come, and compares
// the counts.
func checkCounts(t *testing.T, k *kernel, rnd *rand.Rand, w resolve.Wishes, specs []string) {
	tr := k.traceAs(t, w, compiler.Options{CountCalls: true, RingBytes: 4096, MaxBytes: 256}, specs...)
	read := tr.readSome(t, rnd.IntN(2000))
	seed := rnd.Uint64()
	threads(t, 3, func(i int) error { return someCalls(rand.New(rand.NewPCG(seed, uint64(i)))) })
	require.NoError(t, tr.Stop())
	delivered := <-read
	require.NoError(t, tr.Discard())
	counts, err := tr.EventCounts()
	require.NoError(t, err)
	t.Logf("by %s: %s; %d missed", w.Attach, strings.Join(specs, "; "), tr.missed(t))
	sum := runtime.Counts{}
	for i, n := range counts {
		t.Logf("%s %d: delivered %d, unread %d, %+v", n.Probe.Func.Name, n.Kind, n.Delivered, n.Unread, n.Counters)
		require.Equal(t, n.Matched, n.Delivered+n.Lost+n.Unread, "event %d", i)
		require.Equal(t, delivered[i], n.Delivered, "event %d", i)
		sum.Matched += n.Matched
		sum.Lost += n.Lost
	}
	if sum.Matched > 10_000 {
		require.NotZero(t, sum.Lost, "the ring buffer is to be too small")
	}
}

// readSome reads the given number of events, or all if there are fewer, and then
// sends how many it has read of each event type.
func (tr *tracer) readSome(t *testing.T, most int) <-chan map[int]uint64 {
	read := make(chan map[int]uint64, 1)
	go func() {
		delivered := map[int]uint64{}
		defer func() { read <- delivered }()
		ev := new(runtime.Event)
		for range most {
			switch err := tr.Read(ev); {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				t.Error(err)
				return
			}
			delivered[ev.Number]++
		}
	}()
	return read
}

// someCalls calls countedFunctions in random order.
func someCalls(rnd *rand.Rand) error {
	var fds []int
	for _, name := range []string{"/dev/zero", "/dev/null"} {
		fd, err := unix.Open(name, unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		fds = append(fds, fd)
	}
	buf := make([]byte, 4321)
	for range countedCalls {
		var err error
		switch rnd.IntN(8) {
		case 0:
			_, err = unix.Open("/nosuchfile", unix.O_RDONLY, 0)
			if err == unix.ENOENT {
				err = nil
			}
		case 1:
			callKernel(getpgid, 1)
		case 2, 3:
			_, err = unix.Seek(fds[1], int64(rnd.IntN(4)), unix.SEEK_SET)
		default:
			_, err = unix.Read(fds[rnd.IntN(2)], buf[:[]int{1, 64, 4321}[rnd.IntN(3)]])
		}
		if err != nil {
			return err
		}
	}
	return nil
}
