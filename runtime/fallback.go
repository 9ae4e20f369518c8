package runtime

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
)

// refusedKinds are functions that are traced by kprobe because the kernel has
// refused the kind that was chosen for them, by the kind and the reason.
type refusedKinds struct {
	refusals  []string
	functions map[string][]string
}

// add adds a probe that is a kprobe now.
func (r *refusedKinds) add(refusal string, p *compiler.Probe) {
	if r.functions == nil {
		r.functions = map[string][]string{}
	}
	if r.functions[refusal] == nil {
		r.refusals = append(r.refusals, refusal)
	}
	if name := p.Func.Name; !slices.Contains(r.functions[refusal], name) {
		r.functions[refusal] = append(r.functions[refusal], name)
	}
}

// mostNamed is the largest number of functions that a note names.
const mostNamed = 5

// notes returns a sentence for each reason.
func (r *refusedKinds) notes() (notes []string) {
	for _, refusal := range r.refusals {
		names := r.functions[refusal]
		some := strings.Join(names[:min(len(names), mostNamed)], ", ")
		if more := len(names) - mostNamed; more > 0 {
			some += fmt.Sprintf(" and %d more", more)
		}
		notes = append(notes, fmt.Sprintf("traced by kprobe: %s, as the kernel has refused %s", some, refusal))
	}
	return notes
}

// fallBack changes the probes that the kernel has refused to attach, if it takes
// kprobes on their functions, and loads all of them anew. It reports whether there
// were any, so that everything is to be attached again.
func (s *Session) fallBack(refusals error) (again bool, err error) {
	if s.Recompile == nil {
		return false, nil
	}
	for _, e := range split(refusals) {
		var refused *AttachError
		if !errors.As(e, &refused) || !s.kernel.takesKprobe(refused) {
			continue
		}
		refusal := fmt.Sprintf("%s: %s", refused.Kind, refused.Reason())
		if resolve.ByKprobe(refused.Probe, "the kernel has refused "+refusal) == nil {
			s.instead.add(refusal, refused.Probe)
			again = true
		}
	}
	if !again {
		return false, nil
	}
	unit, err := s.Recompile()
	if err != nil {
		return false, err
	}
	return true, s.reload(unit)
}

// takesKprobe reports whether the kernel would take a kprobe in place of what it has
// refused.
func (k *Kernel) takesKprobe(e *AttachError) bool {
	switch e.Kind {
	case compiler.Kprobe, compiler.Kretprobe, compiler.TpBTF:
		return false
	}
	if errors.Is(e.Err, unix.EPERM) || errors.Is(e.Err, unix.EACCES) || errors.Is(e.Err, unix.ENOMEM) {
		return false
	}
	places := []compiler.Place{{Probe: e.Probe, Symbol: e.Probe.Func.Symbol}}
	for i, addr := range e.Probe.Func.Addrs {
		places = append(places[:i], compiler.Place{Probe: e.Probe, Addr: addr})
	}
	if k.reloaded(places) != nil {
		return false
	}
	return !slices.ContainsFunc(places, func(place compiler.Place) bool {
		symbol, offset, err := k.kprobePlace(place)
		return err != nil || openKprobe(symbol, offset) != nil
	})
}

// reload replaces everything in the kernel by a unit of the same probes. Nothing of
// the session has been read yet.
func (s *Session) reload(unit *compiler.Unit) error {
	if err := s.free(); err != nil {
		return err
	}
	next, err := Load(unit, s.kernel)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unit, s.coll, s.ring, s.counters = next.unit, next.coll, next.ring, next.counters
	s.delivered, s.unread, s.notes, s.refused = next.delivered, next.unread, next.notes, next.refused
	s.closed, s.frozen, s.limited = false, false, nil
	s.closing.Store(false)
	if s.cgroup != nil {
		return s.TraceIn(s.cgroup)
	}
	return nil
}
