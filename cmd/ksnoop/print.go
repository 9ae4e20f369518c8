package main

import (
	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/run"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/values"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime/render"
)

const valueExamples = `EXPR is a value of the spec language that needs no call:
  '(int)@panic_timeout'                           a variable, with its type
  '(u64[3])@avenrun'                              an array of three numbers
  '((struct uts_namespace)@init_uts_ns).name'     a member
  '@runqueues.nr_running'                         of each CPU
  '$task->mm->exe_file:path'                      of this ksnoop
  '*(struct file *)0xffff888012345600'            what is at an address
  '((u8 *)0xffff888012345600)[0..63]'             some bytes there
Several in one EXPR, with commas between them, are read at once.`

func printCommand(e *environment) *cli.Command {
	o := &values.Options{Own: e.own}
	return &cli.Command{
		Name:        "print",
		Usage:       "print values of the kernel now, without a call",
		ArgsUsage:   "EXPR...",
		Description: valueExamples,
		Flags: join(outputFlag(&o.Appearance, render.Formats), []cli.Flag{
			textFlag("cpu", "read the per-CPU variables of the CPUs in `LIST`, such as 0-3,8, or of all possible ones (all) (default: those online)", &o.CPUs),
			parsedFlag("max-bytes", "capture at most `N` bytes of a value (default: 65536)", &o.MaxBytes, number[int](target.MaxBytes)),
			onOffFlag("debug d", "show the programs", &o.Debug),
		}, in(ending,
			parsedFlag("every", "read again each `DURATION`, such as 500ms, 2m or 10 (seconds), and show what has changed", &o.Every, run.ParseTime),
			parsedFlag("events n", "end after `N` readings", &o.Bounds.Events, number[uint64](run.MostEvents)),
			parsedFlag("for", "end after `DURATION`", &o.Bounds.Duration, run.ParseTime),
		), lookFlags(&o.Appearance), valueFlags(&o.Values)),
		Before: func(c *cli.Context) error {
			if o.Exprs = allWords(c); len(o.Exprs) == 0 {
				return noOperand("print")
			}
			e.texts, e.parse = o.Exprs, spec.ParseValues
			return nil
		},
		Action: func(*cli.Context) error { return values.Print(o, &e.Streams) },
	}
}
