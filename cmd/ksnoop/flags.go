package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/listing"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/run"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
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

// onOff and valued take the place of the flags of package cli. Those format the help of
// each flag, and run a regular expression whenever their names are asked for: a thousand
// times for a command line. Only the long names are defined, as words has replaced the
// short ones.
type (
	onOff struct {
		*cli.BoolFlag
		names []string
	}
	valued struct {
		*cli.GenericFlag
		names []string
		value *value
	}
)

func (f onOff) Names() []string  { return f.names }
func (f onOff) String() string   { return f.Name }
func (f valued) Names() []string { return f.names }
func (f valued) String() string  { return f.Name }

// Apply defines the option in a set of package flag.
func (f onOff) Apply(set *flag.FlagSet) error {
	set.BoolVar(f.Destination, f.Name, *f.Destination, f.Usage)
	return nil
}

// Apply defines the option in a set of package flag.
func (f valued) Apply(set *flag.FlagSet) error {
	set.Var(f.value, f.Name, f.Usage)
	return nil
}

// value is the value of an option. Each value on a command line is parsed, even if
// another one follows.
type value struct {
	parse   func(text string) error // nil accepts any
	text    string                  // the last one, or the default
	choices []string                // what completion offers
	repeats bool                    // whether all count, and not the last alone
	none    error                   // what to say if the value is missing, or nil for the usual sentence
	wrong   error                   // what parse returned: package flag passes on its text alone
}

func (v *value) String() string { return v.text }

func (v *value) Set(text string) error {
	v.text = text
	if v.parse != nil {
		v.wrong = v.parse(text)
	}
	return v.wrong
}

// onOffFlag returns an option without a value. names is the long name, and after a
// blank the short one if there is one.
func onOffFlag(names, usage string, to *bool) onOff {
	all := strings.Fields(names)
	return onOff{&cli.BoolFlag{Name: all[0], Aliases: all[1:], Usage: usage, Destination: to}, all}
}

// valuedFlag returns an option with a value.
func valuedFlag(names, usage string, v *value) valued {
	all := strings.Fields(names)
	return valued{&cli.GenericFlag{Name: all[0], Aliases: all[1:], Usage: usage, Value: v}, all, v}
}

// parsedFlag returns an option whose value is converted by read, which gets the option's
// long name for its errors.
func parsedFlag[T any](names, usage string, to *T, read func(option, text string) (T, error)) valued {
	f := valuedFlag(names, usage, new(value))
	f.value.parse = func(text string) error {
		v, err := read(f.Name, text)
		if err == nil {
			*to = v
		}
		return err
	}
	return f
}

// choiceFlag returns an option whose value is one of several, the default first. %s in
// the usage stands for their list.
func choiceFlag[T ~string](names, usage string, to *T, choices []T) valued {
	var texts []string
	for _, c := range choices {
		texts = append(texts, string(c))
	}
	f := parsedFlag(names, listed(usage, texts), to, func(option, text string) (T, error) {
		return T(text), checkChoice(option, text, texts)
	})
	f.value.text, f.value.choices = texts[0], texts
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

// errEmpty is the error for an option with an empty text: in --container "$ID", the
// variable may have no value.
var errEmpty = errors.New("no value")

// textFlag returns an option with a text that is not empty. to holds the default.
func textFlag(names, usage string, to *string) valued {
	f := parsedFlag(names, usage, to, notEmpty)
	f.value.text = *to
	return f
}

func notEmpty(_, text string) (string, error) {
	if text == "" {
		return "", errEmpty
	}
	return text, nil
}

// textsFlag returns an option that may be given several times, each time with a text.
// Those of package cli would be split at commas.
func textsFlag(names, usage string, to *[]string) valued {
	return repeatedFlag(names, usage, to, notEmpty)
}

// globsFlag returns an option that may be given several times, each time with the pattern
// of a function.
func globsFlag(names, usage string, to *[]string) valued {
	return repeatedFlag(names, usage, to, func(option, text string) (string, error) {
		if _, err := spec.ParseGlob(text); err != nil {
			return "", fmt.Errorf("--%s: %w", option, err)
		}
		return notEmpty(option, text)
	})
}

// choicesFlag returns an option that may be given several times, each time with one of
// several values. %s in the usage stands for their list.
func choicesFlag(names, usage string, to *[]string, choices []string) valued {
	f := repeatedFlag(names, listed(usage, choices), to, func(option, text string) (string, error) {
		return text, checkChoice(option, text, choices)
	})
	f.value.choices = choices
	return f
}

// repeatedFlag returns an option that may be given several times, whose values are
// converted by read.
func repeatedFlag(names, usage string, to *[]string, read func(option, text string) (string, error)) valued {
	f := parsedFlag(names, usage, to, func(option, text string) ([]string, error) {
		v, err := read(option, text)
		return append(*to, v), err
	})
	f.value.repeats = true
	return f
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
		case onOff:
			f.Category = category
		case valued:
			f.Category = category
		}
	}
	return flags
}

