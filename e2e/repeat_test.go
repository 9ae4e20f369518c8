//go:build linux

package e2e

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/vm"
)

// TestRepeatable boots a small machine twice: everything that it prints is the same,
// times included, even if it is read slowly, and different from what another seed gives. So
// a test that has passed passes again, and a failure is repeated by its seed.
func TestRepeatable(t *testing.T) {
	onlyWithFull(t)
	t.Parallel()
	requireMachine(t, vm.AMD64)
	testRepeatable(t, vm.AMD64, 1)
}

// TestRepeatableTwo is the same for two CPUs, of which the host must not choose the one
// that goes first.
func TestRepeatableTwo(t *testing.T) {
	onlyWithFull(t)
	t.Parallel()
	requireMachine(t, vm.AMD64)
	if err := vm.TakesTurns(); err != nil {
		t.Skip(err)
	}
	testRepeatable(t, vm.AMD64, 2)
}

// TestRepeatableARM64 is the same for arm64, of which make test boots one machine only.
func TestRepeatableARM64(t *testing.T) {
	onlyWithFull(t)
	t.Parallel()
	requireMachine(t, vm.ARM64)
	testRepeatable(t, vm.ARM64, 1)
}

func testRepeatable(t *testing.T, arch vm.Arch, cpus int) {
	qemu, err := vm.QEMU(t.Context(), arch)
	require.NoError(t, err)
	if err := vm.Repeats(); err != nil && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	require.NoError(t, vm.Repeats())
	files := append(guestFiles(t, arch), vm.File{Path: guestScripts[1:] + "/repeat.txtar", Source: "testdata/repeat/repeat.txtar"})
	m := vm.Machine{QEMU: qemu, Kernel: kernelFor(t, arch, oneKernel), Files: files, Args: guestArgs("-test.run=^TestGuest$/^repeat$"), Seed: *seed, CPUs: cpus}
	first, second := bootOnce(t, m, 0), bootOnce(t, m, 200*time.Millisecond)
	require.Contains(t, first, "--- PASS: TestGuest/repeat")
	require.Greater(t, len(first), 64<<10) // more than a pipe holds
	require.True(t, first == second, "at byte %d: %.200q and %.200q", differ(first, second), first[differ(first, second):], second[differ(first, second):])
	m.Seed = *seed + 1
	require.NotEqual(t, first, bootOnce(t, m, 0))
}

// differ returns the index of the first byte in which two texts differ.
func differ(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// slow is a writer that takes its time.
type slow struct {
	text bytes.Buffer
	wait time.Duration
}

func (s *slow) Write(p []byte) (int, error) {
	time.Sleep(s.wait)
	return s.text.Write(p)
}

// bootOnce returns what a machine has printed until its end, which is read in pieces
// with waits between them.
func bootOnce(t *testing.T, m vm.Machine, wait time.Duration) string {
	defer waitForTurn(t, secondsOf(t))()
	ctx, cancel := context.WithTimeout(t.Context(), bootLimit())
	defer cancel()
	output := slow{wait: wait}
	require.NoError(t, m.Run(ctx, &output), "%s", &output.text)
	return output.text.String()
}
