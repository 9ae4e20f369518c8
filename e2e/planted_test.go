//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/vm"
)

// TestPlantedFailure runs a script that is wrong, as the others run: the
// last 40 lines say which test has failed, where, why, and how to repeat it.
func TestPlantedFailure(t *testing.T) {
	onlyWithFull(t)
	t.Parallel()
	requireMachine(t, vm.AMD64)
	kernel := kernelOf(t, oneKernel)
	gotest, err := builtGotest(vm.AMD64)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), gotest, "-logs", t.TempDir(), "-vet=off", "-timeout", "30m", "./e2e",
		"-run", "^TestMatrix$/^"+oneKernel+"$/^planted$", "-scripts", "testdata/planted", "-ksnoop", staticBinary(t, vm.AMD64))
	cmd.Dir, cmd.Env = "..", append(os.Environ(), "KSNOOP_LOGS=") // its log would have the name of another one
	waitForTurn(t, secondsOf(t))
	printed, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 1, cmd.ProcessState.ExitCode())
	lines := strings.SplitAfter(string(printed), "\n")
	last := strings.Join(lines[max(0, len(lines)-40):], "")
	t.Log(last)
	require.Contains(t, last, "TestMatrix/"+oneKernel+"/planted")
	require.Contains(t, last, "kernel "+kernel.Release+", seed 1")
	require.Contains(t, last, "> exec ksnoop info vfs_read")
	require.Contains(t, last, "vfs_read(struct file *file, ") // what it has printed
	require.Contains(t, last, "planted.txtar:4: no match for `vfs_read has no such line` found in stdout")
	require.Contains(t, last, "again: go test ./e2e -run '^TestMatrix$/^"+oneKernel+"$/^planted$' -seed 1")
	require.Contains(t, last, " -scripts=testdata/planted\n")
	require.Regexp(t, `\nFAIL: 1 test failed; logs in .*\n$`, last)
}
