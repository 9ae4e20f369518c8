package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/listing"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/run"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// Categories of options in the help.
const (
	whose  = "Whose calls"
	ending = "Beginning and end"
	tables = "Tables of aggregates"
	looks  = "How it looks"
)

// join returns the options of several groups.
func join(groups ...[]cli.Flag) []cli.Flag { return slices.Concat(groups...) }

// onOffFlag returns an option without a value. names is the long name, and after a
// blank the short one if there is one.
func onOffFlag(names, usage string, to *bool) *cli.BoolFlag {
	name, short := splitNames(names)
	return &cli.BoolFlag{Name: name, Aliases: short, Usage: usage, Destination: to}
}

// parsedFlag returns an option whose value is converted by read, which gets the option's
// long name for its errors.
func parsedFlag[T any](names, usage string, to *T, read func(option, text string) (T, error)) *cli.StringFlag {
	name, short := splitNames(names)
	return &cli.StringFlag{Name: name, Aliases: short, Usage: usage, Action: func(_ *cli.Context, text string) error {
		v, err := read(name, text)
		if err == nil {
			*to = v
		}
		return err
	}}
}

// choiceFlag returns an option whose value is one of several, the default first. %s in
// the usage stands for their list.
func choiceFlag[T ~string](names, usage string, to *T, choices []T) *cli.StringFlag {
	var texts []string
	for _, c := range choices {
		texts = append(texts, string(c))
	}
	f := parsedFlag(names, listed(usage, texts), to, func(option, text string) (T, error) {
		return T(text), checkChoice(option, text, texts)
	})
	f.Value = texts[0]
	return f
}

// listed returns a usage with the choices of the option in place of %s.
func listed(usage string, choices []string) string {
	return strings.Replace(usage, "%s", exit.OrList(choices), 1)
}

// checkChoice returns an error if the value of an option is none of its choices.
func checkChoice(option, text string, choices []string) error {
	if slices.Contains(choices, text) {
		return nil
	}
	return exit.UnknownName("--"+option, text, choices)
}

// textFlag returns an option with a text, which may not be empty: in --container "$ID", the
// variable may have no value. to holds the default.
func textFlag(names, usage string, to *string) *cli.StringFlag {
	name, short := splitNames(names)
	f := &cli.StringFlag{Name: name, Aliases: short, Usage: usage, Destination: to, Value: *to}
	f.Action = func(c *cli.Context, text string) error {
		if text == "" {
			return withoutValue(c.Command, f)
		}
		return nil
	}
	return f
}

// textsFlag returns an option that may be given several times, each time with a text.
func textsFlag(names, usage string, to *[]string) *cli.GenericFlag {
	name, short := splitNames(names)
	f := &cli.GenericFlag{Name: name, Aliases: short, Usage: usage, Value: &texts{all: to}}
	f.Action = func(c *cli.Context, _ any) error {
		if slices.Contains(*to, "") {
			return withoutValue(c.Command, f)
		}
		return nil
	}
	return f
}

// choicesFlag returns an option that may be given several times, each time with one of
// several values. %s in the usage stands for their list.
func choicesFlag(names, usage string, to *[]string, choices []string) *cli.GenericFlag {
	f := textsFlag(names, listed(usage, choices), to)
	f.Action = func(*cli.Context, any) error {
		return checkChoice(f.Name, (*to)[len(*to)-1], choices)
	}
	return f
}

// texts holds the values of an option that may be given several times. Those of package
// cli would be split at commas.
type texts struct {
	all  *[]string
	none error // for an option without a value, or nil for the error that others have
}

func (t *texts) Set(value string) error {
	*t.all = append(*t.all, value)
	return nil
}

// String returns no default.
func (t *texts) String() string { return "" }

// flagNames returns the names of an option. The Names methods of package cli would
// run regular expressions.
func flagNames(f cli.Flag) (name string, short []string) {
	switch f := f.(type) {
	case *cli.BoolFlag:
		return f.Name, f.Aliases
	case *cli.StringFlag:
		return f.Name, f.Aliases
	case *cli.GenericFlag:
		return f.Name, f.Aliases
	}
	all := f.Names()
	return all[0], all[1:]
}

