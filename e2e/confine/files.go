//go:build linux

package confine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// hideFiles hides the contents of directories and files, for this thread alone.
func (r *restrictions) hideFiles() error {
	if len(r.hide)+len(r.empty) == 0 {
		return nil
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	for _, dir := range r.hide {
		if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
			return fmt.Errorf("hide %s: %w", dir, err)
		}
	}
	for _, file := range r.empty {
		if err := unix.Mount("/dev/null", file, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("empty %s: %w", file, err)
		}
	}
	return nil
}

// limitMemory moves this process into a new cgroup. Nothing removes the cgroup,
// because the guest is short-lived.
func (r *restrictions) limitMemory() error {
	if r.memory == 0 {
		return nil
	}
	root, err := os.MkdirTemp("", "cgroup")
	if err != nil {
		return err
	}
	if err := unix.Mount("none", root, "cgroup2", 0, ""); err != nil {
		return fmt.Errorf("mount cgroup2: %w", err)
	}
	defer func() {
		unix.Unmount(root, unix.MNT_DETACH)
		os.Remove(root)
	}()
	dir := filepath.Join(root, "confine")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range []struct{ name, text string }{
		{filepath.Join(root, "cgroup.subtree_control"), "+memory"},
		{filepath.Join(dir, "memory.max"), strconv.FormatUint(r.memory, 10)},
		{filepath.Join(dir, "cgroup.procs"), strconv.Itoa(os.Getpid())},
	} {
		if err := os.WriteFile(f.name, []byte(f.text), 0); err != nil {
			return err
		}
	}
	return nil
}
