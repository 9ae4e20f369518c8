package run

import (
	"bytes"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// MostRows is the largest value of --top and --keys.
const MostRows = 1 << 20

// TableOptions selects how the tables of specs with aggregates are shown.
type TableOptions struct {
	Arrange render.Arrangement
	Every   time.Duration // time between tables, or 0 for one at the end
	Clear   bool          // each interval is counted anew
	Keys    int           // keys that a table has room for, or 0 for the default
}

// Check returns an error for options that do nothing for the tables of a unit.
func (o *TableOptions) Check(unit *compiler.Unit) error {
	var tables []*runtime.Table
	for _, l := range unit.Tables {
		probe := unit.Events[l.Events[0]].Probe
		tables = append(tables, &runtime.Table{ByFunction: l.Function >= 0, Key: probe.Key, Aggregates: probe.Aggregates})
	}
	return o.checkTables(tables, unit.Iterates())
}

func (o *TableOptions) checkTables(tables []*runtime.Table, iterates bool) error {
	for _, option := range []struct {
		name  string
		given bool // and of no use without tables
	}{
		{"every", o.Every > 0 && !iterates}, {"clear", o.Clear}, {"top", o.Arrange.Top > 0}, {"sort", o.Arrange.Sort != ""}, {"keys", o.Keys > 0},
	} {
		if option.given && len(tables) == 0 {
			return exit.Usagef("--%s is for tables, and no spec has an aggregate: tables are of specs such as 'vfs_read($comm, count())'", option.name)
		}
	}
	if err := o.Arrange.Fits(tables); err != nil {
		return exit.Misuse(err)
	}
	if o.Clear && o.Every == 0 {
		return exit.Usagef("--clear counts each interval anew: give its length, as in --every 1s")
	}
	return nil
}

// tableSource has the tables of a session.
type tableSource interface {
	Tables() ([]*runtime.Table, error)
	ClearTables() ([]*runtime.Table, error)
	Wake() error
}

// tables shows tables while they are counted. On a terminal it redraws them in place.
type tables struct {
	source tableSource
	clear  bool
	passes bool             // whether each pass over iterators has tables of its own
	last   []*runtime.Table // the tables that were drawn last
	due    atomic.Bool
	keep   func([]*runtime.Table) error            // takes what was read, before it is shown; or nil
	screen *term.Screen                            // or nil to print one after another
	live   func(width int) (render.Printer, error) // returns a printer for the screen

	stopped chan struct{}
	ended   sync.WaitGroup
}

// startTables makes tables due at each interval, if there is one. Those of iterators are
// due when all objects have been read.
func startTables(source tableSource, o *TableOptions, iterates bool) *tables {
	t := &tables{source: source, clear: o.Clear, stopped: make(chan struct{})}
	if o.Every == 0 {
		return t
	}
	if iterates { // each pass begins with empty tables
		t.clear, t.passes = false, true
		return t
	}
	t.ended.Go(func() {
		tick := time.NewTicker(o.Every)
		defer tick.Stop()
		for {
			select {
			case <-t.stopped:
				return
			case <-tick.C:
				t.due.Store(true)
				_ = source.Wake() // fails only if the session is being closed
			}
		}
	})
	return t
}

// redraw makes tables at intervals be redrawn if stdout is a terminal, on which nothing
// else is printed.
func (t *tables) redraw(stdout io.Writer, every time.Duration, o render.Options, unit *compiler.Unit) {
	if every == 0 {
		return
	}
	t.screen = term.NewScreen(stdout, os.Getenv("TERM"))
	t.live = func(width int) (render.Printer, error) {
		o.Look.Width = width
		return render.New(unit, o)
	}
}

func (t *tables) stop() {
	close(t.stopped)
	t.ended.Wait()
}

// show shows the tables if they are due.
func (t *tables) show(out render.Printer) error {
	if !t.due.Swap(false) {
		return nil
	}
	all, err := t.ofInterval()
	if err != nil {
		return err
	}
	return t.print(out, all, (*term.Screen).Draw)
}

// end shows the tables at the end. Of iterators, those of the last pass stay, as the
// next one has not ended; of intervals, the last one that was shown stays above the rest.
func (t *tables) end(out render.Printer) error {
	if t.passes {
		if t.screen != nil {
			return t.draw(t.last, (*term.Screen).End)
		}
		return nil
	}
	all, err := t.ofEnd()
	if err != nil {
		return err
	}
	if t.clear && t.screen != nil {
		return t.draw(slices.Concat(t.last, all), (*term.Screen).End)
	}
	return t.print(out, all, (*term.Screen).End)
}

func (t *tables) print(out render.Printer, all []*runtime.Table, draw func(*term.Screen, []byte) error) error {
	if t.screen == nil {
		return printTables(out, all)
	}
	t.last = all
	return t.draw(all, draw)
}

// draw draws tables on the screen.
func (t *tables) draw(all []*runtime.Table, draw func(*term.Screen, []byte) error) error {
	live, err := t.live(t.screen.Width())
	if err != nil {
		return err
	}
	if err := printTables(live, all); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := live.Flush(&text); err != nil {
		return err
	}
	return draw(t.screen, text.Bytes())
}

// ofInterval reads the tables at the end of an interval.
func (t *tables) ofInterval() ([]*runtime.Table, error) {
	if t.clear {
		return t.kept(t.source.ClearTables())
	}
	return t.ofEnd()
}

// ofEnd reads the tables at the end of the trace.
func (t *tables) ofEnd() ([]*runtime.Table, error) { return t.kept(t.source.Tables()) }

func (t *tables) kept(all []*runtime.Table, err error) ([]*runtime.Table, error) {
	if err == nil && t.keep != nil {
		err = t.keep(all)
	}
	return all, err
}

func printTables(out render.Printer, all []*runtime.Table) error {
	for _, table := range all {
		if err := out.Table(table); err != nil {
			return err
		}
	}
	return nil
}
