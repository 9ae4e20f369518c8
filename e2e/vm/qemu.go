package vm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"sync"
)

// Check returns an error if this machine lacks something to boot kernels of the
// architecture.
func Check(a Arch) error {
	if platform := runtime.GOOS + "/" + runtime.GOARCH; platform != "linux/amd64" {
		return fmt.Errorf("booting kernels needs linux/amd64, this is %s", platform)
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("fetching kernels needs apt: %w", err)
	}
	if _, err := os.Stat(keyring); err != nil {
		return fmt.Errorf("verifying kernels needs debian-archive-keyring: %w", err)
	}
	qemu, _ := a.qemu()
	if _, err := exec.LookPath(qemu); err != nil && os.Geteuid() != 0 {
		return fmt.Errorf("installing QEMU needs root: %w", err)
	}
	return nil
}

// QEMU returns the path of the architecture's QEMU, which it installs if it is
// missing, with the library that stops its clock.
func QEMU(ctx context.Context, a Arch) (string, error) {
	program, pkg := a.qemu()
	path, err := Install(ctx, program, pkg)
	if err != nil {
		return "", err
	}
	return path, installClock(ctx)
}

// installing is held while apt changes the machine: it does that once at a time.
var installing sync.Mutex

// Install returns the path of a program. If the program is missing, it installs
// the package, which requires root.
func Install(ctx context.Context, program, pkg string) (string, error) {
	installing.Lock()
	defer installing.Unlock()
	path, err := exec.LookPath(program)
	if err == nil || !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	if err := install(ctx, pkg); err != nil {
		return "", err
	}
	return exec.LookPath(program)
}

// installClock installs the library of stoppedClock if it is missing and this user can.
func installClock(ctx context.Context) error {
	installing.Lock()
	defer installing.Unlock()
	if clockLibrary() != "" || os.Geteuid() != 0 {
		return nil
	}
	return install(ctx, "libfaketime")
}

// install installs a package by apt. The caller holds installing.
func install(ctx context.Context, pkg string) error {
	for _, args := range [][]string{
		{"update"},
		{"install", "-y", "--no-install-recommends", pkg},
	} {
		args = append([]string{"-o", "Acquire::Retries=3", "-o", "DPkg::Lock::Timeout=300"}, args...) // another program may use it now
		if _, err := output(exec.CommandContext(ctx, "apt-get", args...)); err != nil {
			return err
		}
	}
	return nil
}
