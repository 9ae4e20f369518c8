package run

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/clock"
	"github.com/ksnoop/ksnoop/runtime/recording"
	"github.com/ksnoop/ksnoop/runtime/render"
	"github.com/ksnoop/ksnoop/runtime/userstack"
)

// Record writes raw records to a file until a limit, a signal, or the end of a process
// or command.
func Record(o *Options, s *term.Streams) error {
	if err := o.File.check(&o.Specs); err != nil {
		return err
	}
	return record(o, s, nil)
}

// record writes records to a file and, unless shown is nil, prints them as Trace does.
func record(o *Options, s *term.Streams, shown *printing) error {
	file, err := openFile(&o.File, s)
	if err != nil {
		return err
	}
	r := &recorder{o: o, streams: s, file: file, shown: shown}
	if shown != nil {
		shown.recorder = r
	}
	return errors.Join(trace(o, s, r), file.Close())
}

// share lets the printer use the recorder's clock and its frames of processes, so that
// both have the same texts. Pointers have names from the first event on.
func (r *recorder) share(o *render.Options) {
	o.Wall = func() time.Duration { return r.clock.Offset }
	o.Stacks = userstack.New("")
	o.Stacks.Named = &r.naming.frames
	o.Containers = &r.naming.containers
	if o.Pointers != nil {
		o.Pointers.Wait()
	}
}

// recorder writes raw records to a file.
type recorder struct {
	o       *Options
	streams *term.Streams
	file    *recordFile
	unit    *compiler.Unit
	symbols kallsyms.Finder // nil if addresses have no names
	out     *recording.Writer
	head    int64           // size of the beginning of the file, before the first record
	clock   recording.Clock // the last pair in the file
	last    time.Duration   // time of the last record, or of the last tables if there are no records
	naming  naming
	ev      runtime.Event
	shown   *printing // prints the records, too; or nil
	unshown error     // why they are not printed any more, or nil
}

func (r *recorder) open(k *runtime.Kernel, unit *compiler.Unit) error {
	first := r.unit == nil
	if first {
		if err := r.file.create(); err != nil { // now, as the specs are right, but not yet that it is overwritten
			return err
		}
		r.clock.Offset = clock.WallOffset()
	}
	if r.shown != nil {
		if err := r.shown.open(k, unit); err != nil {
			return err
		}
	}
	r.unit = unit
	r.naming.open(unit)
	if !first {
		return nil
	}
	var err error
	if r.symbols, err = k.Finder(); err != nil {
		term.WarnOn(r.streams.Err)(fmt.Errorf("addresses are recorded without names: %w", err))
	}
	return nil
}

func (r *recorder) begin(session *runtime.Session) error {
	r.last = session.AttachedAt()
	if err := r.file.clear(); err != nil {
		return err
	}
	return r.start()
}

// start begins a file. Its clock pair is of the last record before, as records wait in the
// ring buffer.
func (r *recorder) start() error {
	system, err := runtime.ThisSystem()
	if err != nil {
		return err
	}
	from := recording.Origin{Version: r.o.Version, System: system, Specs: specsOf(r.unit), Part: r.file.part}
	r.clock.Mono = r.last
	from.Clock = r.clock
	if r.out, err = recording.NewWriter(r.file, r.unit, from, r.symbols); err != nil {
		return err
	}
	r.naming.begin()
	r.head = r.out.Size()
	return nil
}

// full reports whether the next file is due. Each file begins with what decodes its
// records, and is not full before its records take as many bytes as that.
func (r *recorder) full() bool {
	size := r.out.Size()
	return r.file.full(size) && size >= 2*r.head
}

// specsOf returns the specs of a unit, as the user gave them.
func specsOf(unit *compiler.Unit) (texts []string) {
	known := map[*spec.Trace]bool{nil: true}
	for _, p := range unit.Probes() {
		if !known[p.Asked] {
			known[p.Asked] = true
			texts = append(texts, p.Asked.String())
		}
	}
	return texts
}

// unwritten is how long records may wait for a block to become full.
const unwritten = time.Second

// follow writes what comes. If that cannot be printed any more, as the reader has gone, it
// ends as at a limit: what was read until then is recorded as a whole.
func (r *recorder) follow(session *runtime.Session, run *tracing, losses *watch, tables *tables) error {
	err := r.take(session, run, losses, tables)
	if err == nil || r.shown == nil || !r.shown.failed {
		return err
	}
	r.unshown, r.shown = err, nil
	return nil
}

