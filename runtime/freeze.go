package runtime

import (
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/ksnoop/ksnoop/compiler"
)

// freeze makes the programs of a unit with [compiler.Options].Tally do nothing
// any more, and waits until none runs that has not seen this yet: a grace
// period, some 10 ms. From then on they write no record and count no call,
// though they are still attached.
func (s *Session) freeze() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := s.coll.Maps[compiler.SwitchMap]
	if s.closed || gate == nil {
		return nil
	}
	if err := gate.Put(uint32(0), uint32(1)); err != nil {
		return fmt.Errorf("stop the programs: %w", err)
	}
	if err := waitPrograms(); err != nil {
		return fmt.Errorf("wait for the programs to end: %w", err)
	}
	return nil
}

// waitPrograms waits until every program that runs now has ended, on all CPUs:
// the kernel does that for whoever changes a map of maps (4.20), so that he
// knows which of the maps is in use. membarrier would not on a single CPU,
// where a task can be preempted inside a program.
func waitPrograms() error {
	inner := &ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1}
	m, err := ebpf.NewMap(inner)
	if err != nil {
		return err
	}
	defer m.Close()
	outer, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.ArrayOfMaps, KeySize: 4, ValueSize: 4, MaxEntries: 1, InnerMap: inner})
	if err != nil {
		return err
	}
	defer outer.Close()
	return outer.Update(uint32(0), m, ebpf.UpdateAny)
}
