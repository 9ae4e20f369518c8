// Package replay prints a recording as trace would have printed it, or tells what is in it.
package replay

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/run"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/recording"
	"github.com/ksnoop/ksnoop/runtime/render"
	"github.com/ksnoop/ksnoop/runtime/userstack"
)

// Options selects what of a recording is shown, and how.
type Options struct {
	Operands []string // a file, or - for standard input, and maybe a condition over recorded values, with its if
	From, To Moment   // no limits if they have no text
	Funcs    []string // globs of functions, or none for all
	run.Appearance
	Arrange render.Arrangement
	Summary bool
	Verbose bool
}

// Replay prints a recording.
func Replay(o *Options, s *term.Streams) error {
	file, cond, err := o.check()
	if err != nil {
		return err
	}
	looks, err := o.On(s.Out)
	if err != nil {
		return err
	}
	name, in := "standard input", s.In
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return fmt.Errorf("read the recording: %w", err)
		}
		defer f.Close()
		name, in = file, f
	}
	r, err := recording.NewReader(bufio.NewReaderSize(in, 64<<10))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if o.Verbose {
		describe(&r.Origin, s.Err)
	}
	p := &player{o: o, cond: cond, streams: s, r: r, name: name, to: math.MaxInt64}
	p.clock = r.Clock
	if p.from = o.From.after(r.Clock.Mono); o.To.Text != "" {
		p.to = o.To.after(r.Clock.Mono)
	}
	if p.from > p.to {
		return exit.Usagef("--from is %s, and --to is %s, which is earlier: exchange them", o.From.Text, o.To.Text)
	}
	if err := p.open(looks); err != nil {
		return err
	}
	return p.play()
}

// check returns the file, and the condition or "".
func (o *Options) check() (file, cond string, err error) {
	words := o.Operands
	if len(words) > 2 && words[1] == "if" {
		return "", "", exit.Usagef("the shell has split '%s' at its blanks: put the condition in single quotes, as in ksnoop replay FILE 'if count > 4k'", strings.Join(words[1:], " "))
	}
	if len(words) == 0 || len(words) > 2 || len(words) == 2 && !isCondition(words[1]) {
		return "", "", exit.Usagef("replay takes one file of ksnoop record, not %d: as in ksnoop replay FILE 'if count > 4k'", len(words))
	}
	if words[0] == "" {
		return "", "", exit.Usagef("the name of the recording is empty: as in ksnoop replay FILE")
	}
	return words[0], strings.Join(words[1:], ""), nil
}

// isCondition reports whether an operand is a condition, and not the name of a file.
func isCondition(word string) bool {
	rest, ok := strings.CutPrefix(word, "if")
	return ok && (rest == "" || strings.ContainsAny(rest[:1], " \t\n(!$"))
}

// describe prints where and of what a recording was made.
func describe(from *recording.Origin, stderr io.Writer) {
	host := ""
	if from.Host != "" {
		host = " on " + from.Host
	}
	fmt.Fprintf(stderr, "ksnoop: recorded by ksnoop %s%s, Linux %s (%s), boot %s, part %d: %s\n",
		from.Version, host, from.Kernel, from.Arch, from.Boot, from.Part, strings.Join(from.Specs, " "))
}

// player prints the items of a recording.
type player struct {
	o       *Options
	cond    string // or ""
	streams *term.Streams
	r       *recording.Reader
	name    string // of the file
	out     render.Printer
	clock   recording.Clock // the pair that is valid now
	from    time.Duration
	to      time.Duration
	ev      runtime.Event
	named   userstack.Named
	filter  *filter // or nil

	containers recording.Containers
}

