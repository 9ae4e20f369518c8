package vm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
)

const qemu = "qemu-system-x86_64"

// Check reports what this machine lacks for booting kernels, nil for nothing.
func Check() error {
	if platform := runtime.GOOS + "/" + runtime.GOARCH; platform != "linux/amd64" {
		return fmt.Errorf("booting kernels needs linux/amd64, this is %s", platform)
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("fetching kernels needs apt: %w", err)
	}
	if _, err := os.Stat(keyring); err != nil {
		return fmt.Errorf("verifying kernels needs debian-archive-keyring: %w", err)
	}
	if _, err := exec.LookPath(qemu); err != nil && os.Geteuid() != 0 {
		return fmt.Errorf("installing QEMU needs root: %w", err)
	}
	return nil
}

// QEMU returns the path of QEMU, which it installs if it is missing.
func QEMU(ctx context.Context) (string, error) {
	return Install(ctx, qemu, "qemu-system-x86")
}

// Install returns the path of a program, whose package it installs if it is
// missing. That takes root.
func Install(ctx context.Context, program, pkg string) (string, error) {
	path, err := exec.LookPath(program)
	if err == nil || !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	for _, args := range [][]string{
		{"update"},
		{"install", "-y", "--no-install-recommends", pkg},
	} {
		if _, err := output(exec.CommandContext(ctx, "apt-get", args...)); err != nil {
			return "", err
		}
	}
	return exec.LookPath(program)
}
