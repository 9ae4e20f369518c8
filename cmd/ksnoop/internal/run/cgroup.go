package run

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/runtime/cgroup"
)

// openScope opens the directory of the cgroup of --cgroup or --container. It returns nil
// if neither is given.
func openScope(p *target.Programs) (*os.File, error) {
	switch {
	case p.Cgroup != "" && p.Container != "":
		return nil, exit.Usagef("--container is the cgroup of a container, and --cgroup is given, too: leave out one of them")
	case p.Cgroup != "":
		return openCgroup("cgroup", p.Cgroup)
	case p.Container != "":
		dir, err := cgroup.NewTable().Directory(p.Container)
		if err != nil {
			return nil, exit.Usagef("--container is %q: %w", p.Container, err)
		}
		return openCgroup("container", dir)
	}
	return nil, nil
}

// openCgroup opens the directory of a cgroup, given by its path or its id.
func openCgroup(option, text string) (*os.File, error) {
	path := text
	if id, err := strconv.ParseUint(text, 10, 64); err == nil {
		if path, err = cgroupByID(id); err != nil {
			return nil, err
		}
	}
	dir, err := os.Open(path)
	if err != nil {
		return nil, exit.Usagef("--%s is %q: %w", option, text, errors.Unwrap(err))
	}
	var st unix.Statfs_t
	err = unix.Fstatfs(int(dir.Fd()), &st)
	info, statErr := dir.Stat()
	if err != nil || statErr != nil || st.Type != unix.CGROUP2_SUPER_MAGIC || !info.IsDir() {
		dir.Close()
		return nil, exit.Usagef("--%s is %q: that is not a directory below a mount of cgroup v2, such as /sys/fs/cgroup", option, text)
	}
	return dir, nil
}

// removed reports whether a cgroup was removed after its directory was opened. No thread
// can be in it any more, and one that is made with its name is another cgroup.
func removed(dir *os.File) bool {
	return unix.Faccessat(int(dir.Fd()), "cgroup.procs", unix.F_OK, 0) == unix.ENOENT
}

// cgroupByID returns the directory of a cgroup: its inode number is the id.
func cgroupByID(id uint64) (string, error) {
	mounts, err := cgroup.Mounts("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	if len(mounts) == 0 {
		return "", exit.Usagef("--cgroup is %d: an id needs a mount of cgroup v2 to be found in, and there is none", id)
	}
	found := cgroup.Find(mounts, id)
	if found == "" {
		return "", exit.Usagef("--cgroup is %d: no cgroup below %s has this id", id, strings.Join(mounts, " or "))
	}
	return found, nil
}