func splitNames(names string) (name string, short []string) {
	all := strings.Fields(names)
	return all[0], all[1:]
}

// number returns a function that parses the number of an option.
func number[T int | uint32 | uint64](limit uint64) func(option, text string) (T, error) {
	return func(option, text string) (T, error) {
		n, err := target.ParseNumber(option, text, limit)
		return T(n), err
	}
}

// in puts options into a category of the help and returns them.
func in(category string, flags ...cli.Flag) []cli.Flag {
	for _, f := range flags {
		switch f := f.(type) {
		case *cli.BoolFlag:
			f.Category = category
		case *cli.StringFlag:
			f.Category = category
		case *cli.GenericFlag:
			f.Category = category
		}
	}
	return flags
}

// hidden hides options from the help that a command accepts and ignores, as the
// classic ksnoop did, and returns them.
func hidden(flags []cli.Flag) []cli.Flag {
	for _, f := range flags {
		switch f := f.(type) {
		case *cli.BoolFlag:
			f.Hidden = true
		case *cli.StringFlag:
			f.Hidden, f.Action = true, nil
		}
	}
	return flags
}

// helpFlag returns the option that prints the help of a command.
func helpFlag(to *bool) cli.Flag { return onOffFlag("help h", "show help", to) }

// fileFlag returns the option for files of specs.
func fileFlag(s *target.Specs) []cli.Flag {
	f := textsFlag("file f", "read specs and kprobe_events lines from `FILE`, one on each line; - is standard input; may be given several times", &s.Files)
	f.Value.(*texts).none = exit.Usagef("--file names no file: as in ksnoop -f probes.txt")
	return []cli.Flag{f}
}

// kernelFlags returns the options that select the kernel: those of typesFlag and one
// for its features.
func kernelFlags(k *target.Choice) []cli.Flag {
	f := choiceFlag("kernel-features", "assume what kernel `VERSION` can do: %s (default: the running kernel; with --btf the newest)", &k.Features, target.Versions())
	f.Value = ""
	return append(typesFlag(&k.Types), f)
}

// typesOption is the name of the option for a file with the kernel's types.
const typesOption = "btf"

// typesFlag returns the option for a file with the kernel's types.
func typesFlag(file *string) []cli.Flag {
	return []cli.Flag{textFlag(typesOption, "take the types from `FILE`, raw BTF or ELF (default: the running kernel)", file)}
}

// programFlags returns the options for how programs are made.
func programFlags(p *target.Programs, s *target.Specs, summary *bool) []cli.Flag {
	return join(filterFlags(p, s), []cli.Flag{
		onOffFlag("stack s", "trace a call chain: each function only inside those named before it", &p.Chain),
		parsedFlag("attach", "attach by `KIND`: fentry, kprobe, kprobe.multi or kprobe.session (default: the best for each function)", &p.Attach, target.AttachKind),
		pagesFlag("events", &p.Ring),
		parsedFlag("rate", "show at most `N[/s]` events of each kind of each function in a second, and count the others", &p.Rate, target.ParseRate),
		onOffFlag("summary", "count every call, and print the counts at the end", summary),
		parsedFlag("max-bytes", "capture at most `N` bytes of a value (default: 4096)", &p.MaxBytes, number[int](target.MaxBytes)),
	})
}

// pagesFlag returns the option for the size of the ring buffer of events, or of evidence.
func pagesFlag(what string, size *uint32) cli.Flag {
	return parsedFlag("pages P", "buffer "+what+" in `N` pages for each CPU, a power of two", size, target.RingBytes)
}

// processID parses the value of --pid. The option -p of trace-cmd takes a plugin.
func processID(option, text string) (uint32, error) {
	if strings.HasPrefix(text, "function") {
		return 0, exit.Usagef("--%s is %q: it must be a number; leave out trace-cmd's plugin, as in ksnoop 'vfs_read(count)'", option, text)
	}
	return target.ParseID(option, text)
}

