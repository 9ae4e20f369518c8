//go:build linux

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadme runs the README's commands after a clone, word for word, on a
// machine that has nothing but Go, git, make and a shell.
func TestReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("builds everything")
	}
	t.Parallel()
	require.NoError(t, dependOnSources())
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	commands := buildCommands(t, string(readme))
	dir := cloneOf(t, "..")
	_, env := bareMachine(t)
	var last string
	for _, command := range commands {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", command)
		cmd.Dir, cmd.Env = dir, env
		printed, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", command, printed)
		last = string(printed)
	}
	require.Regexp(t, `^ksnoop version [0-9a-f]{7,}\n$`, last)
	for _, target := range regexp.MustCompile("`make ([a-z-]+)`").FindAllStringSubmatch(string(readme), -1) {
		cmd := exec.CommandContext(t.Context(), "make", "-n", target[1])
		cmd.Dir = dir
		printed, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", cmd, printed)
	}
}

// buildCommands returns the lines of the README's only sh fence, without
// comments.
func buildCommands(t *testing.T, readme string) (commands []string) {
	fences := regexp.MustCompile("(?s)\n```sh\n(.*?)```\n").FindAllStringSubmatch(readme, -1)
	require.Len(t, fences, 1)
	for line := range strings.Lines(fences[0][1]) {
		command, _, _ := strings.Cut(line, " #")
		commands = append(commands, strings.TrimSpace(command))
	}
	require.Len(t, commands, 2)
	return commands
}

// cloneOf makes a repository with one commit of all files of another one that
// git tracks or would add.
func cloneOf(t *testing.T, from string) string {
	dir := t.TempDir()
	names := git(t, from, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	for name := range strings.SplitSeq(strings.TrimSuffix(names, "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(from, name))
		if os.IsNotExist(err) {
			continue // removed, but not yet committed
		}
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
	git(t, dir, "init", "-q")
	git(t, dir, "add", "-A")
	git(t, dir, "-c", "user.name=ksnoop", "-c", "user.email=ksnoop@localhost", "commit", "-q", "-m", "all")
	return dir
}

func git(t *testing.T, dir string, args ...string) string {
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(t, err, "%s: %s", cmd, &errs)
	return string(out)
}

// bareMachine returns an environment in which the only programs are Go, git,
// make and the named others, in the directory bin. Go's caches of downloads and
// builds remain available.
func bareMachine(t *testing.T, others ...string) (bin string, env []string) {
	bin = t.TempDir()
	for _, name := range append([]string{"go", "git", "make"}, others...) {
		path, err := exec.LookPath(name)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(path, filepath.Join(bin, name)))
	}
	env = []string{"PATH=" + bin, "HOME=" + t.TempDir()}
	for _, name := range []string{"GOROOT", "GOPROXY", "GOMODCACHE", "GOCACHE", "GOFLAGS"} {
		value, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		require.NoError(t, err)
		if text := strings.TrimSpace(string(value)); text != "" {
			env = append(env, name+"="+text)
		}
	}
	return bin, env
}
