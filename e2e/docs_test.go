//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/console"
	"github.com/ksnoop/ksnoop/e2e/guest"
	"github.com/ksnoop/ksnoop/e2e/vm"
)

// TestDocs runs the examples of the README and of docs, page by page, in a
// virtual machine with a shell. It checks that they print what the page shows.
func TestDocs(t *testing.T) {
	t.Parallel()
	requireMachine(t, vm.AMD64)
	busybox, err := fetchBusybox()
	require.NoError(t, err)
	files := []vm.File{
		{Path: "busybox/busybox", Source: busybox}, {Path: guestReadme[1:], Source: "../README.md"},
		{Path: guestExamples[1:], Source: built(t, builtExamples, vm.AMD64)},
	}
	pages, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	for _, page := range pages {
		files = append(files, vm.File{Path: guestPages[1:] + "/" + filepath.Base(page), Source: page})
	}
	testOne(t, vm.Machine{Files: files}, selectedBelow("^TestGuestDocs$", 1))
}

// guestPages is the directory of the documentation in the guest: all pages, or
// only the schemas.
const guestPages = "/docs"

// guestReadme is the README in the guest.
const guestReadme = "/README.md"

// guestExamples is the test binary of package runtime in the guest. The examples of
// library.md are in its source.
const guestExamples = "/bin/runtime.test"

// TestGuestDocs runs in the machine that TestDocs boots.
func TestGuestDocs(t *testing.T) {
	if !guest.Inside() {
		t.Skip("runs inside a virtual machine, see TestDocs")
	}
	installShell(t)
	pages, err := filepath.Glob(guestPages + "/*.md")
	require.NoError(t, err)
	for _, page := range append([]string{guestReadme}, pages...) {
		if steps := stepsWith(t, page, ""); len(steps) > 0 {
			t.Run(filepath.Base(page), func(t *testing.T) {
				logCPU(t)
				followPage(t, "/busybox/sh", t.TempDir(), steps)
			})
		}
	}
	t.Run("library.md", runExamples)
}

// runExamples runs the examples of library.md by the test that checks what they print.
// That test skips what the kernel does not allow: here it must not.
func runExamples(t *testing.T) {
	logCPU(t)
	require.NoError(t, os.MkdirAll("/etc", 0o755))
	require.NoError(t, os.WriteFile("/etc/hostname", []byte("guest\n"), 0o644))
	out, err := exec.CommandContext(t.Context(), guestExamples, "-test.v", "-test.run=^TestExamples$").CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
	for _, name := range []string{"Trace", "Options"} {
		require.Contains(t, string(out), "--- PASS: TestExamples/"+name)
	}
}

// installShell gives the guest a shell with its usual commands and the commands
// of the tests.
func installShell(t *testing.T) {
	require.NoError(t, exec.Command("/busybox/busybox", "--install", "-s", "/busybox").Run())
	require.NoError(t, os.Symlink("/busybox/sh", "/bin/sh"))
	t.Setenv("PATH", os.Getenv("PATH")+":/busybox")
}

// stepsWith returns the files of a page, and the commands that need what with
// names, or those that need nothing if with is empty.
func stepsWith(t *testing.T, page, with string) []console.Step {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	steps, err := console.Read(string(text))
	require.NoError(t, err, page)
	return slices.DeleteFunc(steps, func(s console.Step) bool { return s.File == "" && s.With != with })
}

// missedNow matches the lines about calls that the kernel skipped because an interrupt came
// while a program ran. Their number differs from one release of the kernel to the next.
var missedNow = regexp.MustCompile(`(?m)^ksnoop: missed \d+ calls? of .*: the kernel skipped (it|them), as (a|the) program was running on that CPU already\b.*\n`)

// followPage runs the steps of a page with a shell, in a directory, and with
// additional environment variables.
func followPage(t *testing.T, shell, dir string, steps []console.Step, env ...string) {
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
		cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
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
		if !s.Holds(missedNow.ReplaceAllString(string(printed), "")) {
			t.Errorf("line %d: %s prints something else:\n%s", s.Line, s.Command, s.Output)
		}
	}
}
