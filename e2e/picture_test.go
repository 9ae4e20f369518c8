//go:build linux

package e2e

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/vm"
)

// TestCast checks that the commands of the README's moving picture print what it shows.
func TestCast(t *testing.T) {
	onlyWithFull(t)
	requireMachine(t, vm.AMD64)
	cmd := exec.CommandContext(t.Context(), "go", "run", "./e2e/cast", "-check")
	cmd.Dir = ".."
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
