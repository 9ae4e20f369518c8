package run

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// traced is the process of --pid or the thread of --tid. Tracing ends with it, and with
// --tree with the last descendant: there will be no more calls, and its id may be reused.
type traced struct {
	what  string // "process" or "thread"
	id    int
	file  *os.File // a pidfd, or the file stat of the thread
	ended atomic.Bool

	deserted func() (bool, error) // reports whether no descendant runs, or nil without --tree
	unknown  error                // why that is not known, once ended is set; or nil
	looking  sync.Mutex           // held by deserted
	closed   bool                 // deserted is not called any more
}

// openTraced opens the process or the thread to wait for, if there is an id of one.
// It returns nil if it does not exist, which the search for it in the kernel will
// report.
func openTraced(pid, tid int) *traced {
	switch {
	case tid != 0: // a thread ends no later than its process
		return openThread(tid)
	case pid != 0:
		return openProcess(pid)
	}
	return nil
}

func openProcess(pid int) *traced {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil
	}
	if err := unix.SetNonblock(fd, true); err != nil { // the poller of package os requires it
		unix.Close(fd)
		return nil
	}
	return &traced{what: "process", id: pid, file: os.NewFile(uintptr(fd), "pidfd")}
}

func openThread(tid int) *traced {
	stat, err := os.Open(fmt.Sprintf("/proc/%d/task/%[1]d/stat", tid))
	if err != nil {
		return nil
	}
	return &traced{what: "thread", id: tid, file: stat}
}

// checkProc returns an error if the end of the thread could not be seen, as its file would
// be that of another one. self is the path of /proc/self, which is missing without procfs.
func checkProc(self string, tid uint32) error {
	if pid, err := os.Readlink(self); tid != 0 && err == nil && pid != strconv.Itoa(os.Getpid()) {
		return fmt.Errorf("wait for the end of thread %d: /proc is that of another pid namespace: mount it (mount -t proc proc /proc)", tid)
	}
	return nil
}

// wait waits until the thread or all threads of the process have ended, then
// calls done. A process that executes another program continues, whichever thread
// does it.
func (t *traced) wait(done func()) {
	gone := t.processGone
	if t.what == "thread" {
		gone = t.threadGone
	}
	if gone() && t.alone() {
		t.ended.Store(true)
		done()
	}
}

// processGone waits until the process has ended. It returns false if the file is
// closed before.
func (t *traced) processGone() bool {
	conn, err := t.file.SyscallConn()
	if err != nil {
		return false // closed already
	}
	return conn.Read(func(fd uintptr) bool {
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return err == nil && ready > 0
	}) == nil
}

// alone waits until no descendant runs. It returns false if t is closed before. As
// processes may start while the kernel looks for them, it must find none twice in a row.
// It waits no longer if the kernel did not tell at mostFailed looks in a row.
func (t *traced) alone() bool {
	if t.deserted == nil {
		return true
	}
	for none, failed := 0, 0; none < 2 && failed < mostFailed; time.Sleep(glances) {
		deserted, err := t.look()
		if errors.Is(err, os.ErrClosed) {
			return false
		}
		if t.unknown = err; err != nil {
			none, failed = 0, failed+1
			continue
		}
		failed, none = 0, none+1
		if !deserted {
			none = 0
		}
	}
	return true
}

// mostFailed is the number of looks for descendants that may fail in a row.
const mostFailed = 10

// look reports whether no descendant runs. The error is os.ErrClosed if t is closed.
func (t *traced) look() (deserted bool, err error) {
	t.looking.Lock()
	defer t.looking.Unlock()
	if t.closed {
		return false, os.ErrClosed
	}
	return t.deserted()
}

// glances is the time between two looks at a thread or a tree. A pidfd of a thread could
// be waited for, but Linux 6.9 is the first with one.
const glances = 100 * time.Millisecond

// threadGone waits until the thread has ended. It returns false if the file is
// closed before. The first thread of a process becomes a zombie while others go on.
// One of these takes its id when it executes a program, so that a thread is a zombie
// for a moment and then continues: it must be one at two looks in a row.
func (t *traced) threadGone() bool {
	var stat [64]byte
	zombie := false
	for {
		n, err := t.file.ReadAt(stat[:], 0)
		if errors.Is(err, os.ErrClosed) {
			return false
		}
		if err != nil && err != io.EOF {
			return true
		}
		was := zombie
		zombie = isZombie(stat[:n])
		if was && zombie {
			return true
		}
		time.Sleep(glances)
	}
}

// isZombie reports whether the beginning of a file stat is that of a thread that has
// ended. Its name, in parentheses, has any characters.
func isZombie(stat []byte) bool {
	state := bytes.TrimLeft(stat[bytes.LastIndexByte(stat, ')')+1:], " ")
	return len(state) > 0 && bytes.IndexByte([]byte("ZX"), state[0]) >= 0
}

// report prints that the process or the thread has ended, if that ended tracing.
func (t *traced) report(stderr io.Writer) {
	switch {
	case t == nil || !t.ended.Load():
	case t.what == "thread":
		fmt.Fprintf(stderr, "ksnoop: thread %d has ended\n", t.id)
	case t.unknown != nil:
		fmt.Fprintf(stderr, "ksnoop: process %d has ended, and whether its descendants have is not known: %v\n", t.id, t.unknown)
	case t.deserted != nil:
		fmt.Fprintf(stderr, "ksnoop: process %d and its descendants have ended\n", t.id)
	default:
		fmt.Fprintf(stderr, "ksnoop: process %d has ended\n", t.id)
	}
}

// close ends the wait. It may be called again.
func (t *traced) close() {
	if t != nil {
		t.looking.Lock()
		t.closed = true
		t.looking.Unlock()
		t.file.Close()
	}
}
