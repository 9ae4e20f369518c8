package run

import (
	"errors"
	"io"
	"time"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// iteration is a session that goes over all objects of iterators.
type iteration interface {
	eventSource
	Again(wait time.Duration) error
	Stopped() bool
}

// passes delivers the rows of iterators again at each interval. A pass that takes
// longer is followed by the next one at once.
type passes struct {
	iteration
	every  time.Duration
	tables *tables
	again  func() error // is called before the rows of the next pass
	began  time.Time    // of this pass
	ended  bool         // whether this pass has ended
}

// newPasses returns the passes of a session. again is called before the rows of each
// but the first, unless only tables are shown.
func newPasses(source iteration, o *TableOptions, t *tables, unit *compiler.Unit, again func() error) *passes {
	if render.OnlyTables(unit) {
		again = func() error { return nil }
	}
	return &passes{iteration: source, every: o.Every, tables: t, again: again, began: time.Now()}
}

func (p *passes) Read(ev *runtime.Event) error {
	if err := p.begin(); err != nil {
		return err
	}
	return p.end(p.iteration.Read(ev))
}

// begin begins the next pass if this one has ended.
func (p *passes) begin() error {
	if !p.ended {
		return nil
	}
	if err := p.Again(time.Until(p.began.Add(p.every))); err != nil {
		return err
	}
	p.ended, p.began = false, time.Now()
	return p.again()
}

// end returns what a read has returned, and ErrWoken at the end of a pass, so that
// what there is gets shown.
func (p *passes) end(err error) error {
	if errors.Is(err, io.EOF) && !p.Stopped() {
		p.ended = true
		p.tables.due.Store(true)
		return runtime.ErrWoken
	}
	return err
}
