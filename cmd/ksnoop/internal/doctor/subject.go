package doctor

import (
	"encoding/binary"
	"fmt"
	goruntime "runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/runtime"
)

// subject is a thread that makes known calls and no others: the calls of ksnoop's
// other threads meanwhile are not traced with it.
type subject struct {
	tid     uint32
	calls   chan func() error
	errs    chan error
	outcome []int // what the calls of open returned
}

// Arguments of the calls. A thread's name has room for 15 characters.
const (
	nameBefore = "ksnoop before"
	nameAfter  = "ksnoop after"
	openFlags  = unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NOFOLLOW
)

// seenFlags are openFlags as do_sys_openat2 gets them: the kernel adds
// O_LARGEFILE for 64-bit processes, which is 0 in user space
// (include/uapi/asm-generic/fcntl.h, arch/arm64/include/uapi/asm/fcntl.h).
var seenFlags = openFlags | map[string]int{"amd64": 0o100000, "arm64": 0o400000}[goruntime.GOARCH]

// openPaths are a path that exists and one that does not.
var openPaths = []string{"/proc/version", "/proc/ksnoop/self-test"}

// newSubject starts a subject.
func newSubject() (*subject, error) {
	s := &subject{calls: make(chan func() error), errs: make(chan error)}
	go func() {
		goruntime.LockOSThread() // never unlocked: the thread ends with its new name
		for call := range s.calls {
			s.errs <- call()
		}
	}()
	err := s.do(func() (err error) {
		if s.tid, err = runtime.SelfThread(); err != nil {
			return err
		}
		return rename(nameBefore)
	})
	if err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

// do runs a function in the thread.
func (s *subject) do(call func() error) error {
	s.calls <- call
	return <-s.errs
}

func (s *subject) end() { close(s.calls) }

// act makes the calls.
func (s *subject) act() error {
	return s.do(func() error {
		for _, path := range openPaths {
			s.outcome = append(s.outcome, open(path))
		}
		return rename(nameAfter)
	})
}

// open calls openat once and returns the kernel's result.
func open(path string) int {
	name := append([]byte(path), 0)
	cwd := unix.AT_FDCWD
	fd, _, errno := unix.Syscall6(unix.SYS_OPENAT, uintptr(cwd), uintptr(unsafe.Pointer(&name[0])), openFlags, 0, 0, 0)
	if errno != 0 {
		return -int(errno)
	}
	unix.Close(int(fd))
	return int(fd)
}

func rename(name string) error {
	text := append([]byte(name), 0)
	if err := unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&text[0])), 0, 0, 0); err != nil {
		return fmt.Errorf("rename a thread: %w", err)
	}
	return nil
}

// opens returns the values that the entries of do_sys_openat2 must show.
func (s *subject) opens() (all [][]string) {
	how := make([]byte, 24) // struct open_how: flags, mode, resolve
	binary.NativeEndian.PutUint64(how, uint64(seenFlags))
	for _, path := range openPaths {
		all = append(all, []string{strconv.Itoa(unix.AT_FDCWD), quoted(path), strconv.Itoa(seenFlags), fmt.Sprintf("%x", how)})
	}
	return all
}

// results returns the values that the returns of do_sys_openat2 must show.
func (s *subject) results() (all [][]string) {
	for _, n := range s.outcome {
		all = append(all, []string{strconv.Itoa(n)})
	}
	return all
}

// wholeCalls returns the values that events of both sides must show, and shortCalls
// those without memory.
func (s *subject) wholeCalls() [][]string {
	all := s.opens()
	for i := range all {
		all[i][3] = strconv.Itoa(s.outcome[i])
	}
	return all
}

func (s *subject) shortCalls() [][]string {
	all := s.results()
	for i := range all {
		all[i] = append([]string{strconv.Itoa(unix.AT_FDCWD)}, all[i]...)
	}
	return all
}

// renames returns the values that a change of the thread's name must show.
func (s *subject) renames() [][]string {
	old := make([]byte, 16) // TASK_COMM_LEN
	copy(old, nameBefore)
	return [][]string{{strconv.Itoa(int(s.tid)), fmt.Sprintf("%x", old), quoted(nameAfter)}}
}

func quoted(text string) string { return string(btfdump.AppendString(nil, []byte(text))) }
