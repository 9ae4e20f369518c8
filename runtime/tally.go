package runtime

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

// Tally is what became of the calls that an event is for, as far as programs
// saw them. A unit that was compiled with [compiler.Options].Tally, and is
// frozen, has Matched = Delivered + Lost.
type Tally struct {
	*compiler.Event
	compiler.Counters
	Delivered uint64 // records read
}

// membarrierGlobal is MEMBARRIER_CMD_GLOBAL (include/uapi/linux/membarrier.h).
const membarrierGlobal = 1

// Freeze ends counting, and with it the events, of a unit that was compiled
// with [compiler.Options].Tally: no program does anything any more when it
// returns. It is much faster than to detach.
func (s *Session) Freeze() error {
	gate := s.coll.Maps[compiler.SwitchMap]
	if gate == nil {
		return nil
	}
	if err := gate.Put(uint32(0), uint32(1)); err != nil {
		return fmt.Errorf("end counting: %w", err)
	}
	// Programs run in read-side critical sections, which this waits for. Where
	// it is not to be had, some may count one more call.
	_, _, _ = unix.Syscall(unix.SYS_MEMBARRIER, membarrierGlobal, 0, 0)
	return nil
}

// Tallies reads what has been counted so far for each event of the unit, summed
// over the CPUs.
func (s *Session) Tallies() ([]Tally, error) {
	tallies := make([]Tally, len(s.unit.Events))
	var perCPU []compiler.Counters
	for i, ev := range s.unit.Events {
		tallies[i] = Tally{Event: ev, Delivered: s.delivered[i].Load()}
		if err := s.coll.Maps[compiler.CountersMap].Lookup(uint32(i), &perCPU); err != nil {
			return nil, fmt.Errorf("read the counters: %w", err)
		}
		for _, c := range perCPU {
			tallies[i].Counters.Add(c)
		}
	}
	return tallies, nil
}
