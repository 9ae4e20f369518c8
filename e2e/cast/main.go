//go:build linux

// Command cast makes the moving picture of the README. It boots a Debian kernel under
// software emulation, types commands at a shell there, and draws what the terminal has
// shown:
//
//	go run ./e2e/cast            records and draws
//	go run ./e2e/cast -draw      draws the recording that there is
//	go run ./e2e/cast -check     records, and compares with the recording that there is
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/ksnoop/ksnoop/e2e/guest"
	"github.com/ksnoop/ksnoop/e2e/vm"
)

// The files that are written, from the top of the repository.
const (
	recordingFile = "e2e/cast/testdata/ksnoop.cast"
	pictureFile   = "docs/ksnoop.svg"
)

func main() {
	if guest.IsInit() {
		guest.Init()
	}
	act := perform
	if guest.Inside() {
		act = performInside
	}
	if err := act(); err != nil {
		fmt.Fprintln(os.Stderr, "cast:", err)
		os.Exit(1)
	}
}

// perform writes the recording and the picture.
func perform() error {
	onlyDraw, onlyCheck := flag.Bool("draw", false, ""), flag.Bool("check", false, "")
	flag.Parse()
	if !*onlyDraw {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		text, err := boot(ctx)
		if err != nil {
			return err
		}
		if *onlyCheck {
			return verify(text)
		}
		if err := os.WriteFile(recordingFile, text, 0o644); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(recordingFile)
	if err != nil {
		return err
	}
	picture, err := draw(text)
	if err != nil {
		return err
	}
	return os.WriteFile(pictureFile, picture, 0o644)
}

// boot boots a kernel with ksnoop, a shell and this program, and returns the file of the
// recording that is made there.
func boot(ctx context.Context) ([]byte, error) {
	if err := vm.Check(vm.AMD64); err != nil {
		return nil, err
	}
	qemu, err := vm.QEMU(ctx, vm.AMD64)
	if err != nil {
		return nil, err
	}
	kernel, err := vm.NewCache().Kernel(ctx, vm.Suite{Name: "trixie", Line: "6.12", Arch: vm.AMD64})
	if err != nil {
		return nil, err
	}
	busybox, err := vm.NewCache().Busybox(ctx)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "ksnoop-cast-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ksnoop, err := vm.BuildKsnoop(ctx, dir)
	if err != nil {
		return nil, err
	}
	files := []vm.File{{Path: "init", Source: self}, {Path: "bin/ksnoop", Source: ksnoop}, {Path: "busybox/busybox", Source: busybox}}
	var out bytes.Buffer
	if err := (vm.Machine{QEMU: qemu, Kernel: kernel, Files: files}).Run(ctx, &out); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, &out)
	}
	return out.Bytes(), nil
}

// performInside records the scenario and prints the file of the recording.
func performInside() error {
	if err := exec.Command("/busybox/busybox", "--install", "-s", "/busybox").Run(); err != nil {
		return fmt.Errorf("install the shell: %w", err)
	}
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "connect.probes"), []byte(probes), 0o644); err != nil {
		return err
	}
	shell := exec.Command("/busybox/sh", "-i")
	shell.Dir = dir
	shell.Env = []string{"PATH=/bin:/busybox", "HOME=" + dir, "TERM=xterm", "PS1=" + prompt}
	recording, err := typist{45 * time.Millisecond, 900 * time.Millisecond}.record(shell, scenario)
	if err != nil {
		return err
	}
	_, err = recording.WriteTo(os.Stdout)
	return err
}
