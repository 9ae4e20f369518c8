// Package render prints the events of a session as text, with one line for each
// event, as JSON, or as the kernel's trace file. In text, events of kprobe_events
// lines look as in that file, too.
//
//	out, err := render.New(unit, render.Options{Format: "compact"})
//	...
//	err = out.Event(ev)
//	...
//	err = out.Flush(os.Stdout)
package render

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/clock"
	"github.com/ksnoop/ksnoop/runtime/userstack"
)

// Printer prints the events of a session in one of the formats. It keeps the text
// until Flush. Only one goroutine at a time may use it.
type Printer interface {
	Event(*runtime.Event) error
	Table(*runtime.Table) error   // shows what was counted of a spec with aggregates, so far
	Unseen(*runtime.Unseen) error // shows a change of watched memory without a write
	Again()                       // is called before the objects of iterators are shown again
	Loss(Loss)                    // reports a new loss; text formats print nothing
	End(Summary)                  // is called last
	Gathered() int                // number of bytes that Flush would write
	Flush(io.Writer) error
}

// Options are the options of a [Printer]. The zero value prints whole values as
// text, with headings, and arrays of char one by one: the command sets EmitStrings of
// Values.
type Options struct {
	Format  string          // one of TraceFormats, or "" for the first
	Values  btfdump.Options // an empty Indent means a blank in the text
	Look    Look
	Symbols *Symbols // names of kernel addresses, or nil for none
	// Pointers names what pointers inside values point to, or is nil for bare
	// addresses.
	Pointers *PointerNames
	// Stacks names the frames of processes, or is nil if they are not to be
	// looked at.
	Stacks *userstack.Stacks
	// Containers finds the containers of cgroups, as a [cgroup.Table] does, or is nil
	// if they are not to be looked for.
	Containers Containers
	Version    string // version of ksnoop, for JSON
	// System is the events' system, for JSON, or nil for the running system.
	System *runtime.System
	// Wall returns the offset of the time of day from CLOCK_MONOTONIC, and is called
	// after each Flush. If it is nil, the clocks of the running system are read.
	Wall    func() time.Duration
	Arrange Arrangement
}

// complete sets what stands for fields that are nil, and how values name pointers.
func (o *Options) complete() {
	if o.Wall != nil {
		o.Look.wall = o.Wall
	}
	if o.Look.wall == nil {
		o.Look.wall = clock.WallOffset
	}
	if o.Symbols == nil {
		o.Symbols = &Symbols{asked: true}
	}
	if o.Pointers != nil {
		o.Values.Symbolize = o.Pointers.at
	}
}

// names returns what a printer with these options names things by.
func (o *Options) names() names { return names{o.Symbols, o.Containers} }

// Formats are the formats of everything that is shown, the default first.
var Formats = []string{"text", "compact", "json"}

// TraceFormats are Formats and the lines of the kernel's trace file, which calls and objects
// can be shown as, but not what is watched or followed.
var TraceFormats = append(Formats[:3:3], "ftrace")

// New returns a printer for the events of a unit. It already holds the headings, or
// the first line of JSON. It returns an error if the format is none of [TraceFormats], if it
// is ftrace and the unit follows objects or shows nothing but writes to memory, or, for JSON
// without a System, if the running system cannot be read.
func New(unit *compiler.Unit, o Options) (Printer, error) {
	o.complete()
	if OnlyTables(unit) || unit.Iterates() {
		o.Look.NoHeader = true
	}
	switch o.Format {
	case "json":
		if o.System == nil {
			s, err := runtime.ThisSystem()
			if err != nil {
				return nil, err
			}
			o.System = &s
		}
		if follows(unit) {
			return newFollowJSON(o, unit), nil
		}
		p := newJSON(o, unit)
		p.begin()
		return p, nil
	case "ftrace":
		if follows(unit) || onlyWrites(unit) {
			break
		}
		p := newFtrace(o)
		p.header(ftraceHeader)
		return p, nil
	case "compact":
		if follows(unit) {
			return newFollowText(o, true), nil
		}
		p := newCompact(o)
		p.begin(unit)
		return p, nil
	case "text", "":
		if follows(unit) {
			return newFollowText(o, false), nil
		}
		p := newPrinter(o, unit)
		p.begin()
		return p, nil
	}
	return nil, fmt.Errorf("events cannot be shown as %q", o.Format)
}

// OnlyTables reports whether a unit has no events to show, but only tables.
func OnlyTables(unit *compiler.Unit) bool {
	tables := func(ev *compiler.EventType) bool { return ev.Probe.Measure == compiler.Tables || ev.Probe.Begins() }
	return len(unit.Events) > 0 && !slices.ContainsFunc(unit.Events, func(ev *compiler.EventType) bool { return !tables(ev) })
}

// page is text that has not been written yet.
type page struct {
	text   []byte
	look   Look
	stacks *userstack.Stacks
	last   time.Duration // the time of the previous line, or 0 if there is none
	offset time.Duration // from CLOCK_MONOTONIC to the time of day, or 0 if not known since the last flush
}

// header adds headings, unless the options disable them.
func (p *page) header(text string) {
	if !p.look.NoHeader {
		p.text = append(p.text, text...)
	}
}

// Gathered returns the number of bytes that Flush would write.
func (p *page) Gathered() int { return len(p.text) }

// Again does nothing: lines of JSON have the time.
func (p *jsonPrinter) Again() {}

// Again separates the objects from those before by an empty line.
func (p *page) Again() { p.text = append(p.text, '\n') }

// Flush writes the text and empties the page.
func (p *page) Flush(w io.Writer) error {
	p.offset = 0
	if len(p.text) == 0 {
		return nil
	}
	_, err := w.Write(p.text)
	p.text = p.text[:0]
	if err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}

// forms caches the forms of values.
type forms struct {
	options btfdump.Options
	of      map[*compiler.Value]*form
}

// form is how the bytes of a value are printed.
type form struct {
	cast   string // its type, as in C
	dumper *btfdump.Dumper
}

func newForms(options btfdump.Options) forms {
	return forms{options, map[*compiler.Value]*form{}}
}

func (f *forms) form(v *compiler.Value) *form {
	made := f.of[v]
	if made == nil {
		made = &form{cast: castOf(v)}
		f.of[v] = made
	}
	return made
}

// dumper returns the dumper for a value that is printed by its type.
func (f *forms) dumper(v *compiler.Value) (*btfdump.Dumper, error) {
	made := f.form(v)
	if made.dumper == nil {
		d, err := btfdump.New(v.DataType(), f.options)
		if err != nil {
			return nil, fmt.Errorf("show '%s': %w", v.Name, err)
		}
		made.dumper = d
	}
	return made.dumper, nil
}

func castOf(v *compiler.Value) string {
	switch v.Text {
	case compiler.NoText:
		if v.Format == compiler.ContainerFormat { // the number says nothing
			return ""
		}
	case compiler.PathText:
		return ""
	default:
		return "(char *)"
	}
	return "(" + btfdump.TypeName(v.DataType()) + ")"
}
