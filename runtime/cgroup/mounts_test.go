package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMounts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mountinfo")
	require.NoError(t, os.WriteFile(file, []byte(`22 28 0:20 / /sys rw - sysfs sysfs rw
31 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate
32 22 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
40 22 0:40 / /merged rw - overlay overlay rw`+strings.Repeat(",lowerdir+=/layer", 1<<13)+`
33 22 0:26 / /mnt/my\040groups rw - cgroup2 none rw
`), 0o644))
	mounts, err := Mounts(file)
	require.NoError(t, err)
	require.Equal(t, []string{"/sys/fs/cgroup", "/mnt/my groups"}, mounts)
}
