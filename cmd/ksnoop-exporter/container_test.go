package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/runtime/cgroup"
)

// TestContainers verifies that calls are counted by the container whose cgroup they are made
// in.
func TestContainers(t *testing.T) {
	mounts, err := cgroup.Mounts("/proc/self/mountinfo")
	require.NoError(t, err)
	if len(mounts) == 0 {
		t.Skip("no cgroup v2 is mounted")
	}
	name := filepath.Join(mounts[0], "docker-"+strings.Repeat("ab", 32)+".scope")
	if err := os.Mkdir(name, 0o755); err != nil {
		t.Skip(err)
	}
	defer os.Remove(name)
	e := export(t, "metric calls tp:sys_enter($container, count()) "+ofTest+" table\n")
	dir, err := os.Open(name)
	require.NoError(t, err)
	defer dir.Close()
	call(t, "exp-a=10")
	callBy(t, "exp-b=300", func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	})
	m := e.scrape()
	require.Equal(t, 300.0, m.value("ksnoop_t_calls_total", "container="+strings.Repeat("ab", 6)))
	require.Equal(t, 10.0, m.value("ksnoop_t_calls_total", "container="))
}
