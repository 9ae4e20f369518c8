//go:build linux

package confine

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// enterRoot makes a directory the root as container engines do it for an image,
// which may lack the directories for procfs and sysfs. Programs that are
// executed there gain no privileges.
func (r *restrictions) enterRoot() error {
	if r.root == "" {
		return nil
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	for _, m := range []struct{ fstype, dir string }{{"proc", "proc"}, {"sysfs", "sys"}} {
		dir := filepath.Join(r.root, m.dir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.fstype, dir, m.fstype, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return fmt.Errorf("mount %s: %w", dir, err)
		}
	}
	// The flag of this mount alone, because the file system is that of the
	// guest.
	readOnly := uintptr(unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY)
	if err := unix.Mount("", filepath.Join(r.root, "sys"), "", readOnly, ""); err != nil {
		return fmt.Errorf("make sysfs read-only: %w", err)
	}
	if err := unix.Chroot(r.root); err != nil {
		return fmt.Errorf("enter %s: %w", r.root, err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}
