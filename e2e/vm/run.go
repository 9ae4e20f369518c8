//go:build linux

package vm

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// Run boots the machine and copies what the guest writes to its second serial
// port to output. It returns nil if the guest ended with status 0. Any other
// error includes the kernel's messages.
func (m Machine) Run(ctx context.Context, output io.Writer) error {
	dir, err := os.MkdirTemp("", "ksnoop-vm-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	modules, err := m.Kernel.modules()
	if err != nil {
		return err
	}
	if err := writeInitrd(filepath.Join(dir, initrdFile), append(modules, m.Files...)); err != nil {
		return fmt.Errorf("write initramfs: %w", err)
	}
	if err := runQEMU(exec.CommandContext(ctx, m.QEMU, m.arguments(dir)...), output); err != nil {
		return m.explain(cmp.Or(ctx.Err(), err), dir)
	}
	status, err := os.ReadFile(filepath.Join(dir, statusFile))
	switch {
	case err != nil:
		return m.explain(err, dir)
	case len(status) == 0:
		return m.explain(errors.New("the guest stopped without a status"), dir)
	case string(status) != "0":
		return m.explain(fmt.Errorf("the guest ended with status %s", status), dir)
	}
	return nil
}

// runQEMU runs QEMU until it ends. If this program is killed, so is QEMU: the
// kernel sends the signal when the thread that started QEMU ends, so runQEMU
// locks the thread.
func runQEMU(cmd *exec.Cmd, output io.Writer) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = output, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run QEMU: %w\n%s", err, stderr.Bytes())
	}
	return nil
}

// explain adds the kernel's messages to the reason why a run failed.
func (m Machine) explain(reason error, dir string) error {
	console, err := os.ReadFile(filepath.Join(dir, consoleFile))
	if err != nil {
		return errors.Join(reason, err)
	}
	if bytes.Contains(console, []byte("Kernel panic")) {
		reason = fmt.Errorf("kernel panic: %w", reason)
	}
	text := strings.ReplaceAll(string(console), "\r", "")
	return fmt.Errorf("run %s: %w\nkernel messages:\n%s", m.Kernel.Release, reason, text)
}
