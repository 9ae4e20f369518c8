// Package cgroup finds cgroups (v2) and their containers by the ids that the kernel
// shows.
//
//	containers := cgroup.NewTable()
//	if c, ok := containers.Of(id); ok {
//		fmt.Println(c.Runtime, c)
//	}
package cgroup

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Mounts returns the mount points of cgroup v2 in a mountinfo file, whose lines are like
// "31 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw".
func Mounts(mountinfo string) ([]string, error) {
	text, err := os.ReadFile(mountinfo)
	if err != nil {
		return nil, err
	}
	var mounts []string
	for line := range strings.Lines(string(text)) { // of any length, as those of overlayfs have all layers
		mount, fstype, ok := strings.Cut(line, " - ")
		if fields := strings.Fields(mount); ok && strings.HasPrefix(fstype, "cgroup2 ") && len(fields) > 4 {
			mounts = append(mounts, unescapeMount(fields[4]))
		}
	}
	return mounts, nil
}

// unescapeMount decodes the kernel's escapes for white space in a mount point.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// walk calls visit for each cgroup below a mount, with its directory and its id, which is
// the inode number, until visit returns false.
func walk(mount string, visit func(dir string, id uint64) bool) {
	_ = filepath.WalkDir(mount, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // a file, or a cgroup that has just been removed
		}
		info, err := d.Info()
		if err == nil && !visit(path, info.Sys().(*syscall.Stat_t).Ino) {
			return fs.SkipAll
		}
		return nil
	})
}

// Find returns the directory of a cgroup, or "" if no mount has it.
func Find(mounts []string, id uint64) (found string) {
	for _, m := range mounts {
		walk(m, func(dir string, ino uint64) bool {
			if ino == id {
				found = dir
			}
			return found == ""
		})
	}
	return found
}
