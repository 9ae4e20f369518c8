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

// A badPointer is an address that poll passes to do_sys_poll unchanged, before
// the kernel checks that it points to a pollfd.
type badPointer struct {
	what string
	addr uintptr
}

// userMemory is the memory of the process that calls of poll get. The kernel
// writes revents there. So it is not a variable of a function, whose place on the
// stack belongs to others later.
var userMemory unix.PollFd

// badPointers lists addresses that are not kernel memory.
func badPointers() []badPointer {
	user := uintptr(unsafe.Pointer(&userMemory))
	return append(archPointers(user), []badPointer{
		{"NULL", 0},
		{"the NULL page", 0x10},
		{"user memory", user},
		{"user space without memory", 0x1234_5678_9000},
		{"the last byte of user space", 0x7fff_ffff_ffff},
		{"no canonical address", 0x8000_0000_0000_0000},
		{"the poison of lists", 0xdead_0000_0000_0100},
		{"kernel space without memory", 0xffff_8000_0000_0000},
		{"the guard hole", 0xffff_87ff_ffff_f000},
		{"-ENOENT", ^uintptr(unix.ENOENT) + 1},
		{"-1", ^uintptr(0)},
	}...)
}

// holdForZero lists predicates that would be true of a member that reads as 0,
// as unreadable memory does.
var holdForZero = []string{
	"do_sys_poll(ufds->fd == 0)",
	"do_sys_poll(ufds->fd != 1)",
	"do_sys_poll(ufds->fd >= 0)",
	"do_sys_poll(ufds->fd <= 0)",
	"do_sys_poll(ufds->events > -1)",
	"do_sys_poll(ufds->revents < 1)",
	keptForZero,
}

// keptForZero reads a value at entry, for the event at return.
const keptForZero = "do_sys_poll(ufds->events != 1, return != 1)"

// testUnreadable checks that no predicate is true of a value that cannot be
// read, whatever its memory holds, and that the verifier accepts all
// predicates.
func testUnreadable(t *testing.T, k *kernel) {
	for _, attach := range k.twoKinds(t) {
		t.Run("pointers/"+string(attach), func(t *testing.T) { testBadPointers(t, k, attach) })
		t.Run("results/"+string(attach), func(t *testing.T) { testBadResults(t, k, attach) })
	}
}

func testBadPointers(t *testing.T, k *kernel, attach compiler.Kind) {
	bad, controls := badPointers(), 0
	var good uintptr
	if hasVariables(t) {
		good, controls = kernelMemory(t), 1
	}
	caller := newCaller(t)
	specs := k.joinable(t, attach, keptForZero, holdForZero)
	tr := k.trace(t, attach, compiler.Options{TID: caller.tid}, specs...)
	caller.do(func() {
		for _, p := range bad {
			poll(p.addr)
		}
		if controls > 0 {
			poll(good)
		}
	})
	requireEach(t, tr, specs, controls)
	require.Equal(t, len(bad)*len(specs), int(tr.counters(t).Unreadable))
}

// poll calls do_sys_poll with any address, for one pollfd, without waiting.
func poll(addr uintptr) {
	var now unix.Timespec
	unix.RawSyscall6(unix.SYS_PPOLL, addr, 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
}

// kernelMemory returns the address of 8 zero bytes in the kernel. A call with it is
// the control, which shows that the predicates can be true.
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

// missing lists predicates on what do_sys_poll and the function that opens
// files get in calls that lack an object: -ENOENT instead of a file, NULL
// instead of a time. kept is the predicate that keeps a value from entry to
// return.
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

// opener returns the function that opens files: do_file_open since 7.1,
// do_filp_open before.
func opener(t *testing.T, k *kernel) string {
	if k.refused(t, "", "do_filp_open") == nil {
		return "do_filp_open"
	}
	return "do_file_open"
}

// joinable removes the spec that joins entry and return if the attach kind
// cannot do that.
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
	requireEach(t, tr, specs, 1)
	require.Equal(t, n*len(specs), int(tr.counters(t).Unreadable))
}

// openAndPoll opens a file, and calls do_sys_poll on one that is ready. A timeout
// of -1 means no limit, and do_sys_poll then gets NULL instead of a
// time.
func openAndPoll(path string, ready, timeout int) {
	if fd, err := unix.Open(path, unix.O_RDONLY, 0); err == nil {
		unix.Close(fd)
	}
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(ready), Events: unix.POLLIN}}, timeout)
}

// requireEach checks that every spec has n events, those of the control.
func requireEach(t *testing.T, tr *tracer, specs []string, n int) {
	events := map[string]int{}
	tr.events(t, func(ev *runtime.Event) { events[ev.Probe.Trace.Text]++ })
	want := map[string]int{}
	for _, text := range specs {
		if n > 0 {
			want[text] = n
		}
	}
	require.Equal(t, want, events)
}
