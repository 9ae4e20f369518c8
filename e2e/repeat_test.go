//go:build linux

package e2e

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/vm"
)

// TestRepeatable boots a small machine twice: everything that it prints is the same,
// times included, and with -full different from what another seed gives. So a test
// that has passed passes again, and a failure is repeated by its seed.
func TestRepeatable(t *testing.T) {
	t.Parallel()
	requireMachine(t, vm.AMD64)
	testRepeatable(t, vm.AMD64)
}

// TestRepeatableARM64 is the same for arm64, of which make test boots one machine only.
func TestRepeatableARM64(t *testing.T) {
	onlyWithFull(t)
	t.Parallel()
	requireMachine(t, vm.ARM64)
	testRepeatable(t, vm.ARM64)
}

func testRepeatable(t *testing.T, arch vm.Arch) {
	qemu, err := vm.QEMU(t.Context(), arch)
	require.NoError(t, err)
	files := append(guestFiles(t, arch), vm.File{Path: guestScripts[1:] + "/repeat.txtar", Source: "testdata/repeat/repeat.txtar"})
	m := vm.Machine{QEMU: qemu, Kernel: kernelFor(t, arch, oneKernel), Files: files, Args: guestArgs("-test.run=^TestGuest$/^repeat$"), Seed: *seed, CPUs: 2}
	first, second := bootOnce(t, m), bootOnce(t, m)
	require.Contains(t, first, "--- PASS: TestGuest/repeat")
	require.Equal(t, first, second)
	if *full {
		m.Seed = *seed + 1
		require.NotEqual(t, first, bootOnce(t, m))
	}
}

// bootOnce returns what a machine has printed until its end.
func bootOnce(t *testing.T, m vm.Machine) string {
	defer waitForTurn(t, secondsOf(t))()
	ctx, cancel := context.WithTimeout(t.Context(), bootLimit())
	defer cancel()
	var output bytes.Buffer
	require.NoError(t, m.Run(ctx, &output), "%s", &output)
	return output.String()
}
