//go:build linux

// Package as is a command that runs another command as an ordinary user, or
// with restrictions:
//
//	as CAPS[,RESTRICTION...] COMMAND...
//
// CAPS are names of capabilities without CAP_, or none, or root, which does not
// change the user. The variable restrictions lists the others. userns and pidns
// alone stand for root in a namespace of that kind.
package as

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// user is the id of the user that runs the command. lockedMemory is the limit
// of locked memory, in bytes, that kernels before 5.16 give to everybody.
const (
	user         = 1000
	lockedMemory = 64 << 10
)

// capabilities lists the capabilities that the command as can give.
var capabilities = map[string]int{
	"bpf": unix.CAP_BPF, "dac_read_search": unix.CAP_DAC_READ_SEARCH, "perfmon": unix.CAP_PERFMON,
	"sys_admin": unix.CAP_SYS_ADMIN, "sys_resource": unix.CAP_SYS_RESOURCE, "syslog": unix.CAP_SYSLOG,
}

// Main runs the command and exits.
func Main() {
	runtime.LockOSThread() // credentials belong to a thread
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "as:", err)
		os.Exit(126)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("want capabilities and a command")
	}
	if flag, ok := namespaces[args[0]]; ok {
		return inNamespace(flag, args[1:])
	}
	path, err := exec.LookPath(args[1])
	if err != nil {
		return err
	}
	var caps []int
	root := false
	for word := range strings.SplitSeq(args[0], ",") {
		restrict, restricts := restrictions[word]
		number, known := capabilities[word]
		switch {
		case word == "root":
			root = true
		case known:
			caps = append(caps, number)
		case restricts:
			if err := restrict(); err != nil {
				return fmt.Errorf("%s: %w", word, err)
			}
		case word != "none":
			return fmt.Errorf("there is no capability or restriction %q", word)
		}
	}
	if !root {
		if err := becomeUser(caps); err != nil {
			return err
		}
	}
	return syscall.Exec(path, args[1:], os.Environ())
}

// becomeUser gives this thread the credentials of an ordinary user, with
// capabilities that survive the next exec.
func becomeUser(caps []int) error {
	if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
		return err
	}
	locked := unix.Rlimit{Cur: lockedMemory, Max: lockedMemory}
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &locked); err != nil {
		return err
	}
	for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
		if _, _, errno := unix.RawSyscall(call, user, user, user); errno != 0 {
			return errno
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	for _, c := range caps {
		bit := uint32(1) << (c % 32)
		data[c/32].Effective |= bit
		data[c/32].Permitted |= bit
		data[c/32].Inheritable |= bit
	}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return err
	}
	for _, c := range caps {
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, uintptr(c), 0, 0); err != nil {
			return err
		}
	}
	return nil
}

// restrictions lists what the command as can take away, before it changes the
// user.
var restrictions = map[string]func() error{
	"no-tracefs": noTracefs,
	"no-bpf":     noBPF,
	"no-int":     noInterrupts,
}

// noInterrupts makes the command begin with SIGINT ignored, as a shell does in the
// background.
func noInterrupts() error {
	signal.Ignore(os.Interrupt)
	return nil
}

// noTracefs hides the contents of /sys/kernel/debug and /sys/kernel/tracing
// from the command alone.
func noTracefs() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	for _, dir := range []string{"/sys/kernel/debug", "/sys/kernel/tracing"} {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			return err
		}
	}
	return nil
}

// noBPF makes bpf(2) fail as the profile of a container engine does.
func noBPF() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	const number = 0 // offset in struct seccomp_data
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_BPF},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}

// namespaces lists the namespaces that only a new process can enter.
var namespaces = map[string]uintptr{"pidns": unix.CLONE_NEWPID, "userns": unix.CLONE_NEWUSER}

// inNamespace runs a command as root in a new namespace.
func inNamespace(flag uintptr, args []string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flag}
	if flag == unix.CLONE_NEWUSER {
		ids := []syscall.SysProcIDMap{{Size: 1 << 16}}
		cmd.SysProcAttr.UidMappings, cmd.SysProcAttr.GidMappings = ids, ids
	}
	if err := cmd.Run(); cmd.ProcessState == nil {
		return err
	}
	os.Exit(cmd.ProcessState.ExitCode())
	return nil
}
