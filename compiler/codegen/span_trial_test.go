package codegen

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// spanTrial is a trial of a span. The reference of the trial evaluates the beginning.
type spanTrial struct {
	*trial
	end *reference
	// waiting is the beginning that waits for its end, and open the call that made it.
	waiting *expected
	open    *referenceCall
	spans   []expected // those that are shown: first the items of the beginning
	starts  []moment
	tables  map[string]*counted // those that are counted, by what the end adds to their key
	begun   uint64
	// What is counted of beginnings that were replaced, and of ends: at least and at
	// most how many have a condition on a value that could not be read.
	replaced    uint64
	least, most int
	waited      int // ends for whose condition a beginning waits
	timed       int // spans that are not shown for their duration
}

// try makes the calls, and checks what the programs write and count.
func (tr *spanTrial) try(t *testing.T, seed uint64, sum *spanned) {
	tr.tables = map[string]*counted{}
	for _, plan := range tr.calls {
		require.NoError(t, tr.pass(plan), "seed %d: %s", seed, tr.title())
	}
	if tr.ref.open || tr.end.open {
		return
	}
	require.NoError(t, tr.checkSpans(), "seed %d: %s", seed, tr.title())
	sum.waited += tr.waited
	sum.timed += tr.timed
	sum.unreadable += tr.least
	sum.events += len(tr.spans)
	for _, n := range tr.tables {
		sum.tabled += int(n.matched - n.faulted)
	}
}

func (tr *spanTrial) title() string { return fmt.Sprintf("%s => %s", tr.ref.trace, tr.end.trace) }

// pass makes a call, whose entry may begin a span and whose return may end one.
func (tr *spanTrial) pass(plan plannedCall) error {
	c := &referenceCall{args: plan.args, result: plan.result, now: tr.moment()}
	c.numbers, c.keys = map[*spec.Item]formatted{}, map[*spec.Item]keyPart{}
	events, err := tr.ref.enter(c)
	if err != nil {
		return err
	}
	leave, frame := tr.enterPlanned(plan)
	if err := tr.ref.note(compiler.AtEntry); err != nil {
		return err
	}
	if len(events) > 0 {
		if tr.begun++; tr.waiting != nil {
			tr.replaced++
		}
		tr.waiting, tr.open = &events[0], c
	}
	tr.ref.k.mem.mutate(tr.rnd)
	c = &referenceCall{args: plan.args, result: plan.result, now: tr.moment()}
	if _, err := tr.end.enter(c); err != nil {
		return err
	}
	if tr.waiting != nil {
		c.start = tr.waiting.at.time
	}
	if _, err := tr.end.leave(c); err != nil {
		return err
	}
	if err := tr.finish(frame); err != nil {
		return err
	}
	leave()
	return tr.err
}

// finish ends the span that waits, if the conditions hold that do not depend on the
// duration. It is shown or counted if the others do, too.
func (tr *spanTrial) finish(frame uint64) error {
	early, late := tr.conditions()
	if !tr.hold(early) {
		if tr.waiting != nil {
			tr.waited++
		}
		return nil
	}
	if tr.waiting == nil {
		return nil
	}
	begin := *tr.waiting
	tr.waiting = nil
	if !tr.hold(late) {
		tr.timed++
		return nil
	}
	ended := tr.end.event(compiler.SpanEvent, compiler.AtReturn)
	if tr.ref.measure == compiler.Tables {
		c, err := tr.end.eval(&spec.Return{})
		if err != nil {
			return err
		}
		number := fmt.Sprint(int64(tr.end.number(c).num))
		if tr.tables[number] == nil {
			tr.tables[number] = &counted{}
		}
		tr.ref.call = tr.open
		tr.ref.count(tr.tables[number])
		return nil
	}
	ended.items = append(slices.Clone(begin.items), ended.items...)
	ended.start, ended.frame = begin.at.time, frame
	tr.spans, tr.starts = append(tr.spans, ended), append(tr.starts, begin.at)
	return nil
}

