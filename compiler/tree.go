package compiler

// TreeMap maps the id of each process in a process tree to the address of its
// signal_struct, which tells it from a later process with the same id.
const TreeMap = "tree"

// ForkTracepoint is the tracepoint at which processes are added to the tree.
const ForkTracepoint = "sched_process_fork"

// TreeRoom is the number of processes that a tree can have at once. All the
// memory is allocated in advance, so that no process is left out for lack of
// memory.
const TreeRoom = 16384

// Tree follows a process and its descendants.
type Tree struct {
	Root uint32 // the process at the root; 0 for one that ksnoop has yet to start
	Self uint32 // ksnoop
}

// Companion is a program at a tracepoint that a unit needs besides its probes. It writes
// no records.
type Companion struct {
	Program    string // name in Collection
	Tracepoint string
}

// Tasks has the offsets of the members of struct task_struct that identify
// processes.
type Tasks struct {
	PID, TGID int // ids of the thread and of its process
	Signal    int // pointer to the signal_struct that the threads of a process share
}
