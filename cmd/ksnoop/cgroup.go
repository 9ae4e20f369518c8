package main

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// openCgroup opens the directory of a cgroup, which is named by that or by its
// id.
func openCgroup(text string) (*os.File, error) {
	path := text
	if id, err := strconv.ParseUint(text, 10, 64); err == nil {
		if path, err = cgroupByID(id); err != nil {
			return nil, err
		}
	}
	dir, err := os.Open(path)
	if err != nil {
		return nil, usagef("--cgroup is %q: %w", text, errors.Unwrap(err))
	}
	var st unix.Statfs_t
	err = unix.Fstatfs(int(dir.Fd()), &st)
	info, statErr := dir.Stat()
	if err != nil || statErr != nil || st.Type != unix.CGROUP2_SUPER_MAGIC || !info.IsDir() {
		dir.Close()
		return nil, usagef("--cgroup is %q: that is no directory below a mount of cgroup v2, such as /sys/fs/cgroup", text)
	}
	return dir, nil
}

// cgroupByID finds the directory of a cgroup: its inode number is the id.
func cgroupByID(id uint64) (string, error) {
	mounts, err := cgroupMounts("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	if len(mounts) == 0 {
		return "", usagef("--cgroup is %d: an id needs a mount of cgroup v2 to be found in, and there is none", id)
	}
	var found string
	for _, m := range mounts {
		_ = filepath.WalkDir(m, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil // a cgroup that has gone meanwhile, or a file
			}
			info, err := d.Info()
			if err == nil && info.Sys().(*syscall.Stat_t).Ino == id {
				found = path
				return fs.SkipAll
			}
			return nil
		})
	}
	if found == "" {
		return "", usagef("--cgroup is %d: no cgroup below %s has this id", id, strings.Join(mounts, " or "))
	}
	return found, nil
}

// cgroupMounts are the mounts of cgroup v2 in a mountinfo file, whose lines
// are like "31 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw".
func cgroupMounts(mountinfo string) ([]string, error) {
	f, err := os.Open(mountinfo)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var mounts []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		mount, fstype, ok := strings.Cut(lines.Text(), " - ")
		if fields := strings.Fields(mount); ok && strings.HasPrefix(fstype, "cgroup2 ") && len(fields) > 4 {
			mounts = append(mounts, unescapeMount(fields[4]))
		}
	}
	return mounts, lines.Err()
}

// unescapeMount undoes what the kernel does to blanks in a mount point.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
