package run

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// guide tells someone at a terminal what is going on: how the run ends, and what may be
// wrong if nothing comes. It is nil, and says nothing, where stderr is not a terminal.
type guide struct {
	w       io.Writer
	o       *Options
	unit    *compiler.Unit
	counts  func() ([]runtime.Counts, error)
	begun   time.Time
	stopped chan struct{}
	once    sync.Once
	ended   sync.WaitGroup
}

// tooLong is the time without an event after which the guide names possible reasons.
const tooLong = 10 * time.Second

// newGuide returns the guide of a run that begins now. Iterators end by themselves.
func newGuide(stderr io.Writer, o *Options, unit *compiler.Unit, counts func() ([]runtime.Counts, error)) *guide {
	if !term.IsTerminal(stderr) || unit.Iterates() {
		return nil
	}
	return &guide{w: stderr, o: o, unit: unit, counts: counts, begun: time.Now(), stopped: make(chan struct{})}
}

// start writes how the run ends, unless headings are left out, and prints a hint if there
// is no event within patience.
func (g *guide) start(patience time.Duration) {
	if g == nil {
		return
	}
	if !g.o.Look.NoHeader {
		fmt.Fprintf(g.w, "ksnoop: %s\n", g.opening())
	}
	g.ended.Go(func() {
		select {
		case <-g.stopped:
		case <-time.After(patience):
			if text := g.hint(patience); text != "" {
				fmt.Fprintf(g.w, "ksnoop: %s\n", text)
			}
		}
	})
}

func (g *guide) stop() {
	if g != nil {
		g.once.Do(func() { close(g.stopped) })
		g.ended.Wait()
	}
}

// shown returns the first event type that has events: beginnings of spans have none.
func (g *guide) shown() *compiler.EventType {
	for _, ev := range g.unit.Events {
		if !ev.Probe.Begins() {
			return ev
		}
	}
	return g.unit.Events[0]
}

// subject returns the name of what is traced, and the number of other functions.
func (g *guide) subject() string {
	first := g.shown()
	others := map[*compiler.Function]bool{}
	for _, ev := range g.unit.Events {
		if ev.Probe.Func != first.Probe.Func && !ev.Probe.Begins() {
			others[ev.Probe.Func] = true
		}
	}
	name := render.PlainName(render.EventName(first))
	if n := len(others); n > 0 {
		name += fmt.Sprintf(" and %d more", n)
	}
	return name
}

// opening returns the line that tells what is done, and what ends it.
func (g *guide) opening() string {
	verb, result := "tracing "+g.subject(), ""
	switch {
	case g.o.Specs.Follow != nil:
		verb = "following"
	case render.OnlyTables(g.unit):
		verb, result = "counting "+g.subject(), " and shows the table"
		if len(g.unit.Tables) > 1 {
			result += "s"
		}
	}
	if g.o.Command != nil {
		return fmt.Sprintf("%s until %s ends", verb, render.PlainName(g.o.Command[0]))
	}
	if g.o.Bounds.Duration > 0 {
		verb += fmt.Sprintf(" for %s", g.o.Bounds.Duration)
	}
	return fmt.Sprintf("%s: Ctrl-C ends it%s", verb, result)
}

// end prints the number of events if Ctrl-C has ended the run. Tables and --summary
// have the numbers anyway.
func (g *guide) end(sig syscall.Signal) {
	if g == nil || g.o.Summary || sig != syscall.SIGINT || render.OnlyTables(g.unit) {
		return
	}
	counts, err := g.counts()
	if err != nil {
		return // which the run has reported
	}
	n := uint64(0)
	for _, c := range counts {
		n += c.Delivered
	}
	took, s := time.Since(g.begun).Round(100*time.Millisecond), "s"
	if n == 1 {
		s = ""
	}
	fmt.Fprintf(g.w, "ksnoop: showed %d event%s in %s\n", n, s, took)
}

// hint returns the possible reasons why there was no event within patience, or "" if
// there was one. Tables are not read, as that makes kprobes miss calls.
func (g *guide) hint(patience time.Duration) string {
	counts, err := g.counts()
	if err != nil || g.o.Specs.Watch || g.o.Specs.Follow != nil || len(g.unit.Tables) > 0 {
		return ""
	}
	var sum compiler.Counters
	for _, c := range counts {
		if c.Delivered+c.Matched+c.Lost+c.NoRoom+c.Unpaired+c.Replaced+c.Open > 0 {
			return ""
		}
		sum.Filtered += c.Filtered
		sum.Unreadable += c.Unreadable
	}
	fn := g.shown().Probe.Func
	name := render.PlainName(render.FunctionName(fn))
	nothing := fmt.Sprintf("no event of %s in %s: ", g.subject(), patience)
	whose := fmt.Sprintf("ksnoop --for 10s '%s($comm, count())' shows who calls it", name)
	switch {
	case sum.Unreadable > 0:
		return nothing + fmt.Sprintf("in %d calls, a value of the condition could not be read", sum.Unreadable)
	case sum.Filtered > 0:
		return nothing + fmt.Sprintf("all of %d calls were filtered out by %s; %s", sum.Filtered, g.filters("and "), whose)
	}
	reason := fmt.Sprintf("it may not be called, or only where the compiler has inlined it; ksnoop list '%s*' shows functions with similar names", name)
	if fn.Tracepoint {
		reason = fmt.Sprintf("the kernel may not reach it; ksnoop list '%s*' shows tracepoints with similar names", firstWord(name))
	}
	if filters := g.filters("or "); filters != "" && !g.unit.CountsCalls {
		reason += fmt.Sprintf("; or %s filters its calls out: %s", filters, whose)
	}
	return nothing + reason
}

// firstWord returns a name up to its first underscore: tp:sched_ of tp:sched_switch.
func firstWord(name string) string {
	if i := strings.IndexByte(name, '_'); i > 0 {
		return name[:i+1]
	}
	return name
}

// filters returns the options and conditions that leave calls out as a list, or "" if
// there are none. word precedes the last one of several.
func (g *guide) filters(word string) string {
	has := func(is func(*compiler.Probe) bool) bool {
		return slices.ContainsFunc(g.unit.Events, func(ev *compiler.EventType) bool { return is(ev.Probe) })
	}
	p := &g.o.Programs
	var all []string
	for _, filter := range []struct {
		name  string
		given bool
	}{
		{"the condition", has(func(p *compiler.Probe) bool { return len(p.EntryConds)+len(p.ReturnConds) > 0 })},
		{"diff()", has(func(p *compiler.Probe) bool { return len(p.Diffs) > 0 })},
		{"--stack", p.Chain}, {"--pid", p.PID != 0}, {"--tid", p.TID != 0}, {"--tree", p.Tree}, {"--cgroup", p.Cgroup != ""}, {"--container", p.Container != ""},
	} {
		if filter.given {
			all = append(all, filter.name)
		}
	}
	if n := len(all); n > 1 {
		all[n-1] = word + all[n-1]
		if n == 2 {
			return strings.Join(all, " ")
		}
	}
	return strings.Join(all, ", ")
}
