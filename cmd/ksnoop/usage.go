package main

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/check"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/getopt"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// misused returns what is wrong with the options of a command.
func (e *environment) misused(c *cli.Context, err error, isCommand bool) error {
	every, own := divide(e.line.Options, c.App.Flags)
	if isCommand {
		every = own
	}
	for _, o := range every {
		if wrong := e.checkOption(c.App, c.Command, o); wrong != nil {
			return wrong
		}
	}
	return exit.Misuse(err)
}

// checkOption returns what is wrong with an option of a command, whose options have been
// parsed, or nil.
func (e *environment) checkOption(app *cli.App, c *cli.Command, o getopt.Given) error {
	switch f := flagOf(c.Flags, o).(type) {
	case nil:
		return e.noOption(app, c, o.Spelled)
	case valued:
		if o.Missing() || f.value.wrong == errEmpty {
			return withoutValue(c, f)
		}
		return f.value.wrong
	default:
		if _, err := strconv.ParseBool(o.Value); o.HasValue && err != nil {
			return exit.Usagef("--%s is %q: it takes no value, or true or false", f.Names()[0], o.Value)
		}
		return nil
	}
}

// noOption returns the error for an option that a command does not have: it may be a
// piece of a spec, or the command may be another one.
func (e *environment) noOption(app *cli.App, c *cli.Command, spelled string) error {
	option, _, _ := strings.Cut(spelled, "=")
	if split := target.SplitSpec(e.args, kprobe.ParseAny); split != nil {
		return split // such as -EINTR)
	}
	if len(e.operands) > 0 && !e.named && lineHabits.Meaning("trace-"+strings.TrimLeft(option, "-")) == "" {
		if meant := unknownCommand(app, e.operands[0]); meant != nil {
			return meant
		}
	}
	return unknownOption(app, c, option)
}

// withoutValue returns the error for an option of a command without its value.
func withoutValue(c *cli.Command, f valued) error {
	if f.value.none != nil {
		return f.value.none
	}
	return exit.Usagef("--%s has no value: %s --help explains it", f.Name, c.HelpName)
}

// init makes package cli suggest the nearest name by the rule for names in specs.
func init() {
	cli.SuggestFlag = func(flags []cli.Flag, name string, _ bool) string {
		near, _ := spec.Nearest(name, slices.Values(longOptions(flags)))
		return near
	}
	cli.SuggestCommand = func(commands []*cli.Command, name string) string {
		near, _ := spec.Nearest(name, slices.Values(namesOf(commands)))
		return near
	}
}

// commandNames returns the names of all commands that the help shows.
func commandNames(app *cli.App) []string { return namesOf(app.VisibleCommands()) }

func namesOf(commands []*cli.Command) (names []string) {
	for _, c := range commands {
		names = append(names, c.Name)
	}
	return names
}

// longOptions returns the long names of options.
func longOptions(flags []cli.Flag) (names []string) {
	for _, f := range flags {
		names = append(names, f.Names()[0])
	}
	return names
}

// unknownCommand returns an error if name, which was given with options that trace does
// not have, is nearly the name of another command, or nil.
func unknownCommand(app *cli.App, name string) error {
	if near := cli.SuggestCommand(app.VisibleCommands(), name); near != "" {
		return exit.Usagef("there is no command %s: did you mean '%s'?", name, near)
	}
	return nil
}

// unknownTopic returns the error for a topic that help does not explain.
func unknownTopic(app *cli.App, name string) error {
	if near := cli.SuggestCommand(app.VisibleCommands(), name); near != "" {
		return exit.Usagef("there is no command %s: did you mean 'ksnoop help %s'?", name, near)
	}
	return exit.Usagef("there is no command %s: ksnoop help lists them, and ksnoop help spec explains the language", name)
}

// unknownOption returns the error for an option that a command does not have. option
// includes its dashes.
func unknownOption(app *cli.App, c *cli.Command, option string) error {
	name := strings.TrimLeft(option, "-")
	if word := optionHabits.Meaning(name); word != "" && hasOption(c, word) {
		return exit.Usagef("%s has no option %s: it is written %s", c.Name, option, word)
	}
	if line := lineHabits.Meaning(c.Name + "-" + name); line != "" {
		return exit.Usagef("%s has no option %s: write ksnoop %s", c.Name, option, line)
	}
	if near := cli.SuggestFlag(join(c.Flags, app.Flags), name, c.HideHelp); near != "" && len(name) > 1 {
		return exit.Usagef("%s has no option %s: did you mean --%s?", c.Name, option, near)
	}
	return exit.Usagef("%s has no option %s: ksnoop %s --help lists them", c.Name, option, c.Name)
}

