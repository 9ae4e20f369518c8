package runtime

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ksnoop/ksnoop/compiler"
)

// ErrNotRun is returned by [Session.ReadOnce] if the kernel has not run the program:
// it was interrupted by another run of it.
var ErrNotRun = errors.New("the kernel did not run the program: try again")

// ReadOnce runs the program of a probe of [spec.ParseValues] at once, and decodes its
// record into ev, whose former content becomes invalid. Per-CPU variables are read as
// those of the CPU. Nothing is attached for this, so that it also works where no probe
// can be. No other goroutine may read.
func (s *Session) ReadOnce(p *compiler.Probe, cpu int, ev *Event) error {
	for _, at := range s.unit.Attachments {
		if at.Kind != compiler.RawTP || at.Places[0].Probe != p {
			continue
		}
		if _, err := testRun(s.coll.Programs[at.Program].FD(), uint64(cpu)); err != nil {
			return fmt.Errorf("read %s: %w", p.Func.Name, err)
		}
		if s.Idle() {
			return ErrNotRun
		}
		return s.Read(ev)
	}
	return fmt.Errorf("read %s: it has no program", p.Func.Name)
}

// Without reports whether the verifier has refused the program of a probe, so that the
// session is without it.
func (s *Session) Without(p *compiler.Probe) bool {
	for _, refused := range s.refused {
		if slices.Contains(refused.Probes, p) {
			return true
		}
	}
	return false
}
