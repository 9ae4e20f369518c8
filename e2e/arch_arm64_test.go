package e2e

import "golang.org/x/sys/unix"

const (
	// syscallPrefix is the prefix of the functions that implement system calls.
	syscallPrefix = "__arm64_"
	// syscallCaller is the function that calls them.
	syscallCaller = "invoke_syscall"
	epollWait     = unix.SYS_EPOLL_PWAIT // arm64 has no epoll_wait
	// firstArgument is the member of struct pt_regs with the first argument.
	firstArgument = "regs[0]"
)

// argRegisters lists the registers of a function's arguments by the names that
// kprobe_events uses.
var argRegisters = []string{"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"}

// archPointers lists addresses that other architectures use in another way. The
// hardware ignores the upper byte of a process's pointers.
func archPointers(user uintptr) []badPointer {
	return []badPointer{
		{"the NULL page with a tag", 0x0b00_0000_0000_0010},
		{"user memory with a tag", user | 0x0b<<56},
		{"user memory with a tag like a kernel's address", user | 0xb4<<56},
		{"user memory with the largest tag", user | 0xff<<56},
	}
}
