//go:build linux

package e2e

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/codegen"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// endless lists specs that keep values of calls in which threads are killed:
// few values, and more than fits into a thread's slot.
var endless = []string{
	`get_signal($comm == "victim", ksig->sig, return, $duration)`,
	`get_signal($comm == "victim", ksig, $kstack, after(ksig->sig), diff(ksig), return)`,
}

// measuredEnds lists what is measured of such calls: how long they take, and a value
// that needs one kept from entry to return.
var measuredEnds = []measured{
	{`get_signal if $comm == "victim"`, compiler.Durations},
	{`get_signal(after(ksig->sig)) if $comm == "victim"`, compiler.Values},
}

// testEnds checks that a thread that ends inside a call leaves nothing behind,
// and that a later call at the same place of a stack is not taken for its call, but
// shown. With -full it kills 200,000 threads, each inside calls of all tracers at once.
func testEnds(t *testing.T, k *kernel) {
	each := rounds(500, 2000) // threads of one process
	killed := rounds(4*each, 200_000)
	f := k.target().Features
	pairs, chains, sums := map[string]*tracer{}, map[string]*tracer{}, map[string]*tracer{}
	for _, attach := range k.kinds(t) {
		if attach == compiler.Fentry && f.Preemptible {
			continue // refused, see testPairing
		}
		for _, spec := range endless {
			pairs[fmt.Sprintf("%s by %s", spec, attach)] = k.trace(t, attach, compiler.Options{RingBytes: 1 << 16}, spec) // there are few events
		}
		sums[string(attach)] = k.measure(t, resolve.Wishes{Attach: attach}, compiler.Options{}, measuredEnds...)
		if attach == compiler.KprobeMulti && !f.ReturnsUnlimited {
			continue // refused, see testChain
		}
		wishes := resolve.Wishes{Attach: attach, Chain: true}
		chains[string(attach)] = k.measure(t, wishes, compiler.Options{},
			measured{`get_signal($comm == "victim")`, compiler.Calls}, measured{"exit_mm_release", compiler.Calls})
	}
	start := time.Now()
	for range killed / each {
		makeTraffic(t, "killed", "-n", fmt.Sprint(each), "victim")
		makeTraffic(t, "signalled", "-n", "50")
	}
	k.requireForgotten(t)
	requireNoneFreedUnseen(t)
	t.Logf("%d threads killed in %v, %d pairs, %d stacks", killed, time.Since(start).Round(time.Second), len(pairs), len(chains))
	const handled = 50 // calls that return, one after another
	before := map[*tracer]uint64{}
	for _, all := range []map[string]*tracer{pairs, sums} {
		for _, tr := range all {
			before[tr] = tr.missed(t)
		}
	}
	makeTraffic(t, "signalled", "-n", fmt.Sprint(handled), "victim")
	for name, tr := range pairs {
		returned := map[int]bool{}
		tr.events(t, func(ev *runtime.Event) {
			require.Equal(t, uint64(1), number(ev, "return"), "%s: thread %d", name, ev.TID)
			require.False(t, returned[thread(ev)], "%s: thread %d", name, ev.TID)
			returned[thread(ev)] = true
		})
		requireFollowed(t, name, handled, uint64(len(returned)), tr.missed(t)-before[tr])
		require.Equal(t, compiler.Counters{}, tr.counters(t), name)
	}
	for name, tr := range chains {
		c := tr.measured(t)[0].Counters
		require.LessOrEqual(t, c.Matched, uint64(killed))
		matched := uint64(killed)
		if missed := tr.missed(t); missed > 0 { // the kernel follows few calls at once
			t.Logf("a stack by %s: %d missed", name, missed)
			matched = c.Matched
		}
		require.Equal(t, []uint64{matched, 0, 0}, []uint64{c.Matched, c.NoRoom, c.Unpaired}, "a stack by %s", name)
	}
	for name, tr := range sums {
		for i, m := range tr.measured(t) {
			what := fmt.Sprintf("%s by %s", measuredEnds[i].spec, name)
			requireFollowed(t, what, handled, m.Matched, tr.missed(t)-before[tr])
			require.Equal(t, []uint64{0, 0, 0}, []uint64{m.NoRoom, m.Unpaired, m.Unreadable}, what)
			require.Equal(t, m.Matched, m.Samples(), what)
			if measuredEnds[i].what == compiler.Values {
				require.Equal(t, runtime.NewInt(int64(m.Matched)*int64(unix.SIGUSR1)), m.Sum, what)
			}
		}
	}
}

// requireFollowed checks that as many calls are shown as were made, but for those that
// the kernel has missed meanwhile.
func requireFollowed(t *testing.T, what string, made, shown, missed uint64) {
	t.Logf("%s: %d shown, %d missed", what, shown, missed)
	require.LessOrEqual(t, shown, made, what)
	require.GreaterOrEqual(t, shown+missed, made, what)
	require.NotZero(t, shown, what)
}

// testNoRoom checks that calls without room are counted, on every kernel and in
// every kind, and that the other calls are shown.
func testNoRoom(t *testing.T, k *kernel) {
	for _, attach := range k.kinds(t) {
		if attach == compiler.Fentry && k.target().Features.Preemptible {
			continue // refused, see testPairing
		}
		for name, spec := range map[string]string{
			"thread": "vfs_read(count == 1234, file->f_flags, return)",
			"large":  "vfs_read(count == 1234, file->f_path.dentry->d_name.name:string, return)",
		} {
			t.Run(fmt.Sprintf("%s/%s", name, attach), func(t *testing.T) { testNoRoomFor(t, k, attach, spec) })
		}
		t.Run("deep/"+string(attach), func(t *testing.T) { testNoRoomDeep(t, k, attach) })
	}
}

