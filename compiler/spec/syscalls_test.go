package spec

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestSyscallNumber(t *testing.T) {
	for call, want := range map[string]int{
		"read": unix.SYS_READ, "openat": unix.SYS_OPENAT, "exit_group": unix.SYS_EXIT_GROUP, "bpf": unix.SYS_BPF, "rseq": unix.SYS_RSEQ,
		"io_uring_enter": unix.SYS_IO_URING_ENTER, "openat2": unix.SYS_OPENAT2, "futex_waitv": unix.SYS_FUTEX_WAITV,
		"cachestat": unix.SYS_CACHESTAT, "setxattrat": unix.SYS_SETXATTRAT,
	} {
		n, ok := SyscallNumber(call, runtime.GOARCH)
		require.True(t, ok, call)
		require.Equal(t, want, n, call)
	}
	for _, tc := range []struct {
		call, arch string
		want       int
	}{
		{"openat", "amd64", 257}, {"openat", "arm64", 56}, {"open", "amd64", 2}, {"open", "arm64", -1}, {"bpf", "arm64", 280},
		{"kexec_file_load", "arm64", 294}, {"prlimit64", "arm64", 261}, {"clone3", "arm64", 435}, {"nosuch", "amd64", -1}, {"-", "arm64", -1},
		{"read", "mips", -1},
	} {
		n, ok := SyscallNumber(tc.call, tc.arch)
		require.Equal(t, tc.want >= 0, ok, tc)
		require.Equal(t, max(tc.want, 0), n, tc)
	}
}
