//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/console"
	"github.com/ksnoop/ksnoop/e2e/guest"
	"github.com/ksnoop/ksnoop/e2e/vm"
)

// TestDocs runs the examples of the README and of docs, page by page, in a
// virtual machine with a shell: what they print is what the page says.
func TestDocs(t *testing.T) {
	requireMachine(t)
	busybox, err := fetchBusybox()
	require.NoError(t, err)
	files := []vm.File{{Path: "busybox/busybox", Source: busybox}, {Path: guestPages[1:] + "/README.md", Source: "../README.md"}}
	pages, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	for _, page := range pages {
		files = append(files, vm.File{Path: guestPages[1:] + "/" + filepath.Base(page), Source: page})
	}
	testOne(t, vm.Machine{Files: files}, selectedBelow("^TestGuestDocs$", 1))
}

// guestPages is where the documentation is in the guest: its pages, or only the
// schemas.
const guestPages = "/docs"

// TestGuestDocs runs in the machine that TestDocs boots.
func TestGuestDocs(t *testing.T) {
	if !guest.Inside() {
		t.Skip("runs inside a virtual machine, see TestDocs")
	}
	installShell(t)
	pages, err := filepath.Glob(guestPages + "/*.md")
	require.NoError(t, err)
	for _, page := range pages {
		if steps := stepsWith(t, page, ""); len(steps) > 0 {
			t.Run(filepath.Base(page), func(t *testing.T) { followPage(t, "/busybox/sh", t.TempDir(), steps) })
		}
	}
}

// installShell gives the guest the commands of a shell, and of the tests.
func installShell(t *testing.T) {
	require.NoError(t, exec.Command("/busybox/busybox", "--install", "-s", "/busybox").Run())
	require.NoError(t, os.Symlink("/busybox/sh", "/bin/sh"))
	t.Setenv("PATH", os.Getenv("PATH")+":/busybox")
}

// stepsWith are the files of a page, and its commands that need something, or
// nothing, that is not there for others.
func stepsWith(t *testing.T, page, with string) []console.Step {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	steps, err := console.Read(string(text))
	require.NoError(t, err, page)
	return slices.DeleteFunc(steps, func(s console.Step) bool { return s.File == "" && s.With != with })
}

// followPage does what a page says, with a shell and in a directory.
func followPage(t *testing.T, shell, dir string, steps []console.Step) {
	status := "0"
	for _, s := range steps {
		if s.File != "" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, s.File), []byte(s.Content), 0o755))
			continue
		}
		args := []string{shell, "-c", "(exit " + status + ")\n" + s.Command + "\necho $? >&3"}
		if s.As != "" {
			args = append([]string{"as", s.As}, args...)
		}
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		r, w, err := os.Pipe()
		require.NoError(t, err)
		cmd.ExtraFiles = []*os.File{w}
		printed, err := cmd.CombinedOutput()
		require.NoError(t, err, s.Command)
		w.Close()
		var buf [8]byte
		n, err := r.Read(buf[:])
		require.NoError(t, err)
		r.Close()
		status = strings.TrimSpace(string(buf[:n]))
		t.Logf("line %d: %s\n%s", s.Line, s.Command, printed)
		if !s.Holds(string(printed)) {
			t.Errorf("line %d: %s prints something else:\n%s", s.Line, s.Command, s.Output)
		}
	}
}