// testNoRoomFor leaves room for the calls of one of three threads, or for one
// of three calls at a time.
func testNoRoomFor(t *testing.T, k *kernel, attach compiler.Kind, spec string) {
	const readers, reads = 3, 200
	unit := k.unit(t, resolve.Wishes{Attach: attach}, compiler.Options{}, spec)
	large := false
	for name, m := range unit.Collection.Maps {
		if strings.HasPrefix(name, "calls") {
			m.MaxEntries, large = 1, true
		}
	}
	unit.Collection.Maps[compiler.EventsMap].MaxEntries = 4 << 20
	require.Equal(t, strings.HasSuffix(t.Name(), "large/"+string(attach)), large)
	if !large {
		unit.Collection.Maps["overflow"].MaxEntries = 1
	}
	session := k.loadUnit(t, unit)
	_, err := session.Attach()
	require.NoError(t, err)
	tr := &tracer{session}

	var pipes [readers][2]int
	for i := range pipes {
		require.NoError(t, unix.Pipe2(pipes[i][:], 0))
		defer unix.Close(pipes[i][0])
		defer unix.Close(pipes[i][1])
	}
	var ended sync.WaitGroup
	ended.Add(readers + 1)
	threads(t, readers+1, func(i int) error {
		defer func() { // the room of a thread that ends goes to others
			ended.Done()
			ended.Wait()
		}()
		b := make([]byte, 1234)
		for range reads {
			for j := range pipes {
				var err error
				if i == readers {
					_, err = unix.Write(pipes[j][1], b)
				} else if i == j {
					_, err = unix.Read(pipes[j][0], b)
				}
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
	shown := map[int]int{}
	tr.events(t, func(ev *runtime.Event) { shown[thread(ev)]++ })
	c, missed, all := tr.counters(t), tr.missed(t), 0
	for _, n := range shown {
		all += n
	}
	require.NotZero(t, all)
	if missed == 0 && !large {
		require.Equal(t, reads, all)
		require.Len(t, shown, 1)
	}
	if missed == 0 {
		require.Equal(t, compiler.Counters{NoRoom: uint64(readers*reads - all)}, c)
	}
	t.Logf("%d of %d calls kept, %d missed", all, readers*reads, missed)
}

// makeTraffic runs the command traffic.
func makeTraffic(t *testing.T, args ...string) {
	out, err := exec.Command("traffic", args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// requireForgotten waits until the kernel has freed the threads that have
// ended, and nothing is kept of their calls.
func (k *kernel) requireForgotten(t *testing.T) {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		kept := k.keptCalls(t)
		if len(kept) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left over: %v", kept)
		}
	}
}

// keptCalls lists what is kept in the maps of all tracers: of calls, and of threads that
// are no more.
func (k *kernel) keptCalls(t *testing.T) (kept []string) {
	owners, inUse, maps := map[uint64]bool{}, 0, 0
	require.NoError(t, eachMap(func(m *ebpf.Map, info *ebpf.MapInfo) error {
		if size, ok := strings.CutPrefix(info.Name, bucketsName); ok && m.Type() == ebpf.Array {
			n, err := bucketsIn(m, size, owners)
			inUse += n
			maps++
			return err
		}
		n, err := keptIn(m, info.Name)
		if n > 0 {
			kept = append(kept, fmt.Sprintf("%d in %s", n, info.Name))
		}
		return err
	}))
	require.NotZero(t, maps)
	for thread := range k.numbers(t, "iter:task(task)") {
		delete(owners, thread)
	}
	if inUse+len(owners) > 0 {
		kept = append(kept, fmt.Sprintf("%d calls in buckets, and buckets of %d threads", inUse, len(owners)))
	}
	return kept
}

// bucketsIn adds the threads that have a bucket, and returns how many buckets have a call
// in their first slot.
func bucketsIn(m *ebpf.Map, size string, owners map[uint64]bool) (inUse int, err error) {
	each, err := strconv.Atoi(size)
	if err != nil {
		return 0, err
	}
	all := make([]byte, m.ValueSize())
	if err := m.Lookup(uint32(0), all); err != nil {
		return 0, err
	}
	for bucket := range slices.Chunk(all, each) {
		if owner := binary.NativeEndian.Uint64(bucket); owner != 0 {
			owners[owner] = true
		}
		if binary.NativeEndian.Uint64(bucket[firstSlot:]) != 0 {
			inUse++
		}
	}
	return inUse, nil
}

// requireNoneFreedUnseen checks that the kernel has skipped no run of the programs that
// forget the calls of freed threads. Such a run is of no probe, and is not reported.
func requireNoneFreedUnseen(t *testing.T) {
	programs := 0
	for id := ebpf.ProgramID(0); ; {
		var err error
		id, err = ebpf.ProgramGetNextID(id)
		if errors.Is(err, os.ErrNotExist) {
			break
		}
		require.NoError(t, err)
		p, err := ebpf.NewProgramFromID(id)
		require.NoError(t, err)
		info, err := p.Info()
		require.NoError(t, err)
		stats, err := p.Stats()
		require.NoError(t, err)
		require.NoError(t, p.Close())
		if info.Type == ebpf.Tracing && info.Name == codegen.FreeTracepoint[:nameLength] {
			programs++
			require.Zero(t, stats.RecursionMisses)
		}
	}
	require.NotZero(t, programs)
}

// nameLength is how many characters of a program's name the kernel keeps.
const nameLength = unix.BPF_OBJ_NAME_LEN - 1
