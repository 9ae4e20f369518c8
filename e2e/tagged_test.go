//go:build linux

package e2e

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// testTagged checks that strings of a process are read through pointers with a tag
// in the upper byte when the kernel itself reads through them: after the thread has
// asked for that. Before, its system calls fail, and so does reading the string.
func testTagged(t *testing.T, k *kernel) {
	if k.target().Arch != compiler.ARM64 {
		t.Skip("the kernel takes no pointers with tags")
	}
	for _, attach := range append(k.kinds(t), "") {
		t.Run("by "+string(attach), func(t *testing.T) {
			caller := newCaller(t)
			const path = "/dev/zero"
			tr := k.trace(t, attach, compiler.Options{TID: caller.tid}, `do_sys_openat2(filename:ustring)`)
			var want []string
			caller.do(func() {
				name, _ := unix.BytePtrFromString(path)
				for _, allowed := range []uintptr{0, unix.PR_TAGGED_ADDR_ENABLE} {
					unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_TAGGED_ADDR_CTRL, allowed, 0, 0, 0, 0)
					for _, tag := range []uintptr{0, 0x0b, 0xb4, 0xff} {
						cwd := unix.AT_FDCWD
						tagged := uintptr(unsafe.Pointer(name)) | tag<<56
						fd, _, errno := unix.RawSyscall6(unix.SYS_OPENAT, uintptr(cwd), tagged, unix.O_RDONLY, 0, 0, 0)
						if errno == 0 {
							unix.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
							want = append(want, fmt.Sprintf("%x %s", tagged, path))
						} else {
							want = append(want, fmt.Sprintf("%x %s", tagged, errno))
						}
					}
				}
			})
			var got []string
			tr.events(t, func(ev *runtime.Event) {
				v, text := ev.Values[0], unix.EFAULT.Error()
				if v.Fault == compiler.NoFault {
					text = string(v.Data)
				}
				got = append(got, fmt.Sprintf("%x %s", v.Addr, text))
			})
			require.Equal(t, want, got)
			require.Contains(t, want[2], unix.EFAULT.Error())
			require.Contains(t, want[6], path)
			require.NoError(t, tr.Close())
		})
	}
}
