//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/schema"
	"github.com/ksnoop/ksnoop/e2e/vm"
)

var updateCheck = flag.Bool("update", false, "write the golden files")

// checkedSpecs lists specs whose results differ between the kernels of the
// matrix: their functions were added, removed or inlined, or their arguments
// and members changed.
var checkedSpecs = []string{
	"vfs_read(count > 4096, return < 0)",
	"blk_account_io_start(rq)",
	"blkdev_get_by_path(path)",
	"vfs_create(mnt_userns)",
	"vfs_create(dir, dentry)",
	"tp:sched_switch(prev_state)",
	"vfs_read(file->f_count.counter)",
	"wake_up_new_task(p->state)",
	"vfs_read(file->f_inode->i_mtime.tv_sec)",
	"folio_*(folio, return == true)",
	"p:vfs/copy vfs_copy_file_range flags=$arg6",
	"iter:bpf_link(link->id)",
	"iter:kmem_cache(s->name) if s->size > 4k",
	"iter:task(task->state)",
}

// TestCheck checks specs against the types of all kernels, on this machine, as
// a user without privileges.
func TestCheck(t *testing.T) {
	t.Parallel()
	requireMachine(t, vm.AMD64)
	ksnoop, dir := nobodysBinary(t)
	var args []string
	for _, suite := range vm.Matrix(vm.AMD64) {
		types, err := kernelOf(t, suite.String()).Types()
		require.NoError(t, err)
		args = append(args, "--btf", copyFor(t, types, filepath.Join(dir, suite.String())))
	}
	stdout, stderr, state := asNobody(t, ksnoop, append(append([]string{"check"}, args...), checkedSpecs...)...)
	require.Equal(t, 1, state.ExitCode(), stderr)
	require.Empty(t, stderr)
	goldenCheck(t, "check.txt", lasting(stdout))
	require.Contains(t, stdout, "5.10: vfs_create(mnt_userns): vfs_create has no argument 'mnt_userns' (it has dir, dentry, mode, want_excl)\n")

	stdout, stderr, _ = asNobody(t, ksnoop, append(append([]string{"check", "-o", "json"}, args...), checkedSpecs...)...)
	require.Empty(t, stderr)
	goldenCheck(t, "check.json", lasting(withoutVersion(t, stdout)))
	requireMemory(t, ksnoop, dir)
	t.Run("docs", func(t *testing.T) { followCheckPage(t, dir) })
}

// followCheckPage runs the examples of docs/check.md that need the types of all
// kernels.
func followCheckPage(t *testing.T, dir string) {
	steps := stepsWith(t, "../docs/check.md", "kernels")
	require.Len(t, steps, 2)
	followPage(t, "/bin/sh", dir, steps, "PATH="+dir+":"+os.Getenv("PATH"))
}

// requireMemory checks that ksnoop frees the types of one kernel before it
// reads the next ones. ksnoop runs with one thread: of two threads, a busy host may run
// the one that reads and not the one that collects garbage.
func requireMemory(t *testing.T, ksnoop, dir string) {
	args := []string{"GOMAXPROCS=1", ksnoop, "check", "vfs_read", "--btf", filepath.Join(dir, "newest")}
	_, stderr, one := asNobody(t, "/usr/bin/env", args...)
	require.Zero(t, one.ExitCode(), stderr)
	for i := range 12 {
		link := filepath.Join(dir, fmt.Sprintf("copy%d", i))
		require.NoError(t, os.Symlink("newest", link))
		args = append(args, "--btf", link)
	}
	_, stderr, many := asNobody(t, "/usr/bin/env", args...)
	require.Zero(t, many.ExitCode(), stderr)
	t.Logf("peak memory: 1 kernel %d MB, 13 kernels %d MB", peak(one)>>10, peak(many)>>10)
	require.Less(t, peak(many), 2*peak(one), "13 kernels take more memory than one")
}

// lasting removes the hints, which change with every version of the newest
// kernel, and the numbers of functions that globs match.
func lasting(text string) string {
	text = regexp.MustCompile(`(?m) \([^()\n]*\)($|")`).ReplaceAllString(text, "$1")
	return regexp.MustCompile(`("functions":|"text":")[0-9]+`).ReplaceAllString(text, "${1}N")
}

// peak returns the peak memory of a process, in KiB.
func peak(state *os.ProcessState) int64 { return state.SysUsage().(*syscall.Rusage).Maxrss }

// nobodysBinary copies ksnoop to a directory where any user may run it.
func nobodysBinary(t *testing.T) (ksnoop, dir string) {
	dir, err := os.MkdirTemp("", "ksnoop-check-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	return copyFor(t, staticBinary(t, vm.AMD64), filepath.Join(dir, "ksnoop")), dir
}

// copyFor copies a file to a place where any user may read and run it.
func copyFor(t *testing.T, from, to string) string {
	in, err := os.Open(from)
	require.NoError(t, err)
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(out, in)
	require.NoError(t, err)
	require.NoError(t, out.Close())
	return to
}

// asNobody runs a command as a user without privileges, if this process is
// root.
func asNobody(t *testing.T, name string, args ...string) (stdout, stderr string, state *os.ProcessState) {
	const nobody = 65534
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = "/", []string{}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	require.NotNil(t, cmd.ProcessState, "%v", err)
	return out.String(), errs.String(), cmd.ProcessState
}

// withoutVersion replaces the version, which differs with every build. It also
// checks that every line conforms to the schema.
func withoutVersion(t *testing.T, text string) string {
	first, rest, _ := strings.Cut(text, "\n")
	var suite struct {
		Version int
		Fields  struct{ Ksnoop string }
	}
	require.NoError(t, json.Unmarshal([]byte(first), &suite))
	require.Equal(t, 1, suite.Version)
	results, err := schema.Strict("../docs/results.schema.json")
	require.NoError(t, err)
	require.NoError(t, results.Lines(text))
	return strings.Replace(first, suite.Fields.Ksnoop, "VERSION", 1) + "\n" + rest
}

func goldenCheck(t *testing.T, name, got string) {
	name = filepath.Join("testdata", name)
	if *updateCheck {
		require.NoError(t, os.WriteFile(name, []byte(got), 0o644))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
