//go:build linux

package e2e

import (
	"os"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime"
)

// A badPointer is an address that poll hands to do_sys_poll as it is, before
// anybody looks whether there is a pollfd.
type badPointer struct {
	what string
	addr uintptr
}

// badPointers lists what is no memory of the kernel.
func badPointers() []badPointer {
	var pollfd unix.PollFd
	return []badPointer{
		{"NULL", 0},
		{"the NULL page", 0x10},
		{"user memory", uintptr(unsafe.Pointer(&pollfd))},
		{"user space without memory", 0x1234_5678_9000},
		{"the last byte of user space", 0x7fff_ffff_ffff},
		{"no canonical address", 0x8000_0000_0000_0000},
		{"the poison of lists", 0xdead_0000_0000_0100},
		{"kernel space without memory", 0xffff_8000_0000_0000},
		{"the guard hole", 0xffff_87ff_ffff_f000},
		{"the page of vsyscalls", 0xffff_ffff_ff60_0000},
		{"-ENOENT", ^uintptr(unix.ENOENT) + 1},
		{"-1", ^uintptr(0)},
	}
}

// holdForZero lists predicates that would be true of a member that reads as 0,
// as memory does that a program could not read.
var holdForZero = []string{
	"do_sys_poll(ufds->fd == 0)",
	"do_sys_poll(ufds->fd != 1)",
	"do_sys_poll(ufds->fd >= 0)",
	"do_sys_poll(ufds->fd <= 0)",
	"do_sys_poll(ufds->events > -1)",
	"do_sys_poll(ufds->revents < 1)",
	keptForZero,
}

// keptForZero reads at entry, for the event at return.
const keptForZero = "do_sys_poll(ufds->events != 1, return != 1)"

// testUnreadable: a value that cannot be read makes no predicate true, whatever
// is in place of it; and the verifier accepts every way of asking.
func testUnreadable(t *testing.T, k *kernel) {
	for _, attach := range k.kinds(t) {
		t.Run("pointers/"+string(attach), func(t *testing.T) { testBadPointers(t, k, attach) })
		t.Run("results/"+string(attach), func(t *testing.T) { testBadResults(t, k, attach) })
	}
}

func testBadPointers(t *testing.T, k *kernel, attach compiler.Kind) {
	bad, good := badPointers(), kernelMemory(t)
	caller := newCaller(t)
	specs := k.joinable(t, attach, keptForZero, holdForZero)
	tr := k.trace(t, attach, compiler.Options{TID: caller.tid}, specs...)
	caller.do(func() {
		for _, p := range bad {
			poll(p.addr)
		}
		poll(good) // the control
	})
	requireOneEach(t, tr, specs)
	require.Equal(t, len(bad)*len(specs), int(tr.counters(t).Unreadable))
}

// poll calls do_sys_poll with any address, for one pollfd, without waiting.
func poll(addr uintptr) {
	unix.RawSyscall(unix.SYS_POLL, addr, 1, 0)
}

// kernelMemory is the address of 8 zero bytes in the kernel: the control that
// the predicates can be true.
func kernelMemory(t *testing.T) uintptr {
	f, err := os.Open("/proc/kallsyms")
	require.NoError(t, err)
	defer f.Close()
	table, err := kallsyms.Read(f, func(name string) bool { return name == "empty_zero_page" })
	require.NoError(t, err)
	found := table.Lookup("empty_zero_page")
	require.Len(t, found, 1)
	return uintptr(found[0].Addr)
}

// missing lists predicates on what the function that opens files and
// do_sys_poll get in calls that have no such object: -ENOENT instead of a file,
// NULL instead of a time. The second one keeps a value from entry to return.
func missing(open string) (specs []string, kept string) {
	kept = open + "(pathname->name != 0, return->f_flags < 0x12345678)"
	return []string{
		open + "(return->f_flags != 0x12345678)",
		open + "(return->f_inode->i_mode != 0x1234)",
		kept,
		"do_sys_poll(end_time->tv_sec >= 0)",
		"do_sys_poll(end_time->tv_nsec == 0)",
	}, kept
}

// opener is the function that opens files: do_file_open since 7.1.
func opener(t *testing.T, k *kernel) string {
	if k.refused(t, "", "do_filp_open") == nil {
		return "do_filp_open"
	}
	return "do_file_open"
}

// joinable leaves out the spec that joins entry and return where the attach
// kind cannot do so.
func (k *kernel) joinable(t *testing.T, attach compiler.Kind, kept string, specs []string) []string {
	if attach == compiler.Fentry && k.target().Features.Preemptible {
		return slices.DeleteFunc(slices.Clone(specs), func(s string) bool { return s == kept })
	}
	return specs
}

func testBadResults(t *testing.T, k *kernel, attach compiler.Kind) {
	zero, err := unix.Open("/dev/zero", unix.O_RDONLY, 0)
	require.NoError(t, err)
	defer unix.Close(zero)
	caller := newCaller(t)
	specs, kept := missing(opener(t, k))
	specs = k.joinable(t, attach, kept, specs)
	tr := k.trace(t, attach, compiler.Options{TID: caller.tid}, specs...)
	const n = 10
	caller.do(func() {
		for range n {
			openAndPoll("/missing", zero, -1)
		}
		openAndPoll("/dev/zero", zero, 0) // the control
	})
	requireOneEach(t, tr, specs)
	require.Equal(t, n*len(specs), int(tr.counters(t).Unreadable))
}

// openAndPoll calls do_filp_open, and do_sys_poll on a file that is ready; that
// gets no time to wait for if the timeout is -1, which means without a limit.
func openAndPoll(path string, ready, timeout int) {
	if fd, err := unix.Open(path, unix.O_RDONLY, 0); err == nil {
		unix.Close(fd)
	}
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(ready), Events: unix.POLLIN}}, timeout)
}

// requireOneEach: every spec has one event, that of the control.
func requireOneEach(t *testing.T, tr *tracer, specs []string) {
	events := map[string]int{}
	tr.events(t, func(ev *runtime.Event) { events[ev.Probe.Trace.Text]++ })
	want := map[string]int{}
	for _, text := range specs {
		want[text] = 1
	}
	require.Equal(t, want, events)
}
