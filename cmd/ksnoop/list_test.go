package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
)

// TestListAndInfo covers what list and info print for functions and tracepoints.
func TestListAndInfo(t *testing.T) {
	types := fixture.Write(t)
	for _, tc := range []struct{ line, want string }{
		{"info|vfs_read|tp:tick", "long vfs_read(struct file *file, long count);\ntp:tick(int cpu);\n"},
		{"info|vfs_[or]*|-d|-p|1", "int vfs_open(char *path, struct file *file);\nlong vfs_read(struct file *file, long count);\n"},
		{"list|--kernel-features|6.1|vfs_*", `-                 void vfs_broken(struct secret x);  // vfs_broken has a signature that BTF does not describe: parameter x: type *btf.Fwd: type is unsized
fentry+fexit      int vfs_open(char *path, struct file *file);
kprobe            void vfs_print(char *fmt, ...);
fentry+fexit      long vfs_read(struct file *file, long count);
`},
		{"list|vfs_read", "kprobe.session    long vfs_read(struct file *file, long count);\n"},
		{"list|vfs_[or]*(count)", "-                 int vfs_open(char *path, struct file *file);  // vfs_open has no argument 'count'\n" +
			"kprobe.multi      long vfs_read(struct file *file, long count);\n"},
		{"list|tp:*", "tp_btf            tp:tick(int cpu);\n"},
	} {
		status, stdout, stderr := ksnoop(t, types, tc.line)
		require.Zero(t, status, stderr)
		require.Equal(t, tc.want, stdout, tc.line)
	}
}

func TestListErrors(t *testing.T) {
	types := fixture.Write(t)
	for line, want := range map[string]string{
		"list|vfs_raed": "ksnoop: there is no function vfs_raed in this kernel\n  vfs_raed\n  ^^^^^^^^\n  did you mean 'vfs_read'?\n",
		"list|zz_*":     "ksnoop: no function of this kernel matches 'zz_*'\n  zz_*\n  ^^^^\n  functions of a module need its name: MODULE:zz_*; tracepoints are tp:zz_*\n",
		"list|tp:tock":  "ksnoop: there is no tracepoint tock in this kernel\n  tp:tock\n     ^^^^\n  did you mean 'tp:tick'?\n",
		"info|zz_*":     "ksnoop: no function of this kernel matches 'zz_*'\n  zz_*\n  ^^^^\n  functions of a module need its name: MODULE:zz_*; tracepoints are tp:zz_*\n",
	} {
		status, stdout, stderr := ksnoop(t, types, line)
		require.Equal(t, exit.Usage, status, line)
		require.Equal(t, want, stderr, line)
		require.Empty(t, stdout)
	}
}
