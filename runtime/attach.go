package runtime

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/ksnoop/ksnoop/compiler"
)

// attached is an attachment that is in place, with those of its places that
// could be attached to.
type attached struct {
	compiler.Attachment
	link  link.Link
	group string // what its event's group in tracefs begins with, if it may have one
}

// ErrStopped says that [Session.Stop] was called before everything was in
// place.
var ErrStopped = errors.New("stopped while attaching")

// Attach puts the programs in place and counts the probes that are. A probe
// that cannot be attached at all its places is left out as a whole; the error
// joins an [*AttachError] for each. If the session is stopped meanwhile, no
// more is attached, and the error is [ErrStopped]. If
// processes cannot be followed, nothing is attached.
func (s *Session) Attach() (int, error) {
	removeStale()
	if err := s.follow(); err != nil {
		return 0, err
	}
	a := attacher{Session: s, failed: map[*compiler.Probe]bool{}}
	done, total := 0, 0
	for _, at := range s.unit.Attachments {
		total += len(at.Places)
	}
	for _, at := range s.unit.Attachments {
		for _, one := range byTarget(at) {
			s.report(done, total)
			if s.stopped.Load() {
				return 0, ErrStopped
			}
			a.locked(one)
			done += len(one.Places)
		}
	}
	s.report(done, total)
	if s.stopped.Load() {
		return 0, ErrStopped
	}
	s.rememberModules()
	return len(s.unit.Probes()) - len(a.failed), errors.Join(a.errs...)
}

// attacher is the state of Attach.
type attacher struct {
	*Session
	failed map[*compiler.Probe]bool
	errs   []error
}

// locked adds an attachment while nobody else looks at those in place.
func (a *attacher) locked(at compiler.Attachment) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.add(at)
}

// add attaches at to as many of its places as possible. Before it leaves an
// attachment in place, the probes that fail here are taken out of those in
// place already: these are the return sides, and must be there first.
func (a *attacher) add(at compiler.Attachment) {
	at.Places = a.good(at.Places)
	if len(at.Places) == 0 {
		return
	}
	err := a.put(at, len(a.attached))
	if err == nil {
		return
	}
	if !at.Kind.Multi() {
		a.fail(at, badPlace{at.Places[0], err})
		return
	}
	a.fail(at, a.search(at, err)...)
	if at.Places = a.good(at.Places); len(at.Places) == 0 {
		return
	}
	if err := a.put(at, len(a.attached)); err != nil {
		a.fail(at, allBad(at.Places, err)...)
	}
}

// fail leaves out the probes of bad places.
func (a *attacher) fail(at compiler.Attachment, bad ...badPlace) {
	for _, b := range bad {
		if !a.failed[b.Probe] {
			a.failed[b.Probe] = true
			a.errs = append(a.errs, &AttachError{b.Probe, at.Kind, b.err})
		}
	}
	for i := a.stale(); i >= 0; i = a.stale() {
		a.replace(i)
	}
}

// stale is the number of an attachment in place that has a probe which is
// left out; -1 if there is none.
func (a *attacher) stale() int {
	return slices.IndexFunc(a.attached, func(at *attached) bool {
		return len(a.good(at.Places)) < len(at.Places)
	})
}

// replace makes an attachment in place anew, without the probes that are left
// out: a link's places cannot be changed.
func (a *attacher) replace(i int) {
	at := a.attached[i]
	a.attached = slices.Delete(a.attached, i, i+1)
	if err := at.link.Close(); err != nil {
		a.errs = append(a.errs, fmt.Errorf("detach %s: %w", at.Program, err))
	}
	at.Places = a.good(at.Places)
	if len(at.Places) == 0 {
		return
	}
	if err := a.put(at.Attachment, i); err != nil {
		for _, p := range at.Places {
			a.failed[p.Probe] = true
			a.errs = append(a.errs, &AttachError{p.Probe, at.Kind, err})
		}
	}
}

// good returns the places of the probes that are not left out.
func (a *attacher) good(places []compiler.Place) []compiler.Place {
	return slices.DeleteFunc(slices.Clone(places), func(p compiler.Place) bool { return a.failed[p.Probe] })
}

// put attaches at, as number i of those in place.
func (a *attacher) put(at compiler.Attachment, i int) error {
	done, err := a.attach(at)
	if err == nil {
		a.attached = slices.Insert(a.attached, i, done)
	}
	return err
}

// search finds out which places make at fail with err. The links of its tries
// run a program that does nothing.
func (a *attacher) search(at compiler.Attachment, err error) []badPlace {
	kind := ebpf.AttachTraceKprobeMulti
	if at.Kind == compiler.Session {
		kind = ebpf.AttachTraceKprobeSession
	}
	prog, loadErr := inert(kind)
	if loadErr != nil {
		return allBad(at.Places, err)
	}
	defer prog.Close()
	return badPlaces(at.Places, err, func(places []compiler.Place) error {
		if a.stopped.Load() {
			return ErrStopped
		}
		at.Places = places
		l, err := attachMulti(prog, at)
		if err != nil {
			return err
		}
		return l.Close()
	})
}
