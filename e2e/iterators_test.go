//go:build linux

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// testIterators compares the rows of iterators with what the kernel says elsewhere:
// while other objects come and go, those that stay have one row each.
func testIterators(t *testing.T, k *kernel) {
	t.Run("tasks", func(t *testing.T) { iterTasks(t, k) })
	t.Run("files", func(t *testing.T) { iterFiles(t, k) })
	t.Run("maps", func(t *testing.T) { iterMaps(t, k) })
	t.Run("sockets", func(t *testing.T) { iterSockets(t, k) })
	for name, test := range map[string]func(*testing.T, *kernel){"cgroup": iterCgroups, "ksym": iterSymbols} {
		if k.refused(t, "", "iter:"+name) == nil {
			t.Run(name, func(t *testing.T) { test(t, k) })
		}
	}
}

// numbers reads an iterator to its end and returns how often each number was the
// first value of a row. It checks that every object that matches has a row.
func (k *kernel) numbers(t *testing.T, spec string) map[uint64]int {
	tr := k.trace(t, "", compiler.Options{CountCalls: true, RingBytes: 4096}, spec)
	seen, rows := map[uint64]int{}, uint64(0)
	for ev := new(runtime.Event); ; rows++ {
		err := tr.Read(ev)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.Equal(t, compiler.NoFault, ev.Values[0].Fault)
		seen[ev.Values[0].Uint64()]++
	}
	counts := tr.counters(t)
	require.Equal(t, rows, counts.Matched, spec)
	require.Zero(t, counts.Lost)
	require.NoError(t, tr.Close())
	return seen
}

// requireOnce checks that all of the numbers were seen, and no number twice.
func requireOnce(t *testing.T, seen map[uint64]int, all []uint64) {
	missing := 0
	for _, n := range all {
		if seen[n] == 0 {
			missing++
		}
	}
	require.Zero(t, missing, "of %d objects", len(all))
	for n, times := range seen {
		require.Equal(t, 1, times, "rows of %d", n)
	}
}

// meanwhile calls change again and again until stop is called.
func meanwhile(t *testing.T, change func() error) (stop func()) {
	var end atomic.Bool
	var failed error
	var wg sync.WaitGroup
	wg.Go(func() {
		for !end.Load() && failed == nil {
			failed = change()
		}
	})
	return func() {
		end.Store(true)
		wg.Wait()
		require.NoError(t, failed)
	}
}

// iterTasks compares threads of this process, most of which stay, with their ids.
func iterTasks(t *testing.T, k *kernel) {
	n := rounds(400, 5000)
	var wg sync.WaitGroup
	stay, ids := make(chan struct{}), make(chan uint64)
	for range n {
		wg.Go(func() {
			goruntime.LockOSThread() // the thread ends with the goroutine
			name := [16]byte{'s', 't', 'a', 'y', 's'}
			_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name)), 0, 0, 0) // never fails
			ids <- uint64(unix.Gettid())
			<-stay
		})
	}
	var all []uint64
	for range n {
		all = append(all, <-ids)
	}
	own := fmt.Sprintf(" if task->tgid == %d", os.Getpid())
	stop := meanwhile(t, func() error {
		done := make(chan struct{})
		go func() { goruntime.LockOSThread(); close(done) }()
		<-done
		return nil
	})
	seen := k.numbers(t, "iter:task(task->pid)"+own)
	wide := k.numbers(t, "iter:task(task->pid, task->comm:string, task->real_parent->comm, task->cred)"+own)
	stop()
	requireOnce(t, seen, all)
	requireOnce(t, wide, all)

	tr := k.trace(t, "", compiler.Options{RingBytes: 4096}, `iter:task(task->tgid, count(), min(task->pid), max(task->pid)) if task->comm:string == "stays"`)
	require.ErrorIs(t, tr.Read(new(runtime.Event)), io.EOF)
	rows := tr.tables(t)[0].Rows
	require.Len(t, rows, 1)
	require.Equal(t, uint64(n), rows[0].Calls)
	require.Equal(t, runtime.NewUint(slices.Min(all)), rows[0].Cells[1].Number)
	require.Equal(t, runtime.NewUint(slices.Max(all)), rows[0].Cells[2].Number)
	close(stay)
	wg.Wait()
}

