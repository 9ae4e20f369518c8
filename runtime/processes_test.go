package runtime

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestFamily(t *testing.T) {
	tasks := []Task{
		{TID: 1, PID: 1, Number: 1},
		{TID: 40, PID: 40, Parent: 30, Number: 4}, // before its parent
		{TID: 10, PID: 10, Parent: 1, Number: 2},
		{TID: 11, PID: 10, Parent: 1, Number: 9},
		{TID: 30, PID: 30, Parent: 10, Number: 3},
		{TID: 31, PID: 31, Parent: 1, Number: 5},
	}
	pids := func(found []Task) (pids []uint32) {
		for _, t := range found {
			pids = append(pids, t.PID)
		}
		return pids
	}
	require.Equal(t, []uint32{10, 30, 40}, pids(family(tasks, 10, nil)))
	require.Equal(t, []uint32{40}, pids(family(tasks, 10, map[uint32]bool{10: true, 30: true})))
	require.Equal(t, []uint32{31}, pids(family(tasks, 31, nil)))
	require.Empty(t, family(tasks, 11, nil))

	found, ok := findTask(tasks, 4)
	require.True(t, ok)
	require.Equal(t, uint32(40), found.PID)
	_, ok = findTask(tasks, 40)
	require.False(t, ok)
}

// TestRuns verifies that a process that has ended does not run, even if its parent has not
// waited for it.
func TestRuns(t *testing.T) {
	require.True(t, runs(uint32(os.Getpid())))
	child := exec.Command("cat")
	input, err := child.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	pid := uint32(child.Process.Pid)
	require.True(t, runs(pid))
	require.NoError(t, input.Close())
	require.Eventually(t, func() bool { return !runs(pid) }, 10*time.Second, time.Millisecond)
	require.NoError(t, child.Wait())
	require.False(t, runs(pid))
}

// TestRunsElsewhere verifies the same in a pid namespace that is not that of /proc.
func TestRunsElsewhere(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestRuns$")
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) {
		t.Skipf("this system lets nobody make a user namespace: %v", err)
	}
	require.NoError(t, err, "%s", out)
}

// TestSelfError verifies that a missing procfs is named, which package ebpf looks into
// before it makes a map.
func TestSelfError(t *testing.T) {
	const what = "ask the kernel for the process id of ksnoop: "
	_, err := os.Open(t.TempDir() + "/mountinfo")
	require.EqualError(t, selfError(fmt.Errorf("creating map: %w", err)), what+"procfs is not mounted: mount it (mount -t proc proc /proc)")
	require.EqualError(t, selfError(unix.ENOMEM), what+"cannot allocate memory")
}
