//go:build linux

package script

import (
	"slices"

	"github.com/rogpeppe/go-internal/testscript"
)

// tracers lists the tracers that a script has started and not stopped, the
// latest last.
type tracers struct {
	list     []*tracer
	attached func() error // as in Options
}

// tracersKey is the key under which a script keeps its tracers.
type tracersKey struct{}

func running(ts *testscript.TestScript) *tracers {
	return ts.Value(tracersKey{}).(*tracers)
}

// add adds a tracer that is attached.
func (ts *tracers) add(t *tracer) error {
	ts.list = append(ts.list, t)
	if ts.attached == nil {
		return nil
	}
	return ts.attached()
}

// find returns the tracer that writes to the named file, or nil.
func (ts *tracers) find(name string) *tracer {
	for _, t := range ts.list {
		if t.name == name {
			return t
		}
	}
	return nil
}

// remove removes and returns the tracer that writes to the named file, or the
// latest one if name is empty. It returns nil if there is none.
func (ts *tracers) remove(name string) *tracer {
	i := len(ts.list) - 1
	if name != "" {
		i = slices.IndexFunc(ts.list, func(t *tracer) bool { return t.name == name })
	}
	if i < 0 {
		return nil
	}
	t := ts.list[i]
	ts.list = slices.Delete(ts.list, i, i+1)
	return t
}
