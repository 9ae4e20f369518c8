package runtime

import (
	"errors"
	"slices"
)

// Detach takes the programs out of the functions, one link at a time. A link
// of many functions takes some milliseconds, whatever their number. An fentry
// or fexit takes 0.15 s on 6.1 to 6.18, a kprobe 0.05 s: the kernel waits for
// grace periods, under locks. Threads shorten little of that, and a process
// that ends without Detach waits as long.
func (s *Session) Detach() error {
	done, total := 0, s.places()
	var errs []error
	for {
		s.report(done, total)
		at, err := s.detachOne(func(*attached) bool { return true })
		if at == nil {
			return errors.Join(errs...)
		}
		errs = append(errs, err)
		done += len(at.Places)
	}
}

// RemoveEvents detaches what has an event in tracefs, which outlives the
// process; everything else the kernel detaches when the process ends. It is
// for a process that ends at once: any goroutine may call it after
// [Session.Stop], whatever the others do.
func (s *Session) RemoveEvents() error {
	var errs []error
	for {
		at, err := s.detachOne(func(at *attached) bool { return at.group != "" })
		if at == nil {
			return errors.Join(errs...)
		}
		errs = append(errs, err)
	}
}

// detachOne detaches the first attachment in place that is wanted; nil if
// there is none.
func (s *Session) detachOne(wanted func(*attached) bool) (*attached, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.attached, wanted)
	if i < 0 {
		return nil, nil
	}
	at := s.attached[i]
	s.attached = slices.Delete(s.attached, i, i+1)
	return at, at.link.Close()
}

// places is how many there are in place.
func (s *Session) places() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.attached {
		n += len(at.Places)
	}
	return n
}

func (s *Session) report(done, total int) {
	if s.Progress != nil {
		s.Progress(done, total)
	}
}
