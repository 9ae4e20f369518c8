//go:build linux

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// holding lists conditions that are true of the one call of vfs_read that the
// test makes: of 4321 bytes from language.data on a tmpfs, into a buffer that
// begins with "hello".
var holding = []string{
	`vfs_read(count) if file->f_path.dentry->d_name.name == "language.data"`,
	`vfs_read(file->f_path.dentry->d_name.name:string == "language.data")`,
	`vfs_read(file->f_path.dentry->d_name.name ~ "lang*.d?t[a-c]")`,
	`vfs_read(count) if !(file->f_path.dentry->d_name.name ~ "*.txt")`,
	`vfs_read(count) if file->f_path.dentry->d_name.name != "language.dat" && file->f_path.dentry->d_name.name != "language.data2"`,
	`vfs_read(return) if file->f_inode->i_sb->s_type->name == "tmpfs"`,
	`vfs_read(file->f_path.dentry->d_name.len == 13)`,
	`vfs_read((*file).f_mode & 1)`,
	`vfs_read(file->f_flags & O_LARGEFILE) if !(file->f_flags & O_DIRECT)`,
	`vfs_read(count) if !(file->f_inode is-err) && !(file is-err)`,
	`vfs_read(file->f_inode->i_mode & 0x8000, return)`,
	`vfs_read((u8)count == 0xe1, (s8)count < 0, count:x16 == 0x10e1)`,
	`vfs_read(((struct inode *)file->f_inode)->i_size == 5000)`,
	`vfs_read(*pos == 0, pos[0] < 1)`,
	`vfs_read(buf:ustring == "hello")`,
	`vfs_read(count) if buf:ustring ~ "h*o"`,
	`vfs_read($pid, $tid == TID, $cpu < 64, $uid == 0, $cgroup > 0, $comm == "COMM")`,
	`vfs_read($arg3 == 4321, $retval == 4321, $duration > 0ns)`,
	`vfs_read($duration < 60s, file->f_path.dentry->d_name.name:string, return)`,
	`vfs_read(count, $kstack) if return == 4321`,
	`vfs_read($ustack, file:path, $kstack) if return == 4321`,
	`vfs_read(return) if count == 1 || file->f_inode->i_size == 5000`,
	`vfs_read(count) if file->f_inode->i_size == 1 || return > 4000`,
	`vfs_read(count) if (count == 1 || count == 4321) && !(return < 0 || return == 1)`,
	`vfs_read(count) if file && !(count & 2) && file->f_inode->i_nlink`,
	`vfs_read(return != -EAGAIN, return >= 0)`,
	`vfs_read(after(*pos) == 4321, *pos == 0, file->f_flags) if after(*pos) == *pos + return`,
	`vfs_read(after(file->f_inode->i_size) == 5000, after($comm) == "COMM")`,
	`vfs_read(count) if after(file->f_path.dentry->d_name.name) == "language.data" && !(after(*pos) < count)`,
	`vfs_read(diff(*pos), return == 4321)`,
	`vfs_read(count == 4321, diff(pos)) if !diff(file->f_flags)`,
	`vfs_read(count) if diff(pos) && !(diff(file->f_inode->i_size) || diff(file->f_path.dentry->d_name.len))`,
	jiffies,
	`vfs_read($kstack, file, buf:x, pos) if count == 4321`,
}

// jiffies uses variables, which only kernels with CONFIG_KALLSYMS_ALL list.
const jiffies = `vfs_read(@jiffies != 0, (u32)@jiffies_64 != 0, count)`

// failing lists conditions that are false of this call.
var failing = []string{
	`vfs_read(count) if file->f_path.dentry->d_name.name == "language.dat"`,
	`vfs_read(file->f_path.dentry->d_name.name ~ "lang*.d?t[!a-c]")`,
	`vfs_read(count) if !(file->f_path.dentry->d_name.name ~ "*data")`,
	`vfs_read(buf:ustring == "hell")`,
	`vfs_read(buf:string == "hello")`, // the buffer is in user memory
	`vfs_read((s8)count > 0)`,
	`vfs_read(count & 2)`,
	`vfs_read(file->f_flags & O_DIRECT)`,
	`vfs_read(count) if file->f_inode is-err || file is-err`,
	`vfs_read($duration > 60s)`,
	`vfs_read(count) if !(count == 4321 || return == 1)`,
	`vfs_read(count) if file->f_inode->i_size == 1 || return < 0`,
	`vfs_read(return == -EAGAIN)`,
	`vfs_read(diff(file->f_flags), count)`,
	`vfs_read(count) if !diff(pos) || diff(file->f_inode->i_size)`,
	`vfs_read(count) if after(*pos) == *pos || after(file->f_inode->i_size) == 1`,
}

// testLanguage checks that conditions of every kind are true or false as
// expected on a real kernel, and that its verifier accepts them all.
func testLanguage(t *testing.T, k *kernel) {
	path := filepath.Join(t.TempDir(), "language.data")
	require.NoError(t, os.WriteFile(path, make([]byte, 5000), 0o644))
	for turn, attach := range k.twoKinds(t) {
		t.Run(string(attach), func(t *testing.T) { testConditions(t, k, attach, path, turn) })
	}
	t.Run("duplicates", func(t *testing.T) { testDuplicates(t, k) })
	t.Run("tracepoint", func(t *testing.T) { testTracepoint(t, k) })
}