func (p *player) open(looks render.Options) (err error) {
	tables := run.TableOptions{Arrange: p.o.Arrange}
	if err := tables.Check(p.r.Unit); err != nil {
		return err
	}
	if err := checkFuncs(p.o.Funcs, p.r.Unit, render.PlainName(p.name)); err != nil {
		return err
	}
	if p.cond != "" {
		trace, err := spec.ParseCondition(p.cond)
		if err != nil {
			return err
		}
		if p.filter, err = newFilter(trace, p.asked(), arches[p.r.Arch], &p.containers); err != nil {
			return err
		}
	}
	names := new(render.Symbols)
	names.Set(nil)
	looks.Symbols, looks.Version, looks.Arrange = names, p.r.Version, p.o.Arrange
	looks.System, looks.Containers, looks.Wall = &p.r.System, &p.containers, func() time.Duration { return p.clock.Offset }
	looks.Stacks = userstack.New("")
	looks.Stacks.Named = &p.named
	p.r.Symbols = names.Set
	if !p.o.NoSymbols {
		pointers := render.NewPointerNamesOf(p.r.Arch, func() (kallsyms.Finder, error) { return nil, kallsyms.ErrHidden })
		pointers.Wait()
		looks.Pointers = pointers
		p.r.Symbols = func(t kallsyms.Finder) {
			names.Set(t)
			pointers.Set(t)
		}
	}
	p.out, err = render.New(p.r.Unit, looks)
	return err
}

// asked returns the events that a condition is asked about: those with records, and those
// of tables.
func (p *player) asked() (events []*compiler.EventType) {
	unit := p.r.Unit
	events = slices.DeleteFunc(slices.Clone(unit.Events), func(ev *compiler.EventType) bool {
		return ev.Probe.Measure != compiler.NoMeasure || !matches(p.o.Funcs, ev)
	})
	for _, l := range unit.Tables {
		for _, n := range l.Events {
			if matches(p.o.Funcs, unit.Events[n]) {
				events = append(events, unit.Events[n])
			}
		}
	}
	return events
}

// arches are the architectures by the names that Go has for them.
var arches = map[string]*compiler.Arch{"amd64": compiler.AMD64, "arm64": compiler.ARM64}

// much is the number of gathered bytes from which on text is written.
const much = 64 << 10

// play prints all items, and what can be read of a damaged recording.
func (p *player) play() error {
	for {
		item, err := p.r.Next()
		if err == io.EOF {
			return p.out.Flush(p.streams.Out)
		}
		if err != nil {
			err = fmt.Errorf("read %s: %w", p.name, err)
		} else {
			err = p.item(&item)
		}
		if err != nil {
			return errors.Join(p.out.Flush(p.streams.Out), err)
		}
		if p.out.Gathered() >= much {
			if err := p.out.Flush(p.streams.Out); err != nil {
				return err
			}
		}
	}
}

func (p *player) item(item *recording.Item) error {
	switch {
	case item.Record != nil:
		return p.record(item.Record)
	case item.Clock != nil:
		err := p.out.Flush(p.streams.Out) // the time of day is looked at after that
		p.clock = *item.Clock
		return err
	case item.Frame != nil:
		p.named.Add(item.Frame.Key, item.Frame.Frame)
	case item.Container != nil:
		p.containers.Add(*item.Container)
	case item.Loss != nil:
		if p.within(item.Loss.Time) {
			for _, l := range render.NewLosses(p.r.Unit, item.Loss.Counts, item.Loss.Missed, item.Loss.Time) {
				p.out.Loss(l)
			}
		}
	case item.Table != nil:
		if table := p.table(item.Table); table != nil {
			return p.out.Table(table)
		}
	case item.End != nil:
		p.end(*item.End)
	case item.Again:
		p.out.Again()
	case item.Next:
		fmt.Fprintf(p.streams.Err, "ksnoop: the recording continues in its next file, which has part %d\n", p.r.Part+1)
	}
	return nil
}

func (p *player) within(at time.Duration) bool { return at >= p.from && at <= p.to }

func (p *player) record(rec []byte) error {
	if err := p.ev.Decode(p.r.Unit, rec); err != nil {
		return fmt.Errorf("read %s: %w", p.name, err)
	}
	if !p.within(p.ev.Time) || !matches(p.o.Funcs, p.ev.EventType) || p.filter != nil && !p.filter.holds(p.ev.EventType, p.ev.Values, &p.ev) {
		return nil
	}
	return p.out.Event(&p.ev)
}

