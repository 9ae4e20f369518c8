package codegen

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/ksnoop/ksnoop/compiler"
)

// checkMeasure compares the counts with the expected ones.
func (tr *trial) checkMeasure() error {
	p, want := tr.probe(), &tr.counted
	number := slices.IndexFunc(tr.unit.Events, func(ev *compiler.EventType) bool { return ev.Probe == p })
	c := tr.counters(number)
	if c.Matched != want.matched || c.Matched+c.Filtered != want.calls {
		return fmt.Errorf("matched %d, filtered %d, and not %d of %d calls", c.Matched, c.Filtered, want.matched, want.calls)
	}
	if p.Measure == compiler.Tables {
		return tr.checkTable(number)
	}
	if err := tr.checkFirst(number); err != nil {
		return err
	}
	switch p.Measure {
	case compiler.Durations, compiler.Values:
		return tr.checkSamples(p)
	case compiler.Changes:
		if got := tr.changes(tr.unit.Element(p)); got != want.changes {
			return fmt.Errorf("%+v, and not %+v", got, want.changes)
		}
	}
	return nil
}

func (tr *trial) checkFirst(number int) error {
	got, call, v := tr.firstCall(number), tr.counted.first, tr.probe().First
	switch {
	case got == nil && call == nil:
		return nil
	case got == nil || call == nil:
		return fmt.Errorf("first %+v, and not %+v", got, call)
	case tr.ref.known() == compiler.AtEntry && got.Time != call.start, tr.ref.known() == compiler.AtReturn && got.Time != call.now.time:
		return fmt.Errorf("first at %d, of a call from %d to %d", got.Time, call.start, call.now.time)
	case v == nil:
		if got.Read != 0 {
			return fmt.Errorf("a first value %+v", got)
		}
		return nil
	}
	numbers := tr.ref.numbersOf(call, v.Name)
	same := func(f formatted) bool {
		return f.bad && got.Read == 0 || !f.bad && got.Read == 1 && f.num == got.Value
	}
	if !slices.ContainsFunc(numbers, same) {
		return fmt.Errorf("first %s: %+v, and not %+v", v.Name, got, numbers)
	}
	return nil
}

func (tr *trial) checkSamples(p *compiler.Probe) error {
	s, positive, negative := tr.samples(tr.unit.Element(p))
	var wantPositive, wantNegative compiler.Histogram
	sum, numbers := new(big.Int), []*big.Int{}
	for _, v := range tr.counted.samples {
		n := new(big.Int).SetUint64(v)
		if p.Signed() {
			n.SetInt64(int64(v))
		}
		if p.Signed() && int64(v) < 0 {
			wantNegative.Add(-v)
		} else {
			wantPositive.Add(v)
		}
		sum.Add(sum, n)
		numbers = append(numbers, n)
	}
	if positive != wantPositive || negative != wantNegative {
		return fmt.Errorf("other histograms than those of %d", tr.counted.samples)
	}
	if s.Faulted != tr.counted.faulted {
		return fmt.Errorf("%d faulted, and not %d", s.Faulted, tr.counted.faulted)
	}
	number := func(v uint64) *big.Int {
		if p.Signed() {
			return big.NewInt(int64(v))
		}
		return new(big.Int).SetUint64(v)
	}
	got := number(s.High)
	got.Add(got.Lsh(got, 32), number(s.Low))
	if got.Cmp(sum) != 0 {
		return fmt.Errorf("sum %v, and not %v", got, sum)
	}
	if len(numbers) == 0 {
		return nil
	}
	sign := uint64(0)
	if p.Signed() {
		sign = 1 << 63
	}
	least, most := number(^s.Extremes[0].NotLeast^sign), number(s.Extremes[0].Most^sign)
	if least.Cmp(slices.MinFunc(numbers, (*big.Int).Cmp)) != 0 || most.Cmp(slices.MaxFunc(numbers, (*big.Int).Cmp)) != 0 {
		return fmt.Errorf("from %v to %v, and not as %v", least, most, numbers)
	}
	return nil
}
