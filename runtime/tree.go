package runtime

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

// follow attaches the programs that keep track of the process tree, if the unit
// has one, and finds the processes that are in it already.
func (s *Session) follow() error {
	tree := s.unit.Tree
	if tree == nil {
		return nil
	}
	for _, h := range tree.Programs {
		l, err := link.AttachTracing(link.TracingOptions{Program: s.coll.Programs[h.Program]})
		if err != nil {
			return fmt.Errorf("attach to tracepoint %s, which following processes takes: %w", h.Tracepoint, err)
		}
		s.hooks = append(s.hooks, l)
	}
	if tree.Root == 0 {
		return nil
	}
	return s.followFamily(tree.Root)
}

// followFamily adds a process and its descendants. Those that begin meanwhile
// are found when nobody new is: what is in the tree adds its children itself.
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

// FollowChildren adds to the tree what start starts, from the fork on. It needs
// a unit with a tree; without one it just starts.
func (s *Session) FollowChildren(start func() error) error {
	tree := s.unit.Tree
	if tree == nil {
		return start()
	}
	// The first process that the os package starts is one that tries what the
	// kernel can do. Here it has to do with that now.
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		defer self.Release()
	}
	if err := s.insert(tree.Self, 0); err != nil {
		return err
	}
	started := start()
	if err := s.coll.Maps[compiler.TreeMap].Delete(tree.Self); err != nil {
		return errors.Join(started, fmt.Errorf("take ksnoop out of the process tree: %w", err))
	}
	return started
}

// Unfollowed is how many processes are not in the tree because it was full, or
// because the kernel skipped the program that adds them.
func (s *Session) Unfollowed() (n uint64, err error) {
	if s.unit.Tree == nil {
		return 0, nil
	}
	if err := s.coll.Maps[compiler.TreeFullMap].Lookup(uint32(0), &n); err != nil {
		return 0, fmt.Errorf("read how many processes were not followed: %w", err)
	}
	for _, h := range s.unit.Tree.Programs {
		if h.Tracepoint != compiler.ForkTracepoint {
			continue
		}
		stats, err := s.coll.Programs[h.Program].Stats()
		if err != nil {
			return 0, fmt.Errorf("read what %s missed: %w", h.Program, err)
		}
		n += stats.RecursionMisses
	}
	return n, nil
}

// TraceIn restricts a unit with a cgroup to the one whose directory this is.
func (s *Session) TraceIn(cgroup *os.File) error {
	err := s.coll.Maps[compiler.CgroupMap].Put(uint32(0), uint32(cgroup.Fd()))
	if err != nil {
		return fmt.Errorf("trace in cgroup %s: %w", cgroup.Name(), err)
	}
	return nil
}
