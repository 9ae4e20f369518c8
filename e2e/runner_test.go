//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/console"
	"github.com/ksnoop/ksnoop/e2e/vm"
)

// TestVirtualMachineRunner runs the script of docs/ci.md that runs commands in
// a virtual machine, word for word, with QEMU, busybox and ksnoop in the PATH.
// It covers a test that passes, one that fails, and a kernel that dies.
func TestVirtualMachineRunner(t *testing.T) {
	onlyWithFull(t)
	t.Parallel()
	requireMachine(t, vm.AMD64)
	qemu, err := vm.QEMU(t.Context(), vm.AMD64)
	require.NoError(t, err)
	busybox, err := fetchBusybox()
	require.NoError(t, err)
	ksnoop, err := filepath.Abs(staticBinary(t, vm.AMD64))
	require.NoError(t, err)
	dir, bin := t.TempDir(), t.TempDir()
	for link, to := range map[string]string{
		filepath.Join(dir, "bzImage"):            filepath.Join(kernelOf(t, oneKernel).Dir, "vmlinuz"),
		filepath.Join(bin, "qemu-system-x86_64"): qemu,
		filepath.Join(bin, "busybox"):            busybox,
		filepath.Join(bin, "ksnoop"):             ksnoop,
	} {
		require.NoError(t, os.Symlink(to, link))
	}
	steps := stepsWith(t, "../docs/ci.md", "qemu")
	require.True(t, slices.ContainsFunc(steps, func(s console.Step) bool { return s.Command != "" }))
	waitForTurn(t, secondsOf(t))
	followPage(t, "/bin/sh", dir, steps, "PATH="+bin+":"+os.Getenv("PATH"),
		"ACCEL=tcg,thread=single") // the page says that its output was made with this
}