// filterFlags returns the options that select whose calls are traced.
func filterFlags(p *target.Programs, s *target.Specs) []cli.Flag {
	condition := func(read func(option, text string) (spec.Cond, error)) func(option, text string) ([]spec.Cond, error) {
		return func(option, text string) ([]spec.Cond, error) {
			cond, err := read(option, text)
			return append(s.Conds, cond), err
		}
	}
	ofUser := func(option, text string) (spec.Cond, error) {
		return target.UserCondition(option, text, "/etc/passwd")
	}
	return in(whose,
		parsedFlag("pid p", "trace only process `PID`, with all its threads, until it ends", &p.PID, processID),
		parsedFlag("tid t", "trace only thread `TID`, until it ends", &p.TID, target.ParseID),
		onOffFlag("tree", "trace only the process of -p, or the command after --, and its descendants", &p.Tree),
		parsedFlag("comm", "trace only threads whose name matches `GLOB`, as if each spec had 'if $comm ~ \"GLOB\"'", &s.Conds, condition(target.CommCondition)),
		parsedFlag("uid", "trace only threads of `USER`, a name or a number, as if each spec had 'if $uid == N'", &s.Conds, condition(ofUser)),
		textFlag("cgroup", "trace only threads in the cgroup (v2) with this `DIRECTORY` or id, or below it", &p.Cgroup),
		textFlag("container", "trace only threads in the container with this `NAME` or id", &p.Container),
	)
}

// listingFlag returns the option for the format of a listing.
func listingFlag(format *string) []cli.Flag {
	*format = listing.Formats[0]
	return []cli.Flag{choiceFlag("output o", "print `FORMAT`: text, or json for an object on each line", format, listing.Formats)}
}

// timeFlags returns the options for when a run ends, and for who is told that it has
// begun.
func timeFlags(b *run.Bounds, r *run.ReadyOptions) []cli.Flag {
	return in(ending,
		parsedFlag("for", "end after `DURATION`, such as 500ms, 2m or 10 (seconds)", &b.Duration, run.ParseTime),
		textFlag("ready-file", "create `FILE` with ksnoop's process id when everything is attached, and remove it at the end", &r.File),
		parsedFlag("ready-fd", "write a newline to file descriptor `N`, and close it, when everything is attached", &r.FD, run.ReadyFD),
	)
}

// eventsFlag returns the option that ends a run after a number of events.
func eventsFlag(b *run.Bounds) []cli.Flag {
	return in(ending, parsedFlag("events n", "end after `N` events", &b.Events, number[uint64](run.MostEvents)))
}

// talkFlags returns the options for what ksnoop reports about itself.
func talkFlags(debug, verbose *bool) []cli.Flag {
	return append([]cli.Flag{onOffFlag("debug d", "explain how each function is attached and why, and show the programs", debug)}, verboseFlag(verbose)...)
}

func verboseFlag(verbose *bool) []cli.Flag {
	return []cli.Flag{onOffFlag("verbose v", "report each step", verbose)}
}

// colorFlag returns the option for when text is coloured.
func colorFlag(when *string) []cli.Flag {
	*when = term.Colors[0]
	return in(looks, choiceFlag("color", "colour names, types and faults `WHEN`: %s (auto: on a terminal, unless $NO_COLOR is set or $TERM is dumb)", when, term.Colors))
}

// valueFlags returns the options for how values look.
func valueFlags(o *btfdump.Options) []cli.Flag {
	o.EmitStrings = true
	noStrings := onOffFlag("no-strings", "print arrays of char element by element", nil)
	noStrings.Action = func(_ *cli.Context, on bool) error {
		o.EmitStrings = !on
		return nil
	}
	return in(looks,
		onOffFlag("compact", "print each event on one line, like -o compact; with -o text and in dump, each value", &o.Compact),
		onOffFlag("skip-names", "leave out member names and types", &o.SkipNames),
		onOffFlag("emit-zeroes", "print members that are zero", &o.EmitZeroes),
		noStrings,
		parsedFlag("indent", "indent each level by `N` blanks, or by a tab (N = tab)", &o.Indent, listing.Indentation),
	)
}

// reportsFlag returns the option for where results go, and in which of several
// formats, the default first.
func reportsFlag(to *[]string, formats []string) []cli.Flag {
	return []cli.Flag{
		textsFlag("output o", "print results as `FORMAT[=FILE]`: "+exit.OrList(formats)+" (default: "+formats[0]+"); may be given several times, once without a file", to),
	}
}
