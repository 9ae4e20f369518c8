//go:build linux

// Command demo shows ksnoop at work where tracing is not allowed or not wanted:
// it boots a Debian kernel under software emulation, traces UDP packets in it
// and prints the events.
//
//	go run ./e2e/demo
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"

	"github.com/ksnoop/ksnoop/e2e/guest"
	"github.com/ksnoop/ksnoop/e2e/traffic"
	"github.com/ksnoop/ksnoop/e2e/vm"
)

const spec = "ip_send_skb(skb->len > 100, skb, return)"

// main runs one of four programs: the one that the user starts, the guest's
// init, the one that traces in the guest, and the one that is traced there.
func main() {
	if guest.IsInit() {
		guest.Init()
	}
	show := boot
	switch {
	case guest.Inside() && len(os.Args) > 1:
		traffic.Main()
		return
	case guest.Inside():
		show = trace
	}
	if err := show(); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// boot boots a kernel with ksnoop and this program.
func boot() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := vm.Check(vm.AMD64); err != nil {
		return err
	}
	qemu, err := vm.QEMU(ctx, vm.AMD64)
	if err != nil {
		return err
	}
	kernel, err := vm.NewCache().Kernel(ctx, vm.Suite{Name: "trixie", Line: "6.12", Arch: vm.AMD64})
	if err != nil {
		return err
	}
	files, remove, err := programs(ctx)
	if err != nil {
		return err
	}
	defer remove()
	fmt.Printf("Booting %s. Where tracing is allowed, this does the same:\n\n\tsudo ./ksnoop trace '%s'\n\n", kernel.Release, spec)
	return vm.Machine{QEMU: qemu, Kernel: kernel, Files: files}.Run(ctx, os.Stdout)
}

// programs builds ksnoop and returns it with this program, which is static too
// because nothing in it needs cgo.
func programs(ctx context.Context) (files []vm.File, remove func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "ksnoop-demo-")
	if err != nil {
		return nil, nil, err
	}
	ksnoop, err := vm.BuildKsnoop(ctx, dir)
	if err != nil {
		os.RemoveAll(dir)
		return nil, nil, err
	}
	files = []vm.File{{Path: "init", Source: self}, {Path: "bin/ksnoop", Source: ksnoop}}
	return files, func() { os.RemoveAll(dir) }, nil
}

// trace traces this program while it sends datagrams. The first line of
// ksnoop's output shows that it is attached.
func trace() error {
	cmd := exec.Command("/bin/ksnoop", "trace", spec)
	cmd.Stderr = os.Stdout
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(stdout)
	if lines.Scan() {
		fmt.Println(lines.Text())
		if err := exec.Command("/init", "udp", "-n", "3", "-size", "100").Run(); err != nil {
			return fmt.Errorf("send datagrams: %w", err)
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			return err
		}
	}
	for lines.Scan() {
		fmt.Println(lines.Text())
	}
	return cmd.Wait()
}