// optionHabits has options of other tools, with those that do the same here.
const optionHabits spec.Habits = `
--output json: json j jsonl
--output FORMAT: format
--for TIME: timeout duration
--comm GLOB: name
--pid PID: process
--tree: follow follow-forks
--write FILE: o output
`

// lineHabits has options of bpftrace, perf, trace-cmd and gdb after the command that they are
// given to, with what is written here.
const lineHabits spec.Habits = `
list 'GLOB': trace-l trace-list trace-funcs trace-F
info FUNCTION: trace-L trace-line trace-vars
doctor: trace-info
SPEC, as in ksnoop 'vfs_read(count)': trace-e trace-a trace-add
SPEC, as in ksnoop 'vfs_read if count > 4k': trace-filter
SPEC, as in ksnoop 'vfs_read($kstack)': trace-g
SPEC -- COMMAND: trace-c
record -w FILE SPEC, as in ksnoop record -w FILE tp:sched_switch: record-e
record -w FILE SPEC, as in ksnoop record -w FILE 'vfs_read(count)': record-l
record -w FILE SPEC, as in ksnoop record -w FILE 'vfs_read($kstack)': record-g
record -w FILE SPEC -- COMMAND: record-F
record -w FILE -p PID --tree SPEC: record-c
list 'tp:*': list-e
list '*': list-f
watch '@jiffies': watch-l watch-location
`

// hasOption reports whether a command has the option that text begins with.
func hasOption(c *cli.Command, text string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(text, "-"), " ")
	return slices.Contains(longOptions(c.Flags), name)
}

// noOperand returns the error for a command line without the operand that a command
// needs.
func noOperand(command string) error {
	what, example := "a function", "vfs_read"
	switch command {
	case "record":
		example = "-w FILE vfs_read"
	case "list":
		what, example = "a glob", "'vfs_*'"
	case "print":
		what, example = "a value", "'$task->comm'"
	case "watch":
		what, example = "a variable", "'(int)@panic_timeout'"
	case "follow":
		what, example = "a function and an object", "'ip_send_skb(skb)'"
	case "dump":
		what, example = "a type", "file"
	case "test":
		return exit.Usagef("test needs a probe file, as in ksnoop test tcp.probes -- ./run.sh (ksnoop help test explains more)")
	case "completion":
		return exit.Usagef("completion needs the name of a shell, as in ksnoop completion bash (ksnoop help completion explains more)")
	}
	return exit.Usagef("%s needs %s, as in ksnoop %s %s (ksnoop help %s explains more)", command, what, command, example, command)
}

// sparing adds to what is done before a command that no option writes to a file that the command
// reads, which would be lost.
func (e *environment) sparing(before cli.BeforeFunc) cli.BeforeFunc {
	return func(c *cli.Context) error {
		if before != nil {
			if err := before(c); err != nil {
				return err
			}
		}
		for _, o := range e.line.Options {
			name := o.Value
			switch o.Name {
			case "output":
				_, name, _ = strings.Cut(name, "=")
			case "write", "record", "ready-file", "prom-textfile":
			default:
				continue
			}
			if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && e.reads(c.Command.Name, info) {
				return exit.Usagef("--%s would replace %s, which is read: name another file", o.Name, render.PlainName(name))
			}
		}
		return nil
	}
}

// reads reports whether a command reads a file: probes, specs, types or symbols.
func (e *environment) reads(command string, file os.FileInfo) bool {
	is := func(name string) bool {
		info, err := os.Stat(name)
		return err == nil && os.SameFile(info, file)
	}
	return slices.ContainsFunc(e.operands, func(word string) bool {
		return is(word) && (command == "test" || command == "check" && check.IsProbeFile(word))
	}) || slices.ContainsFunc(e.line.Options, func(o getopt.Given) bool {
		return (o.Name == "file" || o.Name == typesOption || o.Name == "symbols") && is(o.Value)
	})
}

// checkBehind returns an error for a command after -- if nothing is traced, or if
// the command is empty.
func (e *environment) checkBehind(nothing bool, command []string) error {
	switch {
	case nothing && e.named:
		return nil // the command of ksnoop says what it needs
	case nothing:
		return exit.Usagef("no function to trace before the -- of a command: as in ksnoop vfs_read -- ls")
	case len(command) == 0:
		return exit.Usagef("no command after --: name it, or leave out the --")
	}
	return nil
}
