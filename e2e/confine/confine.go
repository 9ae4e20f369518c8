//go:build linux

// Package confine is a command that runs another one with less than the guest
// has: fewer capabilities, less memory, or without some files.
//
//	confine [-root DIR] [-drop CAP,...] [-only CAP,...] [-user UID [-keep CAP,...]] [-memlock BYTES] [-memory BYTES]
//	        [-hide DIR]... [-empty FILE]... [-no SYSCALL] [-stdout FILE] COMMAND ARGS...
//
// With -root the command runs in DIR as in a container: only procfs and a
// read-only sysfs are mounted there. The command replaces confine, so it has
// the same process id.
package confine

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// restrictions holds what the command line asks for, in the order in which the
// restrictions are applied: each must still be possible after those before it.
type restrictions struct {
	stdout  string
	memory  uint64   // limit of a new cgroup, in bytes
	root    string   // directory that becomes the root
	hide    []string // directories that become empty
	empty   []string // files that become empty
	memlock uint64
	drop    []uintptr // capabilities that root loses
	only    []uintptr // capabilities that root keeps, or nil for all
	user    int
	keep    []uintptr // capabilities that the user keeps
	no      string    // system call that fails
}

// Main runs the command and exits.
func Main() {
	// Most restrictions apply to the thread, and the command inherits them.
	runtime.LockOSThread()
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "confine:", err)
		os.Exit(99) // ksnoop never exits with this status
	}
}

func run(args []string) error {
	r, command, err := parse(args)
	if err != nil {
		return err
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	for _, apply := range []func() error{
		r.redirect, r.limitMemory, r.hideFiles, r.enterRoot, r.limitLocked, r.dropCapabilities, r.becomeUser, r.forbidCall,
	} {
		if err := apply(); err != nil {
			return err
		}
	}
	return unix.Exec(path, command, os.Environ())
}

func parse(args []string) (*restrictions, []string, error) {
	r := &restrictions{}
	flags := flag.NewFlagSet("confine", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the returned error has the text
	list := func(to *[]string) func(string) error {
		return func(s string) error {
			*to = append(*to, s)
			return nil
		}
	}
	flags.StringVar(&r.stdout, "stdout", "", "file to write to")
	flags.Uint64Var(&r.memory, "memory", 0, "bytes that a cgroup allows")
	flags.StringVar(&r.root, "root", "", "directory that becomes the root")
	flags.Func("hide", "directory to hide", list(&r.hide))
	flags.Func("empty", "file to empty", list(&r.empty))
	flags.Uint64Var(&r.memlock, "memlock", 0, "RLIMIT_MEMLOCK")
	flags.Func("drop", "capabilities", capabilities(&r.drop))
	flags.Func("only", "capabilities", capabilities(&r.only))
	flags.IntVar(&r.user, "user", 0, "user id")
	flags.Func("keep", "capabilities", capabilities(&r.keep))
	flags.StringVar(&r.no, "no", "", "system call")
	if err := flags.Parse(args); err != nil {
		return nil, nil, err
	}
	if flags.NArg() == 0 {
		return nil, nil, errors.New("a command is wanted")
	}
	return r, flags.Args(), nil
}

// redirect makes a file the standard output.
func (r *restrictions) redirect() error {
	if r.stdout == "" {
		return nil
	}
	f, err := os.OpenFile(r.stdout, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return unix.Dup2(int(f.Fd()), 1)
}

func (r *restrictions) limitLocked() error {
	if r.memlock == 0 {
		return nil
	}
	return unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: r.memlock, Max: r.memlock})
}
