//go:build linux

package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/codegen"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/e2e/vm"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime"
)

// TestWatchCPUs watches memory on several CPUs.
func TestWatchCPUs(t *testing.T) {
	onlyWithFull(t)
	t.Parallel()
	testOne(t, vm.Machine{CPUs: 2}, "^TestGuest$/^watching$")
}

// testWatch checks that every write to watched memory is shown.
func testWatch(t *testing.T, k *kernel) {
	if len(k.target().Symbols.Lookup("panic_timeout")) == 0 {
		t.Skip("the kernel lists no variables among its symbols")
	}
	t.Run("writes", func(t *testing.T) { testWatchWrites(t, k) })
	t.Run("full", func(t *testing.T) { testWatchFull(t, k) })
	t.Run("unseen", func(t *testing.T) { testWatchUnseen(t, k) })
	t.Run("object", func(t *testing.T) { testWatchObject(t, k) })
	t.Run("gone", func(t *testing.T) { testWatchGone(t, k) })
	t.Run("lost", func(t *testing.T) { testWatchLost(t, k) })
	t.Run("fifth", func(t *testing.T) { testWatchFifth(t, k) })
	if goruntime.NumCPU() > 1 {
		t.Run("online", func(t *testing.T) { testWatchOnline(t, k) })
	}
}

// watch watches memory until the test ends. It returns the error of attaching.
func (k *kernel) watch(t *testing.T, texts ...string) (*tracer, error) {
	return k.watchObjects(t, 1, ringBytes, texts...)
}

// watchObjects watches the members of up to the given number of objects that calls
// find, with a ring buffer of the given size in bytes.
func (k *kernel) watchObjects(t *testing.T, objects int, ring uint32, texts ...string) (*tracer, error) {
	var traces []*spec.Trace
	for _, text := range texts {
		trace, err := spec.ParseWatch(text)
		require.NoError(t, err)
		traces = append(traces, trace)
	}
	return k.watchTraces(t, objects, ring, traces...)
}

func (k *kernel) watchTraces(t *testing.T, objects int, ring uint32, traces ...*spec.Trace) (*tracer, error) {
	plan, err := resolve.All(traces, k.target(), resolve.Wishes{Objects: objects})
	require.NoError(t, err)
	compile := func() (*compiler.Unit, error) {
		return codegen.Compile(plan.Probes, compiler.Options{CountCalls: true, RingBytes: ring})
	}
	unit, err := compile()
	require.NoError(t, err)
	session, err := runtime.Load(unit, k.Kernel)
	require.NoError(t, err, "%+v", refusal(err))
	t.Cleanup(func() { session.Close() })
	session.Recompile = compile
	_, err = session.Attach()
	return &tracer{session}, err
}

// panicTimeout is the file of the variable panic_timeout.
const panicTimeout = "/proc/sys/kernel/panic"

// keepPanicTimeout restores the variable when the test ends.
func keepPanicTimeout(t *testing.T) {
	before, err := os.ReadFile(panicTimeout)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.WriteFile(panicTimeout, before, 0)) })
}

// callersOnCPUs returns a thread on each CPU.
func callersOnCPUs(t *testing.T) (callers []*caller) {
	var allowed unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &allowed))
	for cpu := range allowed.Count() {
		c := newCaller(t)
		c.do(func() {
			var one unix.CPUSet
			one.Set(cpu)
			if err := unix.SchedSetaffinity(0, &one); err != nil {
				t.Error(err)
			}
		})
		callers = append(callers, c)
	}
	return callers
}