// iterFiles compares open files with their numbers.
func iterFiles(t *testing.T, k *kernel) {
	n := rounds(2000, 20_000)
	var before unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	more := unix.Rlimit{Cur: uint64(n) + 1000, Max: max(before.Max, uint64(n)+1000)}
	require.NoError(t, syscall.Setrlimit(unix.RLIMIT_NOFILE, (*syscall.Rlimit)(&more)))
	defer func() { _ = syscall.Setrlimit(unix.RLIMIT_NOFILE, (*syscall.Rlimit)(&before)) }()
	var all []uint64
	defer func() {
		for _, fd := range all {
			unix.Close(int(fd))
		}
	}()
	for range n {
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
		require.NoError(t, err)
		all = append(all, uint64(fd))
	}
	stop := meanwhile(t, func() error {
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	})
	own := fmt.Sprintf(" if task->tgid == %d", os.Getpid())
	seen := k.numbers(t, "iter:task_file(fd)"+own)
	named := k.numbers(t, "iter:task_file(fd, file:path, task->comm:string)"+own)
	stop()
	requireOnce(t, seen, all)
	requireOnce(t, named, all)
}

// iterMaps compares BPF maps with their ids.
func iterMaps(t *testing.T, k *kernel) {
	spec := &ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1}
	var all []uint64
	for range 100 {
		m, err := ebpf.NewMap(spec)
		require.NoError(t, err)
		defer m.Close()
		info, err := m.Info()
		require.NoError(t, err)
		id, _ := info.ID()
		all = append(all, uint64(id))
	}
	stop := meanwhile(t, func() error {
		m, err := ebpf.NewMap(spec)
		if err != nil {
			return err
		}
		return m.Close()
	})
	seen := k.numbers(t, "iter:bpf_map(map->id)")
	stop()
	requireOnce(t, seen, all)
}

// iterSockets compares ports of sockets.
func iterSockets(t *testing.T, k *kernel) {
	const n = 200
	var tcp, udp []uint64
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		tcp = append(tcp, uint64(l.Addr().(*net.TCPAddr).Port))
		c, err := net.ListenPacket("udp", "127.0.0.1:0")
		require.NoError(t, err)
		defer c.Close()
		udp = append(udp, uint64(c.LocalAddr().(*net.UDPAddr).Port))
	}
	const listening = 10 // TCP_LISTEN
	requireOnce(t, k.numbers(t, fmt.Sprintf("iter:tcp(sk_common->skc_num) if sk_common->skc_state == %d", listening)), tcp)
	requireOnce(t, k.numbers(t, "iter:udp(udp_sk->inet.sk.__sk_common.skc_num)"), udp)
}

// iterCgroups compares cgroups with directories, whose numbers are their ids.
func iterCgroups(t *testing.T, k *kernel) {
	root := t.TempDir()
	require.NoError(t, unix.Mount("none", root, "cgroup2", 0, ""))
	defer func() { _ = unix.Unmount(root, unix.MNT_DETACH) }()
	for i := range 60 {
		dir := filepath.Join(root, "iter"+strconv.Itoa(i%6), strconv.Itoa(i))
		require.NoError(t, os.MkdirAll(dir, 0o755))
		defer func() { os.Remove(dir); os.Remove(filepath.Dir(dir)) }()
	}
	var all []uint64
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			info, err := d.Info()
			if err != nil {
				return err
			}
			all = append(all, info.Sys().(*syscall.Stat_t).Ino)
		}
		return err
	}))
	require.Greater(t, len(all), 60)
	stop := meanwhile(t, func() error {
		dir := filepath.Join(root, "change")
		return errors.Join(os.Mkdir(dir, 0o755), os.Remove(dir))
	})
	seen := k.numbers(t, "iter:cgroup(cgroup->kn->id)")
	stop()
	requireOnce(t, seen, all)
}

// iterSymbols compares the number of symbols with that of lines of kallsyms. The
// last call of this iterator repeats an object.
func iterSymbols(t *testing.T, k *kernel) {
	tr := k.trace(t, "", compiler.Options{RingBytes: 4096}, `iter:ksym(count()) if ksym->module_name:string != "bpf"`, "iter:ksym(meta->seq_num) if ksym->type == 'A'")
	text, err := os.ReadFile("/proc/kallsyms")
	require.NoError(t, err)
	rows := 0
	for ev := new(runtime.Event); ; rows++ {
		err := tr.Read(ev)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
	own := bytes.Count(text, []byte("\t[bpf]\n")) // programs come and go
	require.Equal(t, uint64(bytes.Count(text, []byte("\n"))-own), tr.tables(t)[0].Rows[0].Calls)
	require.Equal(t, bytes.Count(text, []byte(" A ")), rows)
}
