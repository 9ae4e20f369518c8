//go:build linux

// Package script adds to testscript what scripts about a tracer need. Commands:
//
//	trace OUT ARGS...                         start ksnoop trace ARGS, return once it is attached;
//	                                          its output goes to OUT, its messages to OUT.err;
//	                                          -pipe: to a pipe that nobody reads, see pipe;
//	                                          -confine OPTIONS: under these of command confine;
//	                                          -as CAPS: as command as would run it
//	exec as CAPS COMMAND...                   run it as an ordinary user with these capabilities alone
//	trace-stop [-signal S] [-status N] [OUT]  send it SIGINT or another signal and wait for status 0 or N,
//	                                          -1 if the signal kills it; -signal none: it ends by itself
//	trace-signal STOP|CONT|TERM OUT           halt it, let it go on, or ask it to end and do not wait
//	pipe full OUT                             wait until nothing more fits into the pipe of trace -pipe
//	pipe read OUT                             from now on, copy what is in it to OUT
//	pipe close OUT                            close the end that could be read
//	events OUT FUNC N                         OUT has N events of FUNC; also >=N, >N, <N, <=N
//	account OUT FUNC N                        as events, with those that OUT.err says are lost; some are
//	functions OUT FILE                        write the functions of all events to a file, in order
//	normalize OUT                             replace what differs from run to run, for cmp
//	await [-text REGEXP] FILE [VAR]           wait for FILE, with such text; set VAR to its first line
//	kprobe NAME FUNC [ARG...] [-if FILTER]    count calls of FUNC as the kernel itself does, without ksnoop
//	hits NAME N                               NAME's FILTER was true N times, as in events
//	exec jq [OPTION...] FILTER [FILE]         what jq makes of FILE, or of stdin
//	[!] schema NAME FILE...                   each line of the files is as docs/NAME.schema.json says,
//	                                          and has no other members
//	like FILE WANTED                          compare two files; <...> in the second is any part of a line
//	daytime VAR                               remember the time
//	daytime VAR OUT                           each line of OUT begins with a time of day since then
//	status N COMMAND...                       run a command of the guest, which must end with status N
//	peak MB                                   the latest ksnoop has used at most this much memory
//	cgroup-id DIR VAR                         set VAR to the id of a cgroup
//	info-all                                  ksnoop info ends for every function of the kernel
//	ids                                       remember the kernel's programs, maps, links and tracefs events
//	ids same                                  nothing has been added to them
//	tmpfs DIR SIZE                            a file system that holds so much
//	[!] rmmod MODULE                          unload a module; or the kernel says that it is in use
//	lockdown LEVEL                            integrity or confidentiality; for scripts that run last
//
// Conditions are [kernel>=6.1], with any of < <= > >= == !=. The variable
// KERNEL holds the first two numbers of the kernel's version.
package script

import (
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// patience bounds every wait. Software emulation is slow.
const patience = time.Minute

type command = func(ts *testscript.TestScript, neg bool, args []string)

// Params returns what runs the scripts in dir; schemas of JSON are in another
// directory.
func Params(dir, schemas string) (testscript.Params, error) {
	kernel, err := runningKernel()
	if err != nil {
		return testscript.Params{}, err
	}
	return testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition:           kernel.condition,
		Setup: func(env *testscript.Env) error {
			env.Setenv("KERNEL", kernel.String())
			env.Values[tracersKey{}] = new(tracers)
			env.Values[idsKey{}] = new(knownIDs)
			env.Defer(unloadModule)
			if err := restoreSysctls(env); err != nil {
				return err
			}
			return nil
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
			"schema":       checkLines(schemas),
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

// positive makes a command of a function. None of ours has an opposite.
func positive(run func(ts *testscript.TestScript, args []string)) command {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg {
			ts.Fatalf("this command cannot be negated")
		}
		run(ts, args)
	}
}

// usage fails the script with how a command is used, unless that is ok.
func usage(ts *testscript.TestScript, ok bool, text string) {
	if !ok {
		ts.Fatalf("usage: %s", text)
	}
}

// unloadModule removes the module that traffic may have loaded, so that every
// script begins without it.
func unloadModule() {
	_ = unix.DeleteModule("dummy", 0) // mostly it is not there
}
