package codegen

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
)

// fixtureTasks has the offsets of the members that identify the tasks of these
// tests.
var fixtureTasks = &compiler.Tasks{PID: 16, TGID: 20, Signal: 24}

// processes are the kernel's processes, as the programs of a tree see them.
type processes struct{ *rig }

func newProcesses(t *testing.T, f compiler.Features) *processes {
	return &processes{newRig(t, f, compiler.Options{Tree: fixtureTasks, Self: 999}, "read(count, return)")}
}

// task allocates a thread of a process.
func (p *processes) task(tid, pid uint32, signal uint64) uint64 {
	return p.alloc(le([]byte("stack and flags "), tid, pid, signal))
}

// follow adds a process to the tree, as ksnoop does.
func (p *processes) follow(pid uint32, signal uint64) {
	p.hashes[compiler.TreeMap][string(le(pid))] = p.alloc(le(signal))
}

// at runs the program on a tracepoint with the given arguments.
func (p *processes) at(tracepoint string, args ...uint64) {
	p.t.Helper()
	for _, h := range p.unit.Companions {
		if h.Tracepoint == tracepoint {
			require.NoError(p.t, p.run(p.unit.Collection.Programs[h.Program].Instructions, p.alloc(le(args))))
			return
		}
	}
	p.t.Fatalf("no program is on %s", tracepoint)
}

// traced reports whether both sides of a call of a process are shown.
func (p *processes) traced(pid uint32) bool {
	p.t.Helper()
	p.pidtid = uint64(pid)<<32 | uint64(pid)
	p.do(call{args: []uint64{0, 0, 1, 0}, result: []uint64{1}})
	n := len(p.shown())
	require.Contains(p.t, []int{0, 2}, n)
	return n == 2
}

func (p *processes) tooMany() uint64 { return p.word(compiler.ControlUnfollowed) }

// starts sets the process whose children belong to the tree, as ksnoop does
// while it starts the first one; 0 for none.
func (p *processes) starts(pid uint32) {
	b, err := p.machine.at(p.arrays[compiler.CountersMap]+compiler.ControlStarter, 8)
	require.NoError(p.t, err)
	copy(b, le(uint64(pid)))
}

func TestTree(t *testing.T) {
	const fork, free = "sched_process_fork", "sched_process_free"
	backEnds(t, func(t *testing.T, f compiler.Features) {
		p := newProcesses(t, f)
		shell, other := p.task(10, 10, 0xa), p.task(20, 20, 0xb)
		p.follow(10, 0xa)
		require.True(t, p.traced(10))
		require.False(t, p.traced(20))

		// Descendants are in the tree, whichever thread creates them.
		child, thread := p.task(11, 11, 0xc), p.task(12, 11, 0xc)
		p.at(fork, shell, child)
		p.at(fork, child, thread)
		grandchild := p.task(13, 13, 0xd)
		p.at(fork, thread, grandchild)
		p.at(fork, other, p.task(21, 21, 0xe))
		require.True(t, p.traced(11))
		require.False(t, p.traced(12), "the id of a thread is not that of a process")
		require.True(t, p.traced(13))
		require.False(t, p.traced(21))

		// A process is in the tree until its last thread is freed; its children
		// remain.
		p.at(free, thread)
		require.True(t, p.traced(11))
		p.at(free, child)
		require.False(t, p.traced(11))
		require.True(t, p.traced(13))
		p.at(free, other)
		require.Len(t, p.hashes[compiler.TreeMap], 2)
		require.Zero(t, p.tooMany())
	})
}

// A process that ksnoop starts is in the tree from the fork on; ksnoop itself
// never is.
func TestTreeStarter(t *testing.T) {
	const fork = "sched_process_fork"
	p := newProcesses(t, compilertest.WithTrampoline)
	ksnoop := p.task(1000, 999, 0xa)
	p.at(fork, ksnoop, p.task(10, 10, 0xb))
	p.starts(999)
	p.at(fork, ksnoop, p.task(11, 11, 0xc))
	p.at(fork, p.task(5, 5, 0xd), p.task(12, 12, 0xe))
	p.starts(0)
	p.at(fork, ksnoop, p.task(13, 13, 0xf))
	for pid, want := range map[uint32]bool{10: false, 11: true, 12: false, 13: false, 999: false} {
		require.Equal(t, want, p.traced(pid), pid)
	}
}

// An id may belong to another process before the kernel frees the one that had
// it.
func TestTreeIDsAgain(t *testing.T) {
	const fork, free = "sched_process_fork", "sched_process_free"
	p := newProcesses(t, compilertest.WithTrampoline)
	shell, other := p.task(10, 10, 0xa), p.task(20, 20, 0xb)
	p.follow(10, 0xa)
	first := p.task(11, 11, 0xc)
	p.at(fork, shell, first)
	p.at(fork, other, p.task(11, 11, 0xd))
	require.False(t, p.traced(11), "a stranger")
	p.at(free, first)
	require.False(t, p.traced(11))

	p.at(fork, shell, first)
	p.at(fork, shell, p.task(11, 11, 0xe))
	p.at(free, first)
	require.True(t, p.traced(11), "the second one is still there")
}

func TestTreeFull(t *testing.T) {
	p := newProcesses(t, compilertest.WithTrampoline)
	shell := p.task(1, 1, 0xa)
	for pid := range uint32(compiler.TreeRoom - 1) {
		p.follow(pid+1, 0xa)
	}
	p.at("sched_process_fork", shell, p.task(70001, 70001, 0xc))
	p.at("sched_process_fork", shell, p.task(70002, 70002, 0xd))
	p.at("sched_process_fork", shell, p.task(70003, 70003, 0xe))
	require.True(t, p.traced(70001))
	require.False(t, p.traced(70002))
	require.Equal(t, uint64(2), p.tooMany())
}

func TestCgroup(t *testing.T) {
	const refused = 1<<64 - 11 // the map has no cgroup
	backEnds(t, func(t *testing.T, f compiler.Features) {
		r := newRig(t, f, compiler.Options{Cgroup: true, Self: 999}, "read(buf->len > 100, return)")
		buf, _ := bufAndDev(r.machine)
		for in, want := range map[uint64]int{0: 0, 1: 1, refused: 0} {
			r.cgroup = in
			r.do(call{args: []uint64{buf, 0, 1, 0}, result: []uint64{1}})
			require.Len(t, r.shown(), want)
			requireNoCalls(t, r, "nothing is kept")
		}
	})
}
