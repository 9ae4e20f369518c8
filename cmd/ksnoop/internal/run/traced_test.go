package run

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
)

// TestTracedProcess verifies that the end of a process is noticed, even if it has
// ended before.
func TestTracedProcess(t *testing.T) {
	cmd := exec.Command("cat")
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	p := openTraced(cmd.Process.Pid, 0)
	defer p.close()
	ended := make(chan struct{})
	go p.wait(func() { close(ended) })
	select {
	case <-ended:
		t.Fatal("it goes on")
	default:
	}
	var text strings.Builder
	p.report(&text)
	require.Empty(t, text.String())

	require.NoError(t, input.Close())
	<-ended // the process has not been waited for yet
	p.report(&text)
	require.Equal(t, fmt.Sprintf("ksnoop: process %d has ended\n", cmd.Process.Pid), text.String())
	p.wait(func() { text.WriteString("again") })
	require.NoError(t, cmd.Wait())
	require.True(t, strings.HasSuffix(text.String(), "again"))

	require.Nil(t, openTraced(cmd.Process.Pid, 0))
}

// TestTracedFamily verifies that the end of the last descendant is waited for, but not
// after close.
func TestTracedFamily(t *testing.T) {
	cmd := exec.Command("true")
	require.NoError(t, cmd.Start())
	left := []int{2, 1, -1, 0, 1, 0, 0} // -1: it is not known
	p := openTraced(cmd.Process.Pid, 0)
	p.deserted = func() (bool, error) {
		n := left[0]
		if left = left[1:]; n < 0 {
			return true, errors.New("aborted")
		}
		return n == 0, nil
	}
	p.wait(func() { left = append(left, 4) })
	require.Equal(t, []int{4}, left)
	var text strings.Builder
	p.report(&text)
	require.Equal(t, fmt.Sprintf("ksnoop: process %d and its descendants have ended\n", cmd.Process.Pid), text.String())
	p.close()
	p.close()
	require.False(t, p.alone())
	require.Equal(t, []int{4}, left)
	require.NoError(t, cmd.Wait())
}

// TestTracedUnknown verifies that descendants are not waited for without end if the kernel
// does not tell whether they run, and that this is said.
func TestTracedUnknown(t *testing.T) {
	cmd := exec.Command("true")
	require.NoError(t, cmd.Start())
	p := openTraced(cmd.Process.Pid, 0)
	defer p.close()
	p.deserted = func() (bool, error) { return false, errors.New("no memory") }
	ended := false
	p.wait(func() { ended = true })
	require.True(t, ended)
	var text strings.Builder
	p.report(&text)
	require.Equal(t, fmt.Sprintf("ksnoop: process %d has ended, and whether its descendants have is not known: no memory\n", cmd.Process.Pid), text.String())
	require.NoError(t, cmd.Wait())
}

// TestTracedThread verifies that the end of a thread is noticed while its process
// goes on.
func TestTracedThread(t *testing.T) {
	tids, end := make(chan int), make(chan bool)
	onThread(func() {
		tids <- unix.Gettid()
		<-end
	})
	tid := <-tids
	p := openTraced(unix.Getpid(), tid)
	defer p.close()
	ended := make(chan struct{})
	go p.wait(func() { close(ended) })
	select {
	case <-ended:
		t.Fatal("it goes on")
	case <-time.After(3 * glances):
	}
	var text strings.Builder
	p.report(&text)
	require.Empty(t, text.String())

	close(end)
	<-ended
	p.report(&text)
	require.Equal(t, fmt.Sprintf("ksnoop: thread %d has ended\n", tid), text.String())
	require.Nil(t, openTraced(0, tid))
}

// onThread runs f on a thread that ends with it. That is not the first thread of the
// process, which Go keeps until the process ends.
func onThread(f func()) {
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		if unix.Gettid() == unix.Getpid() {
			onThread(f)
			return
		}
		f()
	}()
}

// TestTracedThreadOutlives verifies that ksnoop can end before the thread that it
// waits for.
func TestTracedThreadOutlives(t *testing.T) {
	p := openTraced(0, 1)
	p.close()
	p.wait(func() { t.Error("thread 1 has ended") })
	p.report(io.Discard)
}

// TestZombie verifies that the state of a thread is found behind any name.
func TestZombie(t *testing.T) {
	for stat, want := range map[string]bool{
		"17 (cat) S 1 17 17 0": false, "17 (cat) Z 1 17": true, "17 (a) Z (b) R 1": false, "17 (Z) X 0": true, "": false, "17 (cat)": false,
	} {
		require.Equal(t, want, isZombie([]byte(stat)), stat)
	}
}

// TestTracedProcessOutlives verifies that ksnoop can end before the process that it
// waits for.
func TestTracedProcessOutlives(t *testing.T) {
	p := openTraced(1, 0)
	ended := make(chan bool)
	go func() {
		p.wait(func() { t.Error("process 1 has ended") })
		ended <- true
	}()
	runtime.Gosched()
	p.close()
	<-ended
	p.report(io.Discard)
}

// TestNoTracedProcess verifies that there is no process for 0 and for an unused id.
func TestNoTracedProcess(t *testing.T) {
	for _, pid := range []int{0, target.MaxPID} {
		p := openTraced(pid, 0)
		require.Nil(t, p, pid)
		p.report(io.Discard)
		p.close()
	}
}

// TestCheckProc verifies that a thread is not waited for by a /proc in which ksnoop has another
// number.
func TestCheckProc(t *testing.T) {
	self := t.TempDir() + "/self"
	require.NoError(t, checkProc(self, 7), "another error is about a missing procfs")
	require.NoError(t, checkProc("/proc/self", 7))
	require.NoError(t, os.Symlink("4999", self))
	require.NoError(t, checkProc(self, 0), "no thread is waited for")
	require.EqualError(t, checkProc(self, 7), "wait for the end of thread 7: /proc is that of another pid namespace: mount it (mount -t proc proc /proc)")
}