func (r *recorder) take(session *runtime.Session, run *tracing, losses *watch, tables *tables) error {
	stop := r.tick(session)
	defer stop()
	tables.keep = r.keep
	if r.shown != nil {
		r.shown.redraw(tables)
	}
	var p *passes
	if tables.passes {
		p = newPasses(session, &r.o.Tables, tables, r.unit, r.again)
	}
	for left := run.bounds.Events; ; {
		if r.shown != nil && due(r.shown.out, session) {
			if err := r.shown.flush(); err != nil {
				return err
			}
		}
		before := session.Waits()
		rec, err := r.read(session, p)
		if session.Waits() != before { // the clock may have been set meanwhile
			if err := r.lookAtClock(); err != nil {
				return err
			}
		}
		switch {
		case err == nil:
			losses.active()
			if err = r.record(rec); err == nil && r.full() {
				err = r.settle()
			}
		case errors.Is(err, io.EOF):
			return r.losses(losses)
		case errors.Is(err, runtime.ErrWoken):
			err = errors.Join(r.losses(losses), r.due(tables), r.settle())
		default:
			err = errors.Join(r.flush(), err)
		}
		if err != nil {
			return err
		}
		if rec == nil || run.bounds.Events == 0 {
			continue
		}
		if left--; left == 0 {
			return r.losses(losses)
		}
	}
}

// flush writes what was read.
func (r *recorder) flush() error {
	if r.shown == nil {
		return r.out.Flush()
	}
	return errors.Join(r.out.Flush(), r.shown.flush())
}

// read reads the next record, with p one of a pass over iterators.
func (r *recorder) read(session *runtime.Session, p *passes) ([]byte, error) {
	if p == nil {
		return session.ReadRecord()
	}
	if err := p.begin(); err != nil {
		return nil, err
	}
	rec, err := session.ReadRecord()
	return rec, p.end(err)
}

// again separates the rows of two passes over iterators.
func (r *recorder) again() error {
	if r.shown != nil {
		r.shown.out.Again()
	}
	return r.out.Again()
}

// record writes a record, and shows it.
func (r *recorder) record(rec []byte) error {
	r.last = time.Duration(binary.LittleEndian.Uint64(rec[compiler.HeaderTime:]))
	if !r.naming.needed() && r.shown == nil {
		return r.out.Record(rec)
	}
	if err := r.ev.Decode(r.unit, rec); err != nil {
		return err
	}
	if err := r.naming.event(&r.ev, r.out); err != nil {
		return err
	}
	if err := r.out.Record(rec); err != nil || r.shown == nil {
		return err
	}
	return r.shown.out.Event(&r.ev)
}

// keep writes tables.
func (r *recorder) keep(all []*runtime.Table) error {
	if render.OnlyTables(r.unit) {
		r.last = clock.Now() // no record waits
	}
	return errors.Join(r.naming.tables(all, r.out), r.out.Tables(all))
}

// tick wakes the reader of a session from time to time, so that what there is gets
// written.
func (r *recorder) tick(session *runtime.Session) (stop func()) {
	ticker, done := time.NewTicker(unwritten), make(chan struct{})
	go func() {
		for {
			select {
			case <-ticker.C:
				_ = session.Wake() // fails only if the session is being closed
			case <-done:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
	}
}

func (r *recorder) losses(w *watch) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.take() {
		if err := r.out.Loss(l); err != nil {
			return err
		}
		if r.shown != nil {
			showLoss(r.shown.out, r.unit, l)
		}
	}
	return nil
}

// due writes the tables at the end of each interval, and shows them.
func (r *recorder) due(t *tables) error {
	if r.shown != nil {
		return t.show(r.shown.out)
	}
	if !t.due.Swap(false) {
		return nil
	}
	_, err := t.ofInterval()
	return err
}

// clockStep is the least change of the time of day that makes a new clock pair.
const clockStep = time.Millisecond

// lookAtClock writes a clock pair if the time of day was set. An offset that a second
// reading does not confirm is not used: something else ran between the readings of the
// two clocks.
func (r *recorder) lookAtClock() error {
	offset := clock.WallOffset()
	if (offset-r.clock.Offset).Abs() < clockStep || (offset-clock.WallOffset()).Abs() >= clockStep {
		return nil
	}
	if r.shown != nil { // events from now on have the new time
		if err := r.shown.flush(); err != nil {
			return err
		}
	}
	r.clock = recording.Clock{Mono: clock.Now(), Offset: offset}
	return r.out.Clock(r.clock)
}

// settle writes what waits, a clock pair if the time of day was set, and begins the
// next file if this one is full.
func (r *recorder) settle() error {
	if err := r.lookAtClock(); err != nil {
		return err
	}
	if err := r.out.Flush(); err != nil {
		return err
	}
	if !r.full() {
		return nil
	}
	if err := r.out.Continue(); err != nil {
		return err
	}
	if err := r.file.rotate(); err != nil {
		return err
	}
	return r.start()
}

func (r *recorder) end(counts runtime.SessionCounts, losses *watch, tables *tables) error {
	if err := r.losses(losses); err != nil {
		return errors.Join(r.unshown, err)
	}
	if r.shown != nil {
		return errors.Join(r.shown.end(counts, losses, tables), r.out.End(counts))
	}
	if tables.passes { // the last pass has not ended
		return errors.Join(r.unshown, r.out.End(counts))
	}
	_, err := tables.ofEnd()
	return errors.Join(r.unshown, err, r.out.End(counts))
}
