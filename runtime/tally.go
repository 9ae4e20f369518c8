package runtime

import (
	"fmt"

	"github.com/ksnoop/ksnoop/compiler"
)

// Tally is what became of the calls that an event is for, as far as programs
// saw them. Of a unit that was compiled with [compiler.Options].Tally, once it
// has been stopped and read to the end, Matched = Delivered +
// Unread + Lost.
type Tally struct {
	*compiler.Event
	compiler.Counters
	Delivered uint64 // records read
	Unread    uint64 // records discarded, see [Session.Discard]
}

// Tallies reads what has been counted so far for each event of the unit, summed
// over the CPUs.
func (s *Session) Tallies() ([]Tally, error) {
	tallies := make([]Tally, len(s.unit.Events))
	var perCPU []compiler.Counters
	for i, ev := range s.unit.Events {
		tallies[i] = Tally{Event: ev, Delivered: s.delivered[i].Load(), Unread: s.unread[i]}
		if err := s.coll.Maps[compiler.CountersMap].Lookup(uint32(i), &perCPU); err != nil {
			return nil, fmt.Errorf("read the counters: %w", err)
		}
		for _, c := range perCPU {
			tallies[i].Counters.Add(c)
		}
	}
	return tallies, nil
}
