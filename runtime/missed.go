package runtime

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf/link"

	"github.com/ksnoop/ksnoop/compiler"
)

// Misses is the calls that the kernel did not show to a program.
type Misses struct {
	Kind compiler.Kind
	// Probes share the program: which of their functions were called cannot
	// be told.
	Probes []*compiler.Probe
	N      uint64
	// Uncounted: this kernel does not count them (kprobes before 6.7), and N is
	// no evidence of anything.
	Uncounted bool
}

// Missed reads what each program missed since it was attached, until
// [Session.Close]. Calls are missed when a program runs on the CPU already
// (recursion_misses of bpf_prog_info), and when the kernel has no room for one
// more call whose return it must catch (missed of bpf_link_info).
func (s *Session) Missed() ([]Misses, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Misses
	programs := map[string]int{} // index in all
	counted := s.kernel.countsMisses()
	for _, at := range s.attached {
		m, err := missedBy(at, counted)
		if err != nil {
			return nil, fmt.Errorf("read what %s missed: %w", at.Program, err)
		}
		i, shared := programs[at.Program]
		if !shared {
			i = len(all)
			programs[at.Program] = i
			all = append(all, Misses{Kind: at.Kind})
			stats, err := s.coll.Programs[at.Program].Stats()
			if err != nil {
				return nil, fmt.Errorf("read what %s missed: %w", at.Program, err)
			}
			m.N += stats.RecursionMisses
		}
		all[i].add(m, at.Places)
	}
	return all, nil
}

func (m *Misses) add(n Misses, places []compiler.Place) {
	m.N += n.N
	m.Uncounted = m.Uncounted || n.Uncounted
	for _, p := range places {
		if !slices.Contains(m.Probes, p.Probe) {
			m.Probes = append(m.Probes, p.Probe)
		}
	}
}

// countsMisses says whether the kernel counts what links miss: missed of
// bpf_link_info (6.7).
func (k *Kernel) countsMisses() bool { return hasMember(k.types, "bpf_link_info", "missed") }

// missedBy is what a link missed, beyond what its program counts; counted says
// whether the kernel tells it.
func missedBy(at *attached, counted bool) (m Misses, err error) {
	probe := at.Kind.Multi() || at.Kind == compiler.Kprobe || at.Kind == compiler.Kretprobe
	switch {
	case !probe:
		// Its program counts. Before 5.12 none does, but there trampolines
		// skip nothing either: they have no guard against recursion
		// (ca06f55b9002).
	case counted:
		m.N, err = linkMissed(at.link)
	case at.group != "":
		m.N, err = profileMissed(at.group)
	default:
		m.Uncounted = true
	}
	return m, err
}

func linkMissed(l link.Link) (uint64, error) {
	info, err := l.Info()
	if err != nil {
		return 0, err
	}
	if multi := info.KprobeMulti(); multi != nil {
		return multi.Missed, nil
	}
	if perf := info.PerfEvent(); perf != nil && perf.Kprobe() != nil {
		return perf.Kprobe().Missed, nil
	}
	return 0, errors.New("the link does not tell")
}