// testWatchWrites writes to a variable by threads on each CPU in turn, while timer
// interrupts write to another one: every write is shown, by the right thread on the right
// CPU and with the values before and after, or counted. The ring buffer has no record for
// a write while another CPU takes one, which lasts long where the machine's CPUs run in
// turn.
func testWatchWrites(t *testing.T, k *kernel) {
	writes := rounds(1000, 10_000)
	keepPanicTimeout(t)
	require.NoError(t, os.WriteFile(panicTimeout, []byte("-1"), 0))
	callers := callersOnCPUs(t)
	cpus := len(callers)
	f, err := os.OpenFile(panicTimeout, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer f.Close()
	tr, err := k.watch(t, "(int)@panic_timeout", "(u64)@jiffies_64")
	require.NoError(t, err)
	symbols, err := k.Kernel.Symbols()
	require.NoError(t, err)
	for i := range writes {
		callers[i%cpus].do(func() {
			if _, err := unix.Pwrite(int(f.Fd()), fmt.Append(nil, i), 0); err != nil {
				t.Error(err)
			}
		})
	}
	w0 := tr.Unit().Watched()[0].Watch
	i := 0
	var ticks, skipped uint64
	tr.events(t, func(ev *runtime.Event) {
		w := ev.Probe.Watch
		place := placeOf(t, symbols, ev)
		if w.Slot == 1 {
			old, now := valueOf(ev, w.Old), valueOf(ev, w.New)
			if ticks != 0 {
				require.GreaterOrEqual(t, old, ticks)
				if old > ticks {
					skipped++ // at least one write: a late one adds several ticks
				}
			}
			if w.New != nil {
				require.Greater(t, now, old)
				ticks = now
			}
			return
		}
		write := int(int32(valueOf(ev, w.Old))) + 1
		require.GreaterOrEqual(t, write, i)
		skipped += uint64(write - i)
		i = write
		caller := callers[i%cpus]
		if w.New != nil {
			require.Equal(t, uint64(i), valueOf(ev, w.New), "write %d", i)
		}
		require.Equal(t, caller.tid, ev.TID, "write %d", i)
		require.Equal(t, i%cpus, ev.CPU, "write %d", i)
		require.Contains(t, place, "_conv")
		i++
	})
	require.LessOrEqual(t, i, writes)
	skipped += uint64(writes - i)
	require.NotEqual(t, w0.New != nil, ticks == 0)
	missed, err := tr.Missed()
	require.NoError(t, err)
	counted := tr.counters(t).Lost
	require.Less(t, counted, uint64(writes/20))
	for _, m := range missed { // a tick can interrupt bpf(2), or the program
		require.True(t, m.N == 0 || m.Probes[0].Watch.Slot == 1)
		counted += m.N
	}
	require.LessOrEqual(t, skipped, counted)
}

// valueOf returns the value of an item.
func valueOf(ev *runtime.Event, v *compiler.Value) uint64 {
	for i := range ev.Values {
		if ev.Values[i].Value == v {
			return ev.Values[i].Uint64()
		}
	}
	return 0
}

// placeOf returns the function that has written.
func placeOf(t *testing.T, symbols *kallsyms.Table, ev *runtime.Event) string {
	s, _, ok := symbols.At(valueOf(ev, ev.Probe.Watch.At) - 1)
	require.True(t, ok)
	return s.Name
}

// testWatchFull checks that a fifth breakpoint is refused, as each CPU has four, and
// that nothing is left of it.
func testWatchFull(t *testing.T, k *kernel) {
	addr := k.target().Symbols.Lookup("panic_timeout")[0].Addr
	four := strings.Fields(strings.Repeat(fmt.Sprintf("*(int*)%#x ", addr), 4))
	one, err := k.watch(t, four[0])
	require.NoError(t, err)
	tr, err := k.watch(t, four...)
	require.ErrorContains(t, err, "attach breakpoint to *(int *)")
	require.ErrorContains(t, err, "all hardware breakpoints are in use (error 28)")
	require.NoError(t, tr.Close())
	require.NoError(t, one.Close())
	tr, err = k.watch(t, four...)
	require.NoError(t, err)
	require.NoError(t, tr.Close())
}

// testWatchUnseen checks that writes are reported although the breakpoint does not see
// them, as they go through another mapping, or no program runs for them, as bpf(2)
// makes them.
func testWatchUnseen(t *testing.T, k *kernel) {
	if k.target().Arch.BreaksBefore {
		t.Skip("what follows a write is not known")
	}
	const value = 0 // offset of the watched word in the map, and of its address
	const addr = 8
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 16, MaxEntries: 1, Flags: unix.BPF_F_MMAPABLE})
	require.NoError(t, err)
	defer m.Close()
	tell, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.RawTracepoint, License: "GPL", Instructions: asm.Instructions{
		asm.LoadMapValue(asm.R1, m.FD(), 0),
		asm.StoreMem(asm.R1, addr, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, 0),
		asm.Return(),
	}})
	require.NoError(t, err)
	defer tell.Close()
	_, err = tell.Run(&ebpf.RunOptions{})
	require.NoError(t, err)
	mapped, err := unix.Mmap(m.FD(), 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	defer unix.Munmap(mapped)
	tr, err := k.watch(t, fmt.Sprintf("*(long *)%#x", binary.LittleEndian.Uint64(mapped[addr:])))
	require.NoError(t, err)
	requireUnseen := func(before, now int64) {
		all, err := tr.Unseen()
		require.NoError(t, err)
		require.Len(t, all, 1)
		require.Equal(t, before, all[0].Before.Int64())
		require.Equal(t, now, all[0].Now.Int64())
		all, err = tr.Unseen()
		require.NoError(t, err)
		require.Empty(t, all)
	}
	mapped[value] = 5
	requireUnseen(0, 5)
	require.Zero(t, tr.missed(t))
	require.NoError(t, m.Put(uint32(0), bytes.Repeat([]byte{0xff}, 16)))
	requireUnseen(5, -1)
	require.NotZero(t, tr.missed(t))
	tr.events(t, func(*runtime.Event) { t.Error("no program runs for such writes") })
}

