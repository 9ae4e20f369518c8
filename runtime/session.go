package runtime

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

// Session is a unit in the kernel.
type Session struct {
	unit   *compiler.Unit
	coll   *ebpf.Collection
	links  []link.Link
	ring   *ringbuf.Reader
	record ringbuf.Record
}

// Load verifies and loads the programs and maps of a unit. It needs CAP_BPF
// and CAP_PERFMON.
func Load(u *compiler.Unit, k *Kernel) (_ *Session, err error) {
	// Before 5.11 maps count against the limit of locked memory. If it cannot
	// be raised, they may still fit.
	limit := rlimit.RemoveMemlock()
	coll, err := ebpf.NewCollectionWithOptions(u.Collection, ebpf.CollectionOptions{Cache: k.cache})
	if err != nil {
		return nil, loadError(err, limit)
	}
	defer func() {
		if err != nil {
			coll.Close()
		}
	}()
	ring, err := ringbuf.NewReader(coll.Maps[compiler.EventsMap])
	if err != nil {
		return nil, fmt.Errorf("open the ring buffer: %w", err)
	}
	return &Session{unit: u, coll: coll, ring: ring}, nil
}

// loadError explains why a collection could not be loaded. limit is why the
// limit of locked memory could not be raised, if so.
func loadError(err, limit error) error {
	var refused *ebpf.VerifierError
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("load the programs: the kernel's verifier refused one, which is a bug of ksnoop (-d shows it): %w", err)
	case errors.Is(err, unix.EPERM) && limit != nil:
		return errors.New("load the programs: the kernel does not permit it: ksnoop needs CAP_BPF and CAP_PERFMON (before 5.11 also CAP_SYS_RESOURCE), or root")
	case errors.Is(err, unix.EPERM):
		return errors.New("load the programs: the kernel does not permit it: ksnoop needs CAP_BPF and CAP_PERFMON, or root")
	}
	return fmt.Errorf("load the programs: %w", err)
}

// Attach puts the programs in place and counts the probes that are. A probe
// that cannot be attached is left out as a whole; the error joins an
// [*AttachError] for each.
func (s *Session) Attach() (int, error) {
	failed := map[*compiler.Probe]bool{}
	attached := map[*compiler.Probe][]link.Link{}
	var errs []error
	for _, a := range s.unit.Attachments {
		if failed[a.Probe] {
			continue
		}
		l, err := s.attach(a)
		if err == nil {
			attached[a.Probe] = append(attached[a.Probe], l)
			continue
		}
		failed[a.Probe] = true
		errs = append(errs, &AttachError{a.Probe, a.Kind, err})
		for _, l := range attached[a.Probe] {
			errs = append(errs, l.Close())
		}
		delete(attached, a.Probe)
	}
	for _, links := range attached {
		s.links = append(s.links, links...)
	}
	return len(attached), errors.Join(errs...)
}

func (s *Session) attach(a compiler.Attachment) (link.Link, error) {
	prog := s.coll.Programs[a.Program]
	name := a.Probe.Func.Name
	switch a.Kind {
	case compiler.Fentry, compiler.Fexit:
		return link.AttachTracing(link.TracingOptions{Program: prog})
	case compiler.Kprobe:
		return link.Kprobe(name, prog, nil)
	case compiler.Kretprobe:
		return link.Kretprobe(name, prog, &link.KprobeOptions{RetprobeMaxActive: a.ReturnInstances})
	}
	return nil, fmt.Errorf("unknown attach kind %q", a.Kind)
}

// Close detaches and frees everything. Detaching may take 0.1 s for each
// program (RCU grace periods).
func (s *Session) Close() error {
	var errs []error
	for _, l := range s.links {
		errs = append(errs, l.Close())
	}
	s.links = nil
	errs = append(errs, s.ring.Close())
	s.coll.Close()
	return errors.Join(errs...)
}
