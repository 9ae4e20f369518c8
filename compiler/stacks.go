package compiler

import "github.com/cilium/ebpf/btf"

// Stacks tells the kernel's stacks apart: each task has one, and what an
// interrupt does is on one of its own.
type Stacks struct {
	Size int // of each, a power of two
	// Task is the offset in struct task_struct of the address of the task's
	// stack; -1: not known.
	Task int
}

// defaultStackSize is THREAD_SIZE of x86-64 and arm64 without KASAN.
const defaultStackSize = 16 << 10

// findStacks finds the stacks in a kernel's types.
func findStacks(kernel *btf.Spec) *Stacks {
	s := &Stacks{Size: defaultStackSize, Task: -1}
	var union *btf.Union
	if kernel.TypeByName("thread_union", &union) == nil {
		s.Size = int(union.Size)
	}
	if at, ok := MemberOffset(kernel, "task_struct", "stack"); ok {
		s.Task = at
	}
	return s
}