// newReceiver opens a socket, and returns it with its address.
func newReceiver(t *testing.T) (fd int, at unix.Sockaddr) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
	require.NoError(t, err)
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	at, err = unix.Getsockname(fd)
	require.NoError(t, err)
	return fd, at
}

// receiveNothing makes a call that finds the socket.
func receiveNothing(t *testing.T, fd int) {
	_, _, err := unix.Recvfrom(fd, make([]byte, 1), 0)
	require.ErrorIs(t, err, unix.EAGAIN)
}

// bufferOf returns the spec for a watch on the number of bytes that wait in a socket to
// be received.
func bufferOf() string {
	return fmt.Sprintf("udp_recvmsg(sk->sk_backlog.rmem_alloc.counter) if $pid == %d", os.Getpid())
}

// testWatchObject watches a member of a socket that a call finds: software interrupts on
// each CPU in turn add to it when datagrams arrive, and the process subtracts from it
// when it reads them, until the socket is freed.
func testWatchObject(t *testing.T, k *kernel) {
	datagrams := rounds(500, 5000)
	fd, to := newReceiver(t)
	other, _ := newReceiver(t)
	defer unix.Close(other)
	trace, err := spec.ParseWatch(bufferOf())
	require.NoError(t, err)
	trace.WithStack()
	tr, err := k.watchTraces(t, 1, ringBytes, trace)
	require.NoError(t, err)
	receiveNothing(t, fd)
	receiveNothing(t, fd) // finds the same socket
	receiveNothing(t, other)
	var ev runtime.Event
	require.NoError(t, tr.Read(&ev))
	require.NotNil(t, ev.Probe.Find)
	member := ev.Probe.Find.Members[0]
	require.Zero(t, valueOf(&ev, member.Now))
	addr := valueOf(&ev, member.Addr)
	changed, err := tr.WatchObject(&ev)
	require.NoError(t, err)
	require.Empty(t, changed)
	buf, callers := make([]byte, 100), callersOnCPUs(t)
	for i := range datagrams {
		callers[i%len(callers)].do(func() {
			if err := unix.Sendto(fd, buf, 0, to); err != nil {
				t.Error(err)
			}
		})
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		_, err := unix.Poll(ready, 10_000)
		require.NoError(t, err)
		_, _, err = unix.Recvfrom(fd, buf, 0)
		require.NoError(t, err)
	}
	require.Empty(t, unseen(t, tr))
	require.True(t, tr.Watching())
	require.NoError(t, unix.Close(fd))
	symbols, err := k.Kernel.Symbols()
	require.NoError(t, err)
	writes, added, last := 0, 0, uint64(0)
	writers := map[string]bool{} // whether they add
	stop := time.AfterFunc(time.Minute, func() { _ = tr.Stop() })
	defer stop.Stop()
	for {
		require.NoError(t, tr.Read(&ev), "the socket has not ended")
		w := ev.Probe.Watch
		if w == nil {
			break
		}
		writes++
		require.Equal(t, addr, ev.Call)
		place := placeOf(t, symbols, &ev)
		if w.New == nil {
			writers[place] = true
			continue
		}
		require.Equal(t, last, valueOf(&ev, w.Old))
		adds := valueOf(&ev, w.New) > last
		last = valueOf(&ev, w.New)
		require.Equal(t, adds, inSoftirq(symbols, &ev), "datagrams come in softirqs, and processes read them")
		if before, known := writers[place]; known {
			require.Equal(t, before, adds, place)
		}
		writers[place] = adds
		if adds {
			require.Equal(t, added%len(callers), ev.CPU, "datagram %d", added)
			added++
		}
	}
	require.True(t, ev.Probe.Follow.Ending())
	require.NoError(t, tr.EndObject(&ev))
	require.Len(t, ev.Ended, 1)
	require.Equal(t, addr, ev.Ended[0].Addr)
	require.Zero(t, last)
	if !k.target().Arch.BreaksBefore {
		require.Equal(t, datagrams, added)
	}
	require.False(t, tr.Watching())
	if !k.target().Arch.BreaksBefore {
		require.Zero(t, ev.Ended[0].Last.Uint64())
	}
	tr.events(t, func(*runtime.Event) { t.Error("nothing is watched") })
	require.GreaterOrEqual(t, writes, 2*datagrams)
	require.GreaterOrEqual(t, len(writers), 2, "%v", writers)
	require.Zero(t, tr.counters(t).Lost)
}

// inSoftirq reports whether a softirq of the network has written, and not the process that
// the softirq has interrupted.
func inSoftirq(symbols *kallsyms.Table, ev *runtime.Event) bool {
	for data := value(ev, "$kstack").Data; len(data) > 0; data = data[8:] {
		if s, _, _ := symbols.At(binary.LittleEndian.Uint64(data)); s.Name == "net_rx_action" {
			return true
		}
	}
	return false
}

