//go:build linux

// Package confine is a command that runs another one with less than the guest
// has: fewer capabilities, less memory, files that are missing.
//
//	confine [-root DIR] [-drop CAP,...] [-only CAP,...] [-user UID [-keep CAP,...]] [-memlock BYTES] [-memory BYTES]
//	        [-hide DIR]... [-empty FILE]... [-no SYSCALL] [-stdout FILE] COMMAND ARGS...
//
// With -root the command is in DIR as in a container: procfs and a sysfs that
// cannot be written are mounted there, and nothing else. The command replaces
// confine: it has its process id.
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

// restrictions are what the command line asks for, in the order in which they
// are put in place: each must still be possible after those before it.
type restrictions struct {
	stdout  string
	memory  uint64   // of a cgroup
	root    string   // directory that becomes the root
	hide    []string // directories that become empty
	empty   []string // files that become empty
	memlock uint64
	drop    []uintptr // capabilities that root does without
	only    []uintptr // capabilities that root keeps; nil: all others
	user    int
	keep    []uintptr // capabilities that the user has nevertheless
	no      string    // system call that is not permitted
}

// Main runs the command and exits.
func Main() {
	// Most restrictions are the thread's, which the command inherits.
	runtime.LockOSThread()
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "confine:", err)
		os.Exit(99) // no status of ksnoop's
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
	flags.SetOutput(io.Discard) // the error says it
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
