package values

import (
	"bytes"
	"errors"
	goruntime "runtime"
	"sync"
	"time"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/run"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// reader reads values and prints them.
type reader struct {
	unit    *compiler.Unit
	session *runtime.Session
	out     render.Values
	cpus    []int
	every   time.Duration
	before  map[place]*runtime.Value // what was read the last time
	once    sync.Once
	stopped chan struct{}
}

// place is a value of a CPU, or of the first one if it is the same for all.
type place struct {
	value *compiler.Value
	cpu   int
}

// Stop ends the readings. Any goroutine may call it.
func (r *reader) Stop() error {
	r.once.Do(func() { close(r.stopped) })
	return nil
}

// RemoveEvents does nothing: there are none.
func (r *reader) RemoveEvents() error { return nil }

// repeat reads the values until a limit or a stop, in one thread, to which $task and
// $tid refer.
func (r *reader) repeat(limit run.Bounds, s *term.Streams) error {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	if limit.Duration > 0 {
		defer time.AfterFunc(limit.Duration, func() { r.Stop() }).Stop()
	}
	r.before = map[place]*runtime.Value{}
	var tick <-chan time.Time
	if r.every > 0 {
		ticker := time.NewTicker(r.every)
		defer ticker.Stop()
		tick = ticker.C
	}
	for n := uint64(1); ; n++ {
		if err := errors.Join(r.read(), r.out.Flush(s.Out)); err != nil {
			return err
		}
		if r.every == 0 || n == limit.Events {
			return nil
		}
		select {
		case <-r.stopped:
			return nil
		case <-tick:
		}
	}
}

// read reads all values once.
func (r *reader) read() error {
	var ev runtime.Event
	for _, p := range r.unit.Probes() {
		if r.session.Without(p) {
			continue // the verifier has refused its program
		}
		for i, cpu := range r.cpus {
			if err := r.session.ReadOnce(p, cpu, &ev); err != nil {
				return err
			}
			for j := range ev.Values {
				v := &ev.Values[j]
				if i > 0 && !v.OfCPU() {
					continue
				}
				if err := r.show(v, cpu, &ev); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// show prints a value, with what it was before.
func (r *reader) show(v *runtime.Value, cpu int, ev *runtime.Event) error {
	at := place{v.Value, cpu}
	reading := &render.Reading{Value: *v, Before: r.before[at], CPU: -1, Time: ev.Time}
	if v.OfCPU() {
		reading.CPU = cpu
	}
	err := r.out.Value(reading)
	if r.every > 0 {
		kept := *v
		kept.Data = bytes.Clone(v.Data) // what it was read into is used again
		r.before[at] = &kept
	}
	return err
}
