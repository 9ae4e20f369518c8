package run

import (
	"errors"
	"io"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/cgroup"
	"github.com/ksnoop/ksnoop/runtime/render"
	"github.com/ksnoop/ksnoop/runtime/userstack"
)

// printing prints records as they come.
type printing struct {
	o        *Options
	streams  *term.Streams
	looks    render.Options
	unit     *compiler.Unit
	out      render.Printer
	recorder *recorder // writes the records to a file, too; or nil
	failed   bool      // the output has taken no more
}

func (p *printing) open(k *runtime.Kernel, unit *compiler.Unit) (err error) {
	if p.unit == nil {
		names := render.NewSymbols(k.Finder, term.WarnOn(p.streams.Err))
		if render.NeedsSymbols(unit, p.o.Format) {
			names.Load() // now, as events would wait for it
		}
		p.looks.Symbols, p.looks.Stacks, p.looks.Containers = names, userstack.Running(), cgroup.NewTable()
		p.looks.Version, p.looks.Arrange = p.o.Version, p.o.Tables.Arrange
		if !p.o.NoSymbols {
			p.looks.Pointers = render.NewPointerNames(k.Finder)
		}
		if p.recorder != nil {
			p.recorder.share(&p.looks)
		}
	}
	p.unit = unit
	p.out, err = render.New(unit, p.looks)
	return err
}

func (p *printing) begin(*runtime.Session) error { return nil }

func (p *printing) follow(session *runtime.Session, run *tracing, losses *watch, tables *tables) error {
	p.redraw(tables)
	var source eventSource = session
	if p.o.Specs.Watch {
		source = &objects{session, losses, p.streams.Err}
	}
	if tables.passes {
		source = newPasses(session, &p.o.Tables, tables, p.unit, func() error {
			p.out.Again()
			return nil
		})
	}
	return show(p.streams.Out, run.events(session, source), p.out, losses, tables)
}

// redraw makes tables be redrawn in place where nothing else is printed.
func (p *printing) redraw(t *tables) {
	if p.o.Format == "text" && render.OnlyTables(p.unit) {
		t.redraw(p.streams.Out, p.o.Tables.Every, p.looks, p.unit)
	}
}

func (p *printing) end(counts runtime.SessionCounts, losses *watch, tables *tables) error {
	if err := errors.Join(losses.show(p.out), tables.end(p.out)); err != nil {
		return err
	}
	p.out.End(render.NewSummary(p.unit, counts))
	return p.flush()
}

func (p *printing) flush() error {
	err := p.out.Flush(p.streams.Out)
	p.failed = err != nil
	return err
}

// due reports whether text is to be written: no more events wait, or there is much of it.
func due(out render.Printer, events interface{ Idle() bool }) bool {
	const much = 64 << 10
	return out.Gathered() >= much || events.Idle()
}

// show prints events until the session is stopped. It writes the text when no more
// events wait, or when there is much of it.
func show(w io.Writer, session eventSource, out render.Printer, losses *watch, tables *tables) error {
	for ev := new(runtime.Event); ; {
		if due(out, session) {
			if err := out.Flush(w); err != nil {
				return err
			}
		}
		switch err := session.Read(ev); {
		case errors.Is(err, io.EOF):
			losses.lookUnseen()
			return errors.Join(losses.show(out), out.Flush(w))
		case errors.Is(err, runtime.ErrWoken):
			if err := errors.Join(losses.show(out), tables.show(out)); err != nil {
				return err
			}
			continue
		case err != nil:
			return errors.Join(out.Flush(w), err)
		}
		losses.active()
		if err := out.Event(ev); err != nil {
			return err
		}
		if ev.Probe.Find == nil {
			continue
		}
		if err := losses.show(out); err != nil { // what has changed since that call, before later writes
			return err
		}
	}
}

// Appearance is how events and values look.
type Appearance struct {
	Format    string // one of render.Formats; or "" for text, or for compact if Values are
	Values    btfdump.Options
	Look      render.Look
	Color     string // one of term.Colors
	NoSymbols bool   // pointers inside values are shown without names
}

// On chooses the format if none is chosen, and returns the appearance on stdout, which
// may be coloured.
func (a *Appearance) On(stdout io.Writer) (render.Options, error) {
	if a.Format == "" {
		a.Format = "text"
		if a.Values.Compact {
			a.Format = "compact"
		}
	}
	o := render.Options{Format: a.Format, Values: a.Values, Look: a.Look}
	switch {
	case a.Format != "json":
		o.Look.Width = term.WidthOf(stdout)
		term.SetColor(stdout, a.Color)
	case a.Look.Time == render.Delta:
		return o, exit.Usagef("--time is %q: JSON always has ns of CLOCK_MONOTONIC, as mono, and can have wall beside it", a.Look.Time)
	}
	return o, nil
}
