package run

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// forgetCode gives back the memory of code and constants that have been used so far:
// most of it, such as the command line and the compiler, is needed only once. Pages
// that are needed again come from the page cache. If that fails, ksnoop takes more
// memory.
func forgetCode() {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(maps)) {
		if from, to, ok := constantMapping(strings.TrimSpace(line), self); ok {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED)
		}
	}
}

// constantMapping parses a line of /proc/PID/maps, and reports whether it is a
// mapping of file that cannot be written to.
func constantMapping(line, file string) (from, to uintptr, ok bool) {
	if !strings.HasSuffix(line, " "+file) {
		return 0, 0, false
	}
	var mode string
	n, _ := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode)
	return from, to, n == 3 && strings.HasPrefix(mode, "r-")
}
