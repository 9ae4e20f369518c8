//go:build linux

// Package traffic is a command that makes kernel function calls which a test
// can count: each kind makes exactly n of them, with a known size, by raw
// system calls. It prints nothing.
//
//	traffic KIND [-n N] [-size BYTES] [-file FILE] [-pid FILE] [-tid FILE] [-wait FILE] [-then FILE]
//		[-comm NAME] [-cgroup DIRECTORY] [-uid N] [ARGUMENT]
//
// The Go runtime makes its own calls when it starts, so tests distinguish the
// calls by their size or by the process, not by their total.
package traffic

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// kinds maps the kinds to their functions, whose comments name the calls in the
// kernel.
var kinds = map[string]func(*options) error{
	"blocked":   blocked,
	"commands":  commands,
	"contained": contained,
	"container": container,
	"die":       die,
	"dummy":     dummy,
	"eagain":    eagain,
	"ends":      ends,
	"escapes":   escapes,
	"exit":      exit,
	"family":    family,
	"heir":      heir,
	"inherited": inherited,
	"interrupt": interrupt,
	"killed":    killed,
	"letters":   letters,
	"open":      open,
	"outlived":  outlived,
	"poll":      poll,
	"read":      read,
	"ready-fd":  readyFD,
	"replaced":  replaced,
	"replacing": replacing,
	"signalled": signalled,
	"sleep":     sleep,
	"sockopt":   sockopt,
	"stat":      stat,
	"task-work": taskWork,
	"tcp":       tcp,
	"term":      term,
	"threads":   threads,
	"udp":       udp,
	"udp6":      udp6,
	"victims":   victims,
	"splice":    splice,
	"write":     write,
	"seek":      seek,
}

// options holds the options of all kinds. A kind calls start before it makes
// its calls.
type options struct {
	n    int
	size int
	file string
	arg  string

	pid, tid, wait string // see start
	then           string // file to make after the last call

	comm, cgroup string // see become
	uid          int
	hold         string // see family
	ancestor     int    // for processes of family: the parent's id at the start
}

// Main runs the command and exits. One thread makes the calls, unless the kind
// is about threads.
func Main() {
	LockThread()
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "traffic:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	var name string
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	kind, ok := kinds[name]
	if !ok {
		known := strings.Join(slices.Sorted(maps.Keys(kinds)), " ")
		return fmt.Errorf("unknown kind %q, known: %s", name, known)
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	if err := o.become(); err != nil {
		return err
	}
	if err := kind(o); err != nil {
		return fmt.Errorf("make %s traffic: %w", name, err)
	}
	if o.then != "" {
		return os.WriteFile(o.then, nil, 0o644)
	}
	return nil
}

// parse parses the options, which may precede or follow the argument.
func parse(args []string) (*options, error) {
	var o options
	flags := flag.NewFlagSet("traffic", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the returned error has the text
	flags.IntVar(&o.n, "n", 1, "how many calls")
	flags.IntVar(&o.size, "size", 64, "bytes in each call")
	flags.StringVar(&o.file, "file", "", "file to use instead of the kind's own")
	flags.StringVar(&o.pid, "pid", "", "file to write the process id to")
	flags.StringVar(&o.tid, "tid", "", "file to write the id of the thread that makes the first call to")
	flags.StringVar(&o.comm, "comm", "", "name to take")
	flags.StringVar(&o.cgroup, "cgroup", "", "directory of the cgroup to move to")
	flags.IntVar(&o.uid, "uid", 0, "user to become")
	flags.StringVar(&o.hold, "hold", "", "file that the second process makes")
	flags.IntVar(&o.ancestor, "ancestor", 0, "")
	flags.StringVar(&o.wait, "wait", "", "file to wait for before the first call")
	flags.StringVar(&o.then, "then", "", "file to make after the last call")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		o.arg = flags.Arg(0)
		if err := flags.Parse(flags.Args()[1:]); err != nil {
			return nil, err
		}
	}
	if flags.NArg() > 0 {
		return nil, errors.New("more than one argument")
	}
	return &o, nil
}
