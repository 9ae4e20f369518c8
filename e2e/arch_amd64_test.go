package e2e

import "golang.org/x/sys/unix"

const (
	// syscallPrefix is the prefix of the functions that implement system calls.
	syscallPrefix = "__x64_"
	// syscallCaller is the function that calls them.
	syscallCaller = "do_syscall_64"
	epollWait     = unix.SYS_EPOLL_WAIT
	// firstArgument is the member of struct pt_regs with the first argument.
	firstArgument = "di"
)

// argRegisters lists the registers of a function's arguments by the names that
// kprobe_events uses.
var argRegisters = []string{"di", "si", "dx", "cx", "r8", "r9"}

// archPointers lists addresses that other architectures use in another way.
func archPointers(uintptr) []badPointer {
	return []badPointer{{"the page of vsyscalls", 0xffff_ffff_ff60_0000}}
}