// conditions returns the conditions of the end: those that do not depend on the duration,
// and those that do.
func (tr *spanTrial) conditions() (early, late []spec.Cond) {
	for _, whole := range tr.end.conds() {
		for _, c := range conjuncts(whole) {
			timed := false
			cond(c, func(it *spec.Item) truth {
				it.Walk(func(e spec.Expr) { timed = timed || e.String() == "$duration" })
				return no
			})
			if timed {
				late = append(late, c)
			} else {
				early = append(early, c)
			}
		}
	}
	return early, late
}

// conjuncts returns the conditions that must all hold for c to hold.
func conjuncts(c spec.Cond) []spec.Cond {
	switch c := c.(type) {
	case *spec.And:
		return append(conjuncts(c.X), conjuncts(c.Y)...)
	case *spec.Not:
		switch x := c.X.(type) {
		case *spec.Not:
			return conjuncts(x.X)
		case *spec.Or:
			return append(conjuncts(&spec.Not{X: x.X}), conjuncts(&spec.Not{X: x.Y})...)
		}
	}
	return []spec.Cond{c}
}

// hold returns whether conditions of the end hold, and counts an end for which they do not
// because a value in them could not be read.
func (tr *spanTrial) hold(conds []spec.Cond) bool {
	least, most := tr.end.unreadable(conds, tr.trampoline())
	tr.least, tr.most = tr.least+least, tr.most+most
	return tr.end.verdict(conds) == yes
}

// checkSpans compares what the programs have written and counted with what is expected.
func (tr *spanTrial) checkSpans() error {
	begin, ended := tr.counters(0), tr.counters(1)
	if n := int(ended.Unreadable); n < tr.least || n > tr.most {
		return fmt.Errorf("%d ends count as unreadable, and not %d to %d", n, tr.least, tr.most)
	}
	open := uint64(0)
	if tr.waiting != nil {
		open = 1
	}
	if begin.Open != open || begin.Replaced != tr.replaced {
		return fmt.Errorf("%d beginnings wait, and %d were replaced, and not %d and %d", begin.Open, begin.Replaced, open, tr.replaced)
	}
	matched := uint64(len(tr.spans))
	if tr.ref.measure == compiler.Tables {
		tr.counted = tr.rowsOfAll()
		matched = tr.counted.matched
		if err := tr.checkTable(1); err != nil {
			return err
		}
	}
	if tr.countsCalls && (begin.Matched != tr.begun || ended.Matched != matched) {
		return fmt.Errorf("%d spans have begun, and %d match, and not %d and %d", begin.Matched, ended.Matched, tr.begun, matched)
	}
	own := tr.own()
	if len(own) != len(tr.spans) {
		return fmt.Errorf("%d spans are shown, and not %d: %+v", len(own), len(tr.spans), tr.spans)
	}
	for i, rec := range own {
		if err := tr.checkSpan(rec, tr.spans[i], tr.starts[i]); err != nil {
			return fmt.Errorf("span %d: %w", i, err)
		}
	}
	return nil
}

// checkSpan compares a record with the span that is expected, and with the moment of its
// beginning.
func (tr *spanTrial) checkSpan(rec []byte, want expected, at moment) error {
	order := binary.LittleEndian
	if err := tr.checkEvent(rec, want); err != nil {
		return err
	}
	ev := tr.unit.Events[order.Uint32(rec)]
	begin := rec[ev.Layout.Begin:][:compiler.BeginSize]
	comm, _, _ := strings.Cut(string(begin[compiler.BeginComm:]), "\x00")
	got := moment{pidtid: order.Uint64(begin[compiler.BeginPIDTID:]), cpu: uint32(order.Uint64(begin[compiler.BeginCPU:])), comm: comm, time: order.Uint64(rec[ev.Layout.Start:])}
	if want := (moment{pidtid: at.pidtid, cpu: at.cpu, comm: at.comm, time: at.time}); got != want {
		return fmt.Errorf("it begins at %+v, and not %+v", got, want)
	}
	return nil
}

// rowsOfAll joins what is expected in the table: what the end adds is the last part of
// each key.
func (tr *spanTrial) rowsOfAll() counted {
	sum := counted{rows: map[string]*tabled{}}
	for number, n := range tr.tables {
		sum.matched += n.matched
		sum.faulted += n.faulted
		for key, row := range n.rows {
			whole := number
			if tr.ref.table.key > 0 {
				whole = key + " " + number
			}
			sum.rows[whole] = row
		}
	}
	return sum
}
