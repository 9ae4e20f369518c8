//go:build linux

package script

import (
	"os"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// tmpfs mounts a file system of a size, such as 64k, until the script ends.
func tmpfs(ts *testscript.TestScript, args []string) {
	usage(ts, len(args) == 2, "tmpfs DIR SIZE")
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	ts.Check(unix.Mount("none", dir, "tmpfs", 0, "size="+args[1]))
	ts.Defer(func() { unix.Unmount(dir, unix.MNT_DETACH) })
}

// lockdown locks the kernel down, which cannot be undone.
func lockdown(ts *testscript.TestScript, args []string) {
	usage(ts, len(args) == 1, "lockdown integrity|confidentiality")
	const dir = "/sys/kernel/security"
	if err := unix.Mount("securityfs", dir, "securityfs", 0, ""); err != nil && err != unix.EBUSY {
		ts.Fatalf("mount %s: %v", dir, err)
	}
	ts.Check(os.WriteFile(dir+"/lockdown", []byte(args[0]), 0))
}

// rmmod unloads a module. A negated rmmod requires that the kernel refuses
// because the module is in use.
func rmmod(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, len(args) == 1, "rmmod MODULE")
	err := unix.DeleteModule(args[0], unix.O_NONBLOCK)
	if !neg {
		ts.Check(err)
		return
	}
	if err != unix.EAGAIN {
		ts.Fatalf("unload %s: %v instead of EAGAIN", args[0], err)
	}
}