// table returns the part of a table that is to be shown, or nil for none of it.
func (p *player) table(t *runtime.Table) *runtime.Table {
	if !p.within(t.Time) {
		return nil
	}
	events := tableEvents(p.r.Unit, t)
	chosen := slices.DeleteFunc(slices.Clone(events), func(ev *compiler.EventType) bool { return !matches(p.o.Funcs, ev) })
	if len(chosen) == 0 {
		return nil
	}
	shown := *t
	if len(chosen) < len(events) {
		shown.Rows = slices.DeleteFunc(slices.Clone(shown.Rows), func(r runtime.Row) bool {
			return !slices.ContainsFunc(chosen, func(ev *compiler.EventType) bool { return ev.Probe.Func.Name == r.Func })
		})
	}
	if p.filter != nil {
		shown.Rows = p.filter.rows(shown.Rows, chosen)
	}
	if len(shown.Rows) == 0 && len(t.Rows) > 0 {
		return nil
	}
	return &shown
}

// tableEvents returns the events that a table counts: one, or those of a glob. No two
// probes share an aggregate.
func tableEvents(unit *compiler.Unit, t *runtime.Table) (events []*compiler.EventType) {
	for _, l := range unit.Tables {
		if slices.Equal(unit.Events[l.Events[0]].Probe.Aggregates, t.Aggregates) {
			for _, n := range l.Events {
				events = append(events, unit.Events[n])
			}
		}
	}
	return events
}

func (p *player) end(counts runtime.SessionCounts) {
	s := render.NewSummary(p.r.Unit, counts)
	p.out.End(s)
	term.Say(p.streams.Err, render.Losses(counts, p.o.Verbose))
	if p.o.Summary {
		fmt.Fprint(p.streams.Err, s.Text(term.WidthOf(p.streams.Err)))
	}
}

// Moment is a time of a recording: by CLOCK_MONOTONIC, or since the beginning.
type Moment struct {
	At    time.Duration
	Since bool
	Text  string // as given, or ""
}

// ParseMoment parses the value of --from or --to.
func ParseMoment(option, text string) (Moment, error) {
	if at, err := strconv.ParseInt(text, 10, 64); err == nil && at >= 0 {
		return Moment{At: time.Duration(at), Text: text}, nil
	}
	at, err := time.ParseDuration(text)
	if err != nil || at < 0 {
		return Moment{}, exit.Usagef("--%s is %q: it must be a time as in the column TIME, in ns, or since the beginning of the recording, such as 1.5s", option, text)
	}
	return Moment{At: at, Since: true, Text: text}, nil
}

// after returns the moment by CLOCK_MONOTONIC.
func (m Moment) after(begin time.Duration) time.Duration {
	if m.Since {
		return begin + min(m.At, math.MaxInt64-begin)
	}
	return m.At
}

// matches reports whether one of the globs matches the function of an event, or one of
// the two functions of a span. It returns true if there are no globs. A glob may leave
// out the tp: of a tracepoint and the iter: of an iterator.
func matches(globs []string, ev *compiler.EventType) bool {
	for _, glob := range globs {
		for _, fn := range functions(ev) {
			if spec.Matches(glob, fn.Name) || spec.Matches(glob, render.FunctionName(fn)) {
				return true
			}
		}
	}
	return len(globs) == 0
}

// functions returns the function of an event, or both of a span.
func functions(ev *compiler.EventType) []*compiler.Function {
	if ev.Probe.Span != nil {
		return []*compiler.Function{ev.Probe.Span.Begin.Func, ev.Probe.Span.End.Func}
	}
	return []*compiler.Function{ev.Probe.Func}
}

// checkFuncs returns an error for a glob that matches nothing of a recording.
func checkFuncs(globs []string, unit *compiler.Unit, file string) error {
	for _, glob := range globs {
		if slices.ContainsFunc(unit.Events, func(ev *compiler.EventType) bool { return matches([]string{glob}, ev) }) {
			continue
		}
		var names []string
		for _, ev := range unit.Events {
			for _, fn := range functions(ev) {
				names = append(names, render.FunctionName(fn))
			}
		}
		cure := fmt.Sprintf("ksnoop info %s lists its functions", file)
		if near, ok := spec.Nearest(glob, slices.Values(names)); ok {
			cure = fmt.Sprintf("did you mean '%s'?", near)
		}
		return exit.Usagef("--func is %q: the recording has no such function: %s", glob, cure)
	}
	return nil
}