// testConditions tests the conditions by one attach kind: all with -full, and else every
// other one. The next kind has the others.
func testConditions(t *testing.T, k *kernel, attach compiler.Kind, path string, turn int) {
	left := func(i int) bool { return !*full && (i+turn)%2 == 1 }
	caller := newCaller(t)
	comm, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/comm", caller.tid))
	require.NoError(t, err)
	words := strings.NewReplacer("TID", fmt.Sprint(caller.tid), "COMM", strings.TrimSpace(string(comm)))
	want := map[string]int{}
	var specs []string
	for i, s := range holding {
		if left(i) {
			continue
		}
		if s == jiffies && !hasVariables(t) {
			require.ErrorContains(t, k.refused(t, attach, s), "there is no variable 'jiffies'")
			continue
		}
		s = words.Replace(s)
		if !k.accepts(t, attach, s) {
			continue
		}
		want[s] = 1
		specs = append(specs, s)
	}
	for i, s := range failing {
		if !left(i) && k.accepts(t, attach, s) {
			specs = append(specs, s)
		}
	}
	specs = k.verified(t, attach, specs, want)
	fd, err := unix.Open(path, unix.O_RDONLY, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	events := map[string]int{}
	for some := range slices.Chunk(specs, atOnce) {
		buf := make([]byte, 4321)
		copy(buf, "hello\x00")
		tr := k.trace(t, attach, compiler.Options{TID: caller.tid}, some...)
		caller.do(func() { // from the beginning of the file each time
			unix.RawSyscall(unix.SYS_LSEEK, uintptr(fd), 0, 0)
			unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)))
		})
		tr.events(t, func(ev *runtime.Event) { events[ev.Probe.Trace.Text]++ })
		require.NoError(t, tr.Close())
	}
	require.Equal(t, want, events)
}

// atOnce is a number of specs for one function that every attach kind can
// trace at once.
const atOnce = 8

// testDuplicates checks that all functions with one name and one prototype are
// traced, and none where BTF does not guarantee the prototype.
func testDuplicates(t *testing.T, k *kernel) {
	target := k.target()
	places := map[string]int{}
	for s := range target.Symbols.Functions() {
		if s.Module == "" {
			places[s.Name]++
		}
	}
	described, several := 0, 0 // names of several functions that are in BTF, and that can be traced
	for _, name := range slices.Sorted(maps.Keys(places)) {
		trace, err := spec.Parse(name)
		if _, missing := target.Kernel.AnyTypesByName(name); places[name] < 2 || err != nil || missing != nil {
			continue
		}
		described++
		plan, err := resolve.All([]*spec.Trace{trace}, target, resolve.Wishes{})
		if err != nil {
			require.Regexp(t, "BTF describes only one of them|times in the kernel, and nothing tells which is which|has no type in BTF", err.Error())
			continue
		}
		if len(plan.Probes[0].Func.Addrs) != places[name] || !target.Features.ConsistentBTF {
			require.True(t, target.Features.ConsistentBTF || plan.Probes[0].Func.Copies > 1, name)
			continue
		}
		several++
		unit, err := compile(plan.Probes...)
		require.NoError(t, err)
		session, err := runtime.Load(unit, k.Kernel)
		require.NoError(t, err)
		n, err := session.Attach()
		require.NoError(t, session.Close())
		if err == nil { // none of them is marked notrace
			t.Logf("%s is %d functions", name, places[name])
			require.Equal(t, 1, n)
			return
		}
	}
	if described == 0 { // of 400 names, on 7.2
		require.Equal(t, "arm64", goruntime.GOARCH)
		return
	}
	if target.Features.ConsistentBTF {
		require.Positive(t, several)
		require.LessOrEqual(t, several, 20, "no name of several functions can be traced") // 7.2 has three such names
	}
}

// verified checks that the verifier accepts all specs, and returns those to
// attach, so that the test stays short: detaching takes a tenth of a second for
// each program of a kind that has one place only, and verification takes time
// as well. It returns all specs for kprobe.session, and a different quarter for
// each of the other kinds. It deletes the others from want.
func (k *kernel) verified(t *testing.T, attach compiler.Kind, specs []string, want map[string]int) []string {
	if attach == compiler.KprobeSession {
		return specs
	}
	// The programs of kprobe.session are those of the other kinds except fentry.
	if attach == compiler.Fentry || !slices.Contains(k.kinds(t), compiler.KprobeSession) {
		for some := range slices.Chunk(specs, atOnce) {
			plan := k.resolve(t, attach, some...)
			require.NoError(t, k.load(plan.Probes...))
		}
	}
	quarter := slices.Index(resolve.ForcedKinds(), attach) % 4
	var some []string
	for i, s := range specs {
		if i%4 == quarter {
			some = append(some, s)
		} else {
			delete(want, s)
		}
	}
	return some
}

// testTracepoint checks that a tracepoint shows its arguments by name.
func testTracepoint(t *testing.T, k *kernel) {
	caller := newCaller(t)
	text := fmt.Sprintf("tp:sched_switch(prev->pid == %d, $comm)", caller.tid)
	tr := k.trace(t, "", compiler.Options{}, text, "tp:sched_switch(prev->pid == -5)")
	caller.do(func() {
		ts := unix.Timespec{Nsec: 1e6} // longer than it takes to go to sleep
		for range 10 {
			unix.Nanosleep(&ts, nil)
		}
	})
	n := 0
	tr.events(t, func(ev *runtime.Event) {
		require.Equal(t, text, ev.Probe.Trace.Text)
		require.Equal(t, uint64(caller.tid), number(ev, "prev->pid"))
		n++
	})
	require.GreaterOrEqual(t, n, 10)
}
