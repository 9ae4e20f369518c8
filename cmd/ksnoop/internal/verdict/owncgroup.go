package verdict

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/ksnoop/ksnoop/runtime/cgroup"
)

// ownCgroup is a cgroup that is made for a command.
type ownCgroup struct{ dir *os.File }

// makeCgroup makes a cgroup below that of ksnoop.
func makeCgroup() (*ownCgroup, error) {
	mounts, err := cgroup.Mounts("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	if len(mounts) == 0 {
		return nil, errors.New("there is no mount of cgroup v2 (mount -t cgroup2 cgroup2 /sys/fs/cgroup)")
	}
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	own := ""
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			own = strings.TrimSpace(path)
		}
	}
	name := filepath.Join(mounts[0], own, fmt.Sprintf("ksnoop-%d", os.Getpid()))
	if err := os.Mkdir(name, 0o755); err != nil {
		return nil, err
	}
	dir, err := os.Open(name)
	if err != nil {
		return nil, errors.Join(err, os.Remove(name))
	}
	return &ownCgroup{dir}, nil
}

// hold makes a command start in the cgroup.
func (g *ownCgroup) hold(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(g.dir.Fd())
}

// remove removes the cgroup. It returns a note if there are still processes in it.
func (g *ownCgroup) remove() []string {
	g.dir.Close()
	if errors.Is(os.Remove(g.dir.Name()), syscall.EBUSY) {
		return []string{"processes of the command still run, in the cgroup " + g.dir.Name() + ": remove it (rmdir) when they have ended"}
	}
	return nil
}
