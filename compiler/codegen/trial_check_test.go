package codegen

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
)

// check compares what was recorded with what the reference expects.
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
	if n := tr.keptCalls(); n > 0 {
		return fmt.Errorf("%d calls are left", n)
	}
	var sum compiler.Counters
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
	if tr.ref.measure != compiler.NoMeasure {
		return tr.checkMeasure()
	}
	return tr.checkCounts()
}

// checkCounts checks that every call counts once for each event, as matched or as
// filtered.
func (tr *trial) checkCounts() error {
	shown := map[*compiler.EventType]int{}
	for _, rec := range tr.own() {
		shown[tr.unit.Events[binary.LittleEndian.Uint32(rec)]]++
	}
	for i, ev := range tr.unit.Events {
		if ev.Probe != tr.probe() {
			continue
		}
		calls := len(tr.calls)
		matched := shown[ev] + int(tr.limited[ev.Kind])
		if !tr.countsCalls {
			calls, matched = 0, 0
		}
		c := tr.counters(i)
		if c.Limited != tr.limited[ev.Kind] {
			return fmt.Errorf("event %d: %d are more than the rate, and not %d", i, c.Limited, tr.limited[ev.Kind])
		}
		if int(c.Matched) != matched || int(c.Matched+c.Filtered) != calls {
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
	if !slices.Contains(sizes(ev), len(rec)) || ev.Kind != want.kind || len(ev.Items) != len(want.items) {
		return fmt.Errorf("%d bytes of kind %d with %d items, and not %v, %d, %d",
			len(rec), ev.Kind, len(ev.Items), sizes(ev), want.kind, len(want.items))
	}
	comm, _, _ := strings.Cut(string(rec[compiler.HeaderComm:compiler.HeaderSize]), "\x00")
	at := moment{
		order.Uint64(rec[compiler.HeaderPIDTID:]), order.Uint32(rec[compiler.HeaderCPU:]), want.at.uid,
		comm, order.Uint64(rec[compiler.HeaderTime:]), want.at.kstack, want.at.ustack,
	}
	if tr.rate > 0 && at.time == want.at.time+1 {
		at.time-- // the program has asked in the second before it has read the time of the event
	}
	if at != want.at {
		return fmt.Errorf("header %+v, and not %+v", at, want.at)
	}
	if id := order.Uint64(rec[compiler.HeaderCall:]); id != want.frame {
		return fmt.Errorf("call %#x, and not %#x", id, want.frame)
	}
	if at := ev.Layout.Start; at != 0 && order.Uint64(rec[at:]) != want.start {
		return fmt.Errorf("start %d, and not %d", order.Uint64(rec[at:]), want.start)
	}
	return checkItems(rec, ev, want.items)
}

// checkItems compares what a record contains of items with what is expected.
func checkItems(rec []byte, ev *compiler.EventType, want []shown) error {
	for i, w := range want {
		if got := shownIn(rec, ev.Layout, i, w); !got.equal(w) {
			return fmt.Errorf("%s is %+v, and not %+v", ev.Items[i].Name, got, w)
		}
	}
	return nil
}

// shownIn returns what a record contains of an item, limited to the parts that
// are expected.
func shownIn(rec []byte, l compiler.Layout, i int, want shown) shown {
	s := l.Slot(i, len(rec))
	got := shown{fault: compiler.Fault(rec[l.Faults+i]), number: want.number, text: want.text}
	if want.number {
		got.head = binary.LittleEndian.Uint64(rec[s.Off:])
	}
	switch {
	case want.text:
		got.data = rec[s.Data:][:s.Cap]
		length := min(slices.Index(got.data, 0), s.Full-1) // beside a path, it has more room than it needs
		got.data = append(slices.Clone(got.data[:max(length, 0)]), 0)
	case want.path != "":
		got.path = pathText(rec[s.Data:][:s.Cap])
	case want.stack:
		got.stack, got.data = true, rec[s.Data:][:len(want.data)]
	case want.data != nil:
		got.data = rec[s.Data:][:s.Cap]
	}
	return got
}

func (s shown) equal(o shown) bool {
	return s.fault == o.fault && s.head == o.head && s.path == o.path && slices.Equal(s.data, o.data)
}

// requireAgreement fails with everything that is needed to reproduce the error.
func (tr *trial) requireAgreement(seed uint64, err error) {
	switch {
	case err != nil:
	case tr.ref.fn.iterator:
		err = tr.checkRows()
	default:
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
