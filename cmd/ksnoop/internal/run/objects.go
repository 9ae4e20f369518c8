package run

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// objects delivers the events of a session. It watches the objects that calls find,
// each until its end, and stops the session at the end of the last one.
type objects struct {
	*runtime.Session
	losses *watch
	stderr io.Writer
}

func (o *objects) Read(ev *runtime.Event) error {
	for {
		err := o.Session.Read(ev)
		if errors.Is(err, runtime.ErrWoken) {
			err = cmp.Or(o.endGone(), err)
		}
		if err != nil {
			return err
		}
		switch {
		case ev.Probe.Find != nil:
			changed, err := o.WatchObject(ev)
			if err != nil {
				fmt.Fprintf(o.stderr, "ksnoop: %v\n", err)
			}
			if len(changed) > 0 {
				o.losses.addUnseen(changed)
			}
			return nil
		case ev.Probe.Follow != nil && ev.Probe.Follow.Ending():
			if err := errors.Join(o.EndObject(ev), o.stopAtLast()); err != nil {
				return err
			}
			if len(ev.Ended) > 0 {
				return nil
			}
		default:
			return nil
		}
	}
}

// endGone stops watching objects whose end was lost, and waiting for those that were found
// by a call whose record was lost.
func (o *objects) endGone() error {
	ended, err := o.EndGone()
	for _, e := range ended {
		if e.Addr == 0 {
			fmt.Fprintf(o.stderr, "ksnoop: an object was found, and the record of it was lost: its %s is not watched\n", render.FunctionName(e.Probe.Func))
			continue
		}
		fmt.Fprintf(o.stderr, "ksnoop: %s at %#x has ended, and the record of where was lost: it is watched no longer\n", render.FunctionName(e.Probe.Func), e.Addr)
	}
	if len(ended) == 0 || err != nil {
		return err
	}
	return o.stopAtLast()
}

// stopAtLast stops the session once nothing is watched any more, and no object will be
// found.
func (o *objects) stopAtLast() error {
	if o.Watching() {
		return nil
	}
	return o.Stop()
}