// testWatchGone frees sockets before user space knows of them, so that later ones have
// their addresses: each is found and ends, and none of them is watched.
func testWatchGone(t *testing.T, k *kernel) {
	const objects = 4
	tr, err := k.watchObjects(t, objects, ringBytes, bufferOf())
	require.NoError(t, err)
	stop := time.AfterFunc(time.Minute, func() { _ = tr.Stop() })
	defer stop.Stop()
	for i := range objects {
		fd, _ := newReceiver(t)
		receiveNothing(t, fd)
		require.NoError(t, unix.Close(fd))
		require.Eventually(t, func() bool {
			begun, live, err := tr.Objects()
			return err == nil && begun == i+1 && len(live) == 0
		}, time.Minute, time.Millisecond)
	}
	var ev runtime.Event
	watched := map[uint64]bool{}
	for found, ended := 0, 0; ended < objects; {
		require.NoError(t, tr.Read(&ev), "%d were found, %d have ended", found, ended)
		require.Nil(t, ev.Probe.Watch)
		if ev.Probe.Find != nil {
			found++
			require.Equal(t, uint64(found), ev.Object.Number)
			watched[ev.Object.Addr] = true
			changed, err := tr.WatchObject(&ev)
			require.NoError(t, err)
			require.Empty(t, changed)
			continue
		}
		ended++
		require.NoError(t, tr.EndObject(&ev))
		require.Len(t, ev.Ended, 1)
		require.Zero(t, ev.Ended[0].Last.Uint64())
	}
	require.False(t, tr.Watching())
	if goruntime.NumCPU() == 1 {
		require.Less(t, len(watched), objects, "no address was used twice")
	}
}

// testWatchFifth checks that there is no breakpoint for the fourth object if another
// session has one of the four.
func testWatchFifth(t *testing.T, k *kernel) {
	_, err := k.watch(t, "(int)@panic_timeout")
	require.NoError(t, err)
	tr, err := k.watchObjects(t, 4, ringBytes, bufferOf())
	require.NoError(t, err)
	for i := range 4 {
		fd, _ := newReceiver(t)
		defer unix.Close(fd)
		receiveNothing(t, fd)
		var ev runtime.Event
		require.NoError(t, tr.Read(&ev))
		require.NotNil(t, ev.Probe.Find)
		_, err := tr.WatchObject(&ev)
		if i < 3 {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "attach breakpoint to sk->sk_backlog.rmem_alloc.counter: all hardware breakpoints are in use (error 28)")
	}
	require.True(t, tr.Watching())
}

// testWatchLost frees a socket while the ring buffer is full, so that no record tells its
// end.
func testWatchLost(t *testing.T, k *kernel) {
	fd, to := newReceiver(t)
	tr, err := k.watchObjects(t, 1, uint32(os.Getpagesize()), bufferOf())
	require.NoError(t, err)
	receiveNothing(t, fd)
	var ev runtime.Event
	require.NoError(t, tr.Read(&ev))
	addr := valueOf(&ev, ev.Probe.Find.Members[0].Addr)
	_, err = tr.WatchObject(&ev)
	require.NoError(t, err)
	for tr.counters(t).Lost == 0 {
		require.NoError(t, unix.Sendto(fd, make([]byte, 100), 0, to))
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		_, err := unix.Poll(ready, 10_000)
		require.NoError(t, err)
		_, _, err = unix.Recvfrom(fd, make([]byte, 100), 0)
		require.NoError(t, err)
	}
	require.False(t, tr.Gone())
	require.NoError(t, unix.Close(fd))
	require.Eventually(t, func() bool {
		_, live, err := tr.Objects()
		return err == nil && len(live) == 0
	}, time.Minute, time.Millisecond)
	require.False(t, tr.Gone(), "its record may be on the way")
	require.True(t, tr.Gone())
	require.NoError(t, tr.Wake())
	for err = tr.Read(&ev); err == nil; err = tr.Read(&ev) {
		require.NotNil(t, ev.Probe.Watch, "the record of the end was not lost")
	}
	require.ErrorIs(t, err, runtime.ErrWoken)
	require.True(t, tr.Watching())
	ended, err := tr.EndGone()
	require.NoError(t, err)
	require.Len(t, ended, 1)
	require.Equal(t, addr, ended[0].Addr)
	require.False(t, tr.Watching())
	require.False(t, tr.Gone())
}

// unseen returns the changes that no breakpoint has seen.
func unseen(t *testing.T, tr *tracer) []runtime.Unseen {
	all, err := tr.Unseen()
	require.NoError(t, err)
	return all
}
