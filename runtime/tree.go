package runtime

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

// attachCompanions attaches the programs that follow processes and the ends of threads.
func (s *Session) attachCompanions() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over() {
		return ErrStopped
	}
	for _, c := range s.unit.Companions {
		l, err := link.AttachTracing(link.TracingOptions{Program: s.coll.Programs[c.Program]})
		if err != nil {
			return fmt.Errorf("attach to tracepoint %s, which following processes and calls takes: %w", c.Tracepoint, err)
		}
		s.companions = append(s.companions, l)
	}
	return nil
}

// followFamily adds a process and its descendants, which are there already. It repeats until it finds no new
// process, because processes may start meanwhile; a process in the tree adds its
// children itself.
func (s *Session) followFamily(root uint32) error {
	known := map[uint32]bool{}
	for {
		tasks, err := s.kernel.Tasks()
		if err != nil {
			return err
		}
		found := family(tasks, root, known)
		if len(found) == 0 && !known[root] {
			return errors.New("the process to follow has ended")
		}
		for _, t := range found {
			known[t.PID] = true
			if err := s.insert(t.PID, t.Signal); err != nil {
				return err
			}
		}
		if len(found) == 0 {
			return nil
		}
	}
}

func (s *Session) insert(pid uint32, signal uint64) error {
	err := s.coll.Maps[compiler.TreeMap].Update(pid, signal, ebpf.UpdateAny)
	if errors.Is(err, unix.E2BIG) {
		return fmt.Errorf("follow processes: there are more than %d of them", compiler.TreeRoom)
	}
	if err != nil {
		return fmt.Errorf("follow process %d: %w", pid, err)
	}
	return nil
}

// FollowChildren adds to the tree the processes that start starts, from the fork on.
// It needs a unit with a tree; without one it just calls start.
func (s *Session) FollowChildren(start func() error) error {
	tree := s.unit.Tree
	if tree == nil {
		return start()
	}
	// Package os once starts a process of its own, to try what the kernel can do.
	// This makes it do so now.
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		defer self.Release()
	}
	if err := s.counters.store(compiler.ControlStarter, uint64(tree.Self)); err != nil {
		return err
	}
	return errors.Join(start(), s.counters.store(compiler.ControlStarter, 0))
}

// Deserted reports whether no process of the tree runs but the one at its root. Those
// that have ended stay in the tree until their parents have waited for them, which the
// first process of a container may never do. It needs a unit with a tree.
func (s *Session) Deserted() (bool, error) {
	if s.unit.Tree == nil {
		return false, errors.New("the unit was compiled without Options.Tree")
	}
	left := map[uint32]bool{}
	var last *uint32
	for {
		pid, ok, err := s.nextInTree(last)
		if err != nil {
			return false, err
		}
		if !ok {
			break
		}
		left[pid], last = true, &pid
	}
	if delete(left, s.unit.Tree.Root); len(left) == 0 {
		return true, nil
	}
	tasks, err := s.kernel.Tasks()
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(tasks, func(t Task) bool { return left[t.PID] && runs(t.Number) }), nil
}

// runs reports whether a process has not ended, even if its parent has not waited for it.
// /proc is not asked, as it may be that of another pid namespace. It returns false for a
// thread that is not the first one of its process.
func runs(number uint32) bool {
	fd, err := unix.PidfdOpen(int(number), 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return err != nil || ready == 0
}

// nextInTree returns the process in the tree that follows another one, or the first one,
// and whether there is one. The iterator of package ebpf would add 12 KB to the binary.
func (s *Session) nextInTree(last *uint32) (pid uint32, ok bool, err error) {
	attr := struct {
		fd   uint32
		_    uint32
		key  *uint32
		next *uint32
	}{fd: uint32(s.coll.Maps[compiler.TreeMap].FD()), key: last, next: &pid}
	_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_MAP_GET_NEXT_KEY, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	switch errno {
	case 0:
		return pid, true, nil
	case unix.ENOENT:
		return 0, false, nil
	}
	return 0, false, fmt.Errorf("read the processes of the tree: %w", errno)
}

// Unfollowed returns how many processes are not in the tree because it was full, or
// because the kernel skipped the program that adds them.
func (s *Session) Unfollowed() (n uint64, err error) {
	if s.unit.Tree == nil {
		return 0, nil
	}
	err = s.counters.use(func(load func(off int) uint64) { n = load(compiler.ControlUnfollowed) })
	if err != nil {
		return 0, err
	}
	for _, c := range s.unit.Companions {
		if c.Tracepoint != compiler.ForkTracepoint {
			continue
		}
		missed, err := s.programMissed(c.Program)
		if err != nil {
			return 0, err
		}
		n += missed
	}
	return n, nil
}

// TraceIn restricts a unit with a cgroup to the cgroup of this directory, which must
// stay open until [Session.Attach] has returned.
func (s *Session) TraceIn(cgroup *os.File) error {
	m := s.coll.Maps[compiler.CgroupMap]
	if m == nil {
		return errors.New("the unit was compiled without Options.Cgroup")
	}
	s.cgroup = cgroup
	err := m.Put(uint32(0), uint32(cgroup.Fd()))
	if errors.Is(err, unix.EBADF) {
		return fmt.Errorf("trace in cgroup %s: it must be a directory of a mount of cgroup v2", cgroup.Name())
	}
	if err != nil {
		return fmt.Errorf("trace in cgroup %s: %w", cgroup.Name(), err)
	}
	return nil
}
