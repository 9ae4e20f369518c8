package compiler

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
)

// check compares what was recorded with what the reference wants.
func (tr *trial) check() error {
	if tr.err != nil {
		return tr.err
	}
	own := tr.own()
	if len(own) != len(tr.want) {
		return fmt.Errorf("%d events, and not %d: %+v", len(own), len(tr.want), tr.want)
	}
	for i, rec := range own {
		if err := tr.checkEvent(rec, tr.want[i]); err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
	}
	for name, calls := range tr.hashes {
		if len(calls) > 0 && name != FirstMap {
			return fmt.Errorf("%d calls are left in %s", len(calls), name)
		}
	}
	var sum Counters
	for i, ev := range tr.unit.Events {
		if ev.Probe != tr.probe() {
			continue
		}
		c := tr.counters(i)
		sum.Unreadable += c.Unreadable
		sum.Unpaired += c.Unpaired + c.NoRoom + c.Lost
	}
	if n := int(sum.Unreadable); n < tr.least || n > tr.most {
		return fmt.Errorf("%d calls count as unreadable, and not %d to %d", n, tr.least, tr.most)
	}
	if sum.Unpaired != 0 {
		return fmt.Errorf("%d calls count as lost", sum.Unpaired)
	}
	if tr.ref.measure != NoMeasure {
		return tr.checkMeasure()
	}
	return tr.checkTally()
}

// checkTally: every call counts once for each event, as shown or as filtered.
func (tr *trial) checkTally() error {
	shown := map[*Event]int{}
	for _, rec := range tr.own() {
		shown[tr.unit.Events[binary.LittleEndian.Uint32(rec)]]++
	}
	for i, ev := range tr.unit.Events {
		if ev.Probe != tr.probe() {
			continue
		}
		calls := len(tr.calls)
		if !tr.tally {
			calls, shown[ev] = 0, 0
		}
		c := tr.counters(i)
		if int(c.Matched) != shown[ev] || int(c.Matched+c.Filtered) != calls {
			return fmt.Errorf("event %d of %d calls: %d shown, matched %d, filtered %d", i, calls, shown[ev], c.Matched, c.Filtered)
		}
	}
	return nil
}

func (tr *trial) checkEvent(rec []byte, want expected) error {
	order := binary.LittleEndian
	number := order.Uint32(rec)
	if number >= uint32(len(tr.unit.Events)) {
		return fmt.Errorf("event %d", number)
	}
	ev := tr.unit.Events[number]
	if len(rec) != ev.Layout.Size || ev.Kind != want.kind || len(ev.Items) != len(want.items) {
		return fmt.Errorf("%d bytes of kind %d with %d items, and not %d, %d, %d",
			len(rec), ev.Kind, len(ev.Items), ev.Layout.Size, want.kind, len(want.items))
	}
	comm, _, _ := strings.Cut(string(rec[HeaderComm:HeaderSize]), "\x00")
	at := moment{
		order.Uint64(rec[HeaderPIDTID:]), order.Uint32(rec[HeaderCPU:]), want.at.uid,
		comm, order.Uint64(rec[HeaderTime:]),
	}
	if at != want.at {
		return fmt.Errorf("header %+v, and not %+v", at, want.at)
	}
	if id := order.Uint64(rec[HeaderCall:]); id != want.frame {
		return fmt.Errorf("call %#x, and not %#x", id, want.frame)
	}
	if at := ev.Layout.Start; at != 0 && order.Uint64(rec[at:]) != want.start {
		return fmt.Errorf("start %d, and not %d", order.Uint64(rec[at:]), want.start)
	}
	for i, w := range want.items {
		got := shownIn(rec, ev.Layout, i, w)
		if !got.equal(w) {
			return fmt.Errorf("%s is %+v, and not %+v", ev.Items[i].Name, got, w)
		}
	}
	return nil
}

// shownIn is what a record has of an item, of those parts that it must have.
func shownIn(rec []byte, l Layout, i int, want shown) shown {
	s := l.Slots[i]
	got := shown{fault: Fault(rec[l.Faults+i]), number: want.number, text: want.text}
	if want.number {
		got.head = binary.LittleEndian.Uint64(rec[s.Off:])
	}
	switch {
	case want.text:
		got.data = rec[s.Data:][:s.Cap]
		got.data = got.data[:slices.Index(got.data, 0)+1]
	case want.data != nil:
		got.data = rec[s.Data:][:s.Cap]
	}
	return got
}

func (s shown) equal(o shown) bool {
	return s.fault == o.fault && s.head == o.head && slices.Equal(s.data, o.data)
}

// requireAgreement fails with all that is needed to see why.
func (tr *trial) requireAgreement(seed uint64, err error) {
	if err == nil {
		err = tr.check()
	}
	if err == nil || tr.ref.open {
		return
	}
	for _, a := range tr.unit.Attachments {
		tr.t.Logf("%s\n%v", a.Program, tr.unit.Collection.Programs[a.Program].Instructions)
	}
	for _, p := range tr.unit.Probes() {
		tr.t.Log(p.Trace.Text)
	}
	require.Fail(tr.t, err.Error(), "-seed %d: %s", seed, tr.ref.trace.Text)
}
