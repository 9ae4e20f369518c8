//go:build linux

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/e2e/guest"
	"github.com/ksnoop/ksnoop/e2e/vm"
	"github.com/ksnoop/ksnoop/runtime"
)

// TestStartCosts counts the instructions that ksnoop takes to start, its memory,
// and how often it wakes when there is nothing to do, in machines in which a
// nanosecond is an instruction. Elsewhere wake-ups say how fast the machine is:
// for as long as some goroutine runs, Go's runtime looks at it every 20 us. The bounds
// are of certain releases, so it runs with -full.
func TestStartCosts(t *testing.T) {
	if !*full && !named() {
		t.Skip("runs with -full")
	}
	for _, line := range []string{"6.1", oneKernel} {
		t.Run(line, func(t *testing.T) {
			testOn(t, line, vm.Machine{Icount: true}, "^TestGuestStartCosts$")
		})
	}
}

// A start is a command line that traces until it is interrupted.
type start struct {
	what  string
	specs []string
	// The instructions from exec until all is attached, at most, in millions: on
	// 6.12, and on 6.1, where the symbol table must be read and one link has one
	// function.
	most, most61 float64
}

// What ksnoop may do in idleTime when there is nothing to do.
const (
	mostWakeups = 50
	mostWork    = 10e6 // instructions
)

// mostMemory is the bound of the resident memory of a trace of one function.
const mostMemory = 16 << 10 // KB

// Most of what 25 functions take is the kernel's, where their programs differ:
// each program has a link, which takes ftrace 22 million instructions.
var starts = []start{
	{"1 function", []string{"vfs_read"}, 110, 170},
	{"25 functions at entry", many(" ($pid)"), 160, 400},
	{"25 functions, entry and return", many(""), 800, 750},
	{"a line", []string{"p:opens do_sys_openat2 name=$arg2:ustring"}, 850, 600},
	{"a glob", []string{"vfs_rea*"}, 1050, 850},
}

// many is specs for 25 functions.
func many(list string) []string {
	functions := strings.Fields(`vfs_read vfs_write vfs_open vfs_fsync vfs_fsync_range vfs_getattr vfs_llseek vfs_mkdir
		vfs_rmdir vfs_unlink vfs_link vfs_symlink vfs_rename vfs_create vfs_mknod vfs_readlink vfs_truncate vfs_fallocate
		vfs_iter_read vfs_iter_write vfs_setxattr vfs_getxattr vfs_removexattr vfs_listxattr vfs_get_link`)
	for i := range functions {
		functions[i] += list
	}
	return functions
}

// TestGuestStartCosts runs in the machines that TestStartCosts boots.
func TestGuestStartCosts(t *testing.T) {
	if !guest.Inside() {
		t.Skip("runs inside a virtual machine, see TestStartCosts")
	}
	release, err := runtime.Release()
	require.NoError(t, err)
	for i, s := range starts {
		s.run(t) // once for what the kernel does the first time
		millions, elapsed, memory := s.run(t)
		t.Logf("%s: %.0f million instructions from exec until attached, %.0f with what is waited for; %d KB", s.what, millions, elapsed, memory)
		most := s.most
		if strings.HasPrefix(release, "6.1.") {
			most = s.most61
		}
		if millions > most {
			t.Errorf("%s: more than %.0f million", s.what, most)
		}
		if i == 0 && memory > mostMemory {
			t.Errorf("%s: more than %d KB", s.what, mostMemory)
		}
	}
	testIdle(t)
}

func testIdle(t *testing.T) {
	s := ours(&rejectedCases[0]).start(t)
	woken, worked := s.idle(t)
	t.Logf("idle: woken %.0f times in %v, %.0f instructions", woken, idleTime, worked)
	if woken > mostWakeups || worked > mostWork {
		t.Errorf("idle: more than %d times, or more than %.0f instructions", mostWakeups, mostWork)
	}
}

// run starts ksnoop, and is how many millions of instructions it has taken when
// all is attached, how many have gone by, and how much memory it had.
func (s *start) run(t *testing.T) (taken, elapsed float64, memory int) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	cmd := exec.Command("/bin/ksnoop", append([]string{"trace", "--ready-fd", "3"}, s.specs...)...)
	cmd.ExtraFiles = []*os.File{w}
	var errs strings.Builder
	cmd.Stderr = &errs
	before := instructions()
	require.NoError(t, cmd.Start())
	w.Close()
	_, err = bufio.NewReader(r).ReadString('\n')
	after := instructions()
	require.NoError(t, err, errs.String())
	taken = float64(executed(t, cmd.Process.Pid)) / 1e6
	memory, err = strconv.Atoi(status(t, cmd.Process.Pid, "VmHWM:"))
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(unix.SIGINT))
	require.NoError(t, cmd.Wait())
	return taken, float64(after-before) / 1e6, memory
}

// executed is the time that the threads of a process have run, in nanoseconds.
func executed(t *testing.T, pid int) (sum int64) {
	names, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	require.NoError(t, err)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		n, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		require.NoError(t, err)
		sum += n
	}
	return sum
}

// status is a value in a process's status.
func status(t *testing.T, pid int, key string) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), key)
	return strings.Fields(rest)[0]
}