// hidden leaves options out of the help, and returns them: those that a command accepts
// and ignores, as the classic ksnoop did.
func hidden(flags []cli.Flag) []cli.Flag {
	for _, f := range flags {
		switch f := f.(type) {
		case onOff:
			f.Hidden = true
		case valued:
			f.Hidden, f.value.parse = true, nil
		}
	}
	return flags
}

// helpFlag returns the option that prints the help of a command.
func helpFlag(to *bool) cli.Flag { return onOffFlag("help h", "show help", to) }

// fileFlag returns the option for files of specs.
func fileFlag(s *target.Specs) []cli.Flag {
	f := textsFlag("file f", "read specs and kprobe_events lines from `FILE`, one on each line; - is standard input; may be given several times", &s.Files)
	f.value.none = exit.Usagef("--file names no file: as in ksnoop -f probes.txt")
	return []cli.Flag{f}
}

// kernelFlags returns the options that select the kernel: those of typesFlag and one
// for its features.
func kernelFlags(k *target.Choice) []cli.Flag {
	f := choiceFlag("kernel-features", "assume what kernel `VERSION` can do: %s (default: the running kernel; with --btf the newest)", &k.Features, target.Versions())
	f.value.text = ""
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
		attachFlag(&p.Attach),
		pagesFlag("events", &p.Ring),
		parsedFlag("rate", "show at most `N[/s]` events of each kind of each function in a second, and count the others", &p.Rate, target.ParseRate),
		onOffFlag("summary", "count every call, and print the counts at the end", summary),
		parsedFlag("max-bytes", "capture at most `N` bytes of a value (default: 4096)", &p.MaxBytes, number[int](target.MaxBytes)),
	})
}

// attachFlag returns the option for the attach kind.
func attachFlag(to *compiler.Kind) cli.Flag {
	f := choiceFlag("attach", "attach by `KIND`: %s (default: the best for each function)", to, resolve.ForcedKinds())
	f.value.text = ""
	return f
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
	condition := func(names, usage string, read func(option, text string) (spec.Cond, error)) valued {
		at := -1 // of the condition in s.Conds; of several values one is enough
		f := parsedFlag(names, usage, &s.Conds, func(option, text string) ([]spec.Cond, error) {
			cond, err := read(option, text)
			if err != nil {
				return nil, err
			}
			if at >= 0 {
				s.Conds[at] = &spec.Or{X: s.Conds[at], Y: cond}
				return s.Conds, nil
			}
			at = len(s.Conds)
			return append(s.Conds, cond), nil
		})
		f.value.repeats = true
		return f
	}
	ofUser := func(option, text string) (spec.Cond, error) {
		return target.UserCondition(option, text, "/etc/passwd")
	}
	return in(whose,
		parsedFlag("pid p", "trace only process `PID`, with all its threads, until it ends", &p.PID, processID),
		parsedFlag("tid t", "trace only thread `TID`, until it ends", &p.TID, target.ParseID),
		onOffFlag("tree", "trace only the process of -p, or the command after --, and its descendants", &p.Tree),
		condition("comm", "trace only threads whose name matches `GLOB`, as if each spec had 'if $comm ~ \"GLOB\"'", target.CommCondition),
		condition("uid", "trace only threads of `USER`, a name or a number, as if each spec had 'if $uid == N'", ofUser),
		textFlag("cgroup", "trace only threads in the cgroup (v2) with this `DIRECTORY` or id, or below it", &p.Cgroup),
		textFlag("container", "trace only threads in the container with this `NAME` or id", &p.Container),
	)
}

// listingFlag returns the option for the format of a listing.
func listingFlag(format *string) []cli.Flag {
	*format = listing.Formats[0]
	return []cli.Flag{choiceFlag("output o", "print `FORMAT`: text, or json for an object on each line", format, listing.Formats)}
}

// timeFlags returns the options for when a run ends, and for how others learn that it
// has begun.
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
	noStrings := onOffFlag("no-strings", "print arrays of char element by element", new(bool))
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
	f := textsFlag("output o", listed("print results as `FORMAT[=FILE]`: %s (default: "+formats[0]+"); may be given several times, once without a file", formats), to)
	f.value.choices = formats
	return []cli.Flag{f}
}
