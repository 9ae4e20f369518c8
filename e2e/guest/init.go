//go:build linux

// Package guest is the first process of the virtual machine. The program that
// should run inside begins with
//
//	if guest.IsInit() {
//		guest.Init()
//	}
//
// and is started again as an ordinary process with init's arguments, in a
// system with mounted file systems and a loopback interface that is up.
package guest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// inside is set in the environment of the processes in the guest.
const inside = "KSNOOP_GUEST"

// Inside reports whether this process runs in the guest.
func Inside() bool {
	return os.Getenv(inside) != ""
}

// IsInit reports whether this process is the first one of the guest. In a
// container a program may have the process id 1 as well, but not this name.
func IsInit() bool {
	return os.Getpid() == 1 && os.Args[0] == "/init"
}

// Init sets the guest up, runs the program again as a child, and stops the
// machine with the child's exit status.
func Init() {
	status, err := run()
	if err != nil {
		fmt.Println("init:", err) // printed among the kernel's messages
	}
	exit(status)
}

func run() (status int, err error) {
	if err := mountAll(); err != nil {
		return 1, err
	}
	if err := startCPUs(); err != nil {
		return 1, err
	}
	if err := loopbackUp(); err != nil {
		return 1, err
	}
	results, err := openSerial("/dev/ttyS1")
	if err != nil {
		return 1, err
	}
	defer drain(results)
	cmd := exec.Command("/init", os.Args[1:]...)
	cmd.Env = []string{"PATH=/bin", "HOME=/tmp", "TMPDIR=/tmp", inside + "=1"}
	cmd.Stdout, cmd.Stderr = results, results
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit) && exit.Exited():
		return exit.ExitCode(), nil
	}
	return 1, err
}

// exit sends the status to the host and stops the machine.
func exit(status int) {
	port, err := openSerial("/dev/ttyS2")
	if err != nil {
		fmt.Println("init:", err)
	} else {
		fmt.Fprint(port, status)
		drain(port)
	}
	unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}
