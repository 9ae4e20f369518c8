//go:build linux

// Package script adds the commands to testscript that scripts about a tracer
// need:
//
//	trace OUT ARGS...                         start ksnoop trace ARGS, return once it is attached;
//	                                          its output goes to OUT, its messages to OUT.err;
//	                                          -pipe: to a pipe that nothing reads, see pipe;
//	                                          -command NAME: of ksnoop, instead of trace;
//	                                          -confine OPTIONS: with these options of command confine;
//	                                          -as CAPS: as command as would run it
//	exec as CAPS COMMAND...                   run it as an ordinary user with only these capabilities
//	trace-stop [-signal S] [-status N] [OUT]  send it SIGINT or another signal and wait for status 0 or N,
//	                                          -1 if the signal kills it; -signal none: it ends by itself
//	trace-signal STOP|CONT|TERM OUT           stop it and wait for that; continue it; ask it to end
//	pipe full OUT                             wait until the pipe of trace -pipe is full
//	pipe read OUT                             from now on, copy the pipe's content to OUT
//	pipe close OUT                            close the read end
//	events OUT FUNC N                         OUT has N events of FUNC; also >=N, >N, <N, <=N;
//	                                          without any, FUNC must be a function of this kernel
//	account OUT FUNC N                        as events, including those that OUT.err reports as lost;
//	                                          some are shown, and some are lost
//	functions OUT FILE                        write the functions of all events to a file, in order
//	normalize OUT                             replace what differs between runs, for cmp
//	await [-text REGEXP] FILE [VAR]           wait for FILE, with such text; set VAR to its first line
//	kprobe NAME FUNC [ARG...] [-if FILTER]    count calls of FUNC with the kernel's own tracer, without ksnoop
//	hits NAME N                               NAME's FILTER was true N times, as in events
//	exec jq [OPTION...] FILTER [FILE]         apply a jq filter to FILE, or to stdin
//	exec tty [-columns N] [-interrupt TEXT] COMMAND...  run a command at a terminal: package tty
//	[!] schema NAME FILE...                   each line of the files conforms to docs/NAME.schema.json
//	                                          and has no other members
//	like FILE WANTED                          compare two files; <...> in the second matches any part of a line
//	daytime VAR                               remember the time
//	daytime VAR OUT                           each line of OUT begins with a time of day since then
//	daytime shift DURATION                    set the clock of the day by so much
//	daytime evening                           set it to 20 s before midnight UTC
//	daytime leap                              have a second inserted at midnight UTC, and wait for it
//	status N COMMAND...                       run a command of the guest, which must end with status N
//	peak MB                                   the latest ksnoop has used at most this much memory
//	cgroup-id DIR VAR                         set VAR to the id of a cgroup
//	info-all [N]                              ksnoop info ends for every function of the kernel, or every Nth
//	ids                                       remember the kernel's programs, maps, links and tracefs events
//	ids same                                  no others exist
//	tmpfs DIR SIZE                            mount a file system of this size
//	[!] rmmod MODULE                          unload a module; negated, the kernel refuses because it is in use
//	lockdown LEVEL                            integrity or confidentiality; for scripts that run last
//
// Conditions are [kernel>=6.1], with any of < <= > >= == !=; [full], which is
// true if loops should run at their full length; [func:NAME], which is true
// if ftrace allows a probe on the function; [has:KIND], which is true if the
// kernel attaches fentry, kprobe.multi or kprobe.session programs; [iter:NAME],
// which is true if it has this iterator; [variables],
// which is true if it lists variables among its symbols; [image], which is true
// if the guest has the container image's file system; and [amd64] or [arm64]. The
// variable KERNEL holds the first two numbers of the kernel's version, SYS the prefix
// of the functions of system calls, such as __x64_, R1 to R3 the registers of a
// function's arguments, such as %di, LARGE the flag of open(2) that the kernel sets by
// itself, and READ the number of read(2).
package script

import (
	"os"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// patience bounds every wait, and pause is the time between two checks.
// Software emulation is slow, and each check takes time from the processes that
// the script waits for.
const (
	patience = 3 * time.Minute
	pause    = 20 * time.Millisecond
)

type command = func(ts *testscript.TestScript, neg bool, args []string)

// Options say how scripts run.
type Options struct {
	Schemas  string       // directory of the JSON schemas
	Full     bool         // loops have their full length
	Replay   bool         // what trace prints is recorded, replayed and compared
	Attached func() error // called when a trace is attached; may be nil
}

// Params returns the parameters to run the scripts in dir.
func Params(dir string, o Options) (testscript.Params, error) {
	kernel, err := runningKernel()
	if err != nil {
		return testscript.Params{}, err
	}
	return testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition: func(text string) (bool, error) {
			if text == "full" {
				return o.Full, nil
			}
			if name, ok := strings.CutPrefix(text, "func:"); ok {
				return traceable(name)
			}
			switch text {
			case "variables":
				return variables()
			case "image":
				_, err := os.Stat("/image")
				return err == nil, nil
			}
			if kind, ok := strings.CutPrefix(text, "has:"); ok {
				return has(kind)
			}
			if name, ok := strings.CutPrefix(text, "iter:"); ok {
				return hasIterator(name)
			}
			return kernel.condition(text)
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("KERNEL", kernel.String())
			for name, value := range ofArch() {
				env.Setenv(name, value)
			}
			env.Values[tracersKey{}] = &tracers{attached: o.Attached}
			env.Values[idsKey{}] = new(knownIDs)
			env.Defer(unloadModule)
			recordAll(env, o.Replay)
			return restoreSysctls(env)
		},
		Cmds: map[string]command{
			"trace":        positive(trace),
			"trace-stop":   positive(traceStop),
			"trace-signal": positive(traceSignal),
			"events":       positive(events),
			"functions":    positive(functions),
			"normalize":    positive(normalize),
			"await":        positive(await),
			"daytime":      positive(daytime),
			"kprobe":       positive(kprobe),
			"hits":         positive(hits),
			"schema":       checkLines(o.Schemas),
			"like":         positive(like),
			"status":       positive(status),
			"peak":         positive(peak),
			"cgroup-id":    positive(cgroupID),
			"info-all":     positive(infoAll),
			"pipe":         positive(pipeCommand),
			"account":      positive(account),
			"ids":          positive(ids),
			"tmpfs":        positive(tmpfs),
			"rmmod":        rmmod,
			"lockdown":     positive(lockdown),
		},
	}, nil
}

// positive returns a command that cannot be negated.
func positive(run func(ts *testscript.TestScript, args []string)) command {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg {
			ts.Fatalf("this command cannot be negated")
		}
		run(ts, args)
	}
}

// usage fails the script with the usage of a command unless ok is set.
func usage(ts *testscript.TestScript, ok bool, text string) {
	if !ok {
		ts.Fatalf("usage: %s", text)
	}
}

// unloadModule removes the module that traffic may have loaded, so that every
// script begins without it.
func unloadModule() {
	_ = unix.DeleteModule("dummy", 0) // usually it is not loaded
}
