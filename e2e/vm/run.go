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
	"time"
)

// Run boots the machine and copies what the guest writes to its second serial
// port to output. It returns nil if the guest ended with status 0. Once QEMU was
// started, an error includes the kernel's messages.
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
	image, err := m.image()
	if err != nil {
		return err
	}
	start := (*exec.Cmd).Start
	if m.cpus() > 1 {
		start = startInTurns
	}
	if err := runQEMU(exec.CommandContext(ctx, m.QEMU, m.arguments(image, dir)...), start, filepath.Join(dir, outputFile), output); err != nil {
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

// runQEMU runs QEMU until it ends, and copies what it has written to a file to output.
func runQEMU(cmd *exec.Cmd, start func(*exec.Cmd) error, name string, output io.Writer) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer file.Close()
	ended := make(chan error, 1)
	go func() { ended <- runAlone(cmd, start) }()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for running := true; running; {
		select {
		case err = <-ended:
			running = false
		case <-tick.C:
		}
		if _, copied := io.Copy(output, file); copied != nil {
			return errors.Join(err, copied)
		}
	}
	return err
}

// runAlone runs QEMU until it ends. If this program is killed, so is QEMU: the
// kernel sends the signal when the thread that started QEMU ends, so runAlone
// locks the thread.
func runAlone(cmd *exec.Cmd, start func(*exec.Cmd) error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Env = append(os.Environ(), stoppedClock()...)
	err := start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("run QEMU: %w\n%s", err, &out)
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
