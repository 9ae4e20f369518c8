package recording

import (
	"bytes"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// hostileUnit returns a unit of an event whose layout is that of no program.
func hostileUnit(measure compiler.Measure, kind compiler.EventKind) *compiler.Unit {
	v := &compiler.Value{Name: "x", Type: &btf.Int{Name: "int", Size: 4}, Scalar: &compiler.Scalar{Size: 4}}
	p := &compiler.Probe{Func: &compiler.Function{Name: "f", Symbol: "f"}, Measure: measure, Key: []*compiler.Value{v}}
	p.Aggregates = []*compiler.Aggregate{{Kind: compiler.Avg, Name: "avg(x)", Value: v}}
	ev := &compiler.EventType{Kind: kind, Probe: p, Items: []*compiler.Value{v}}
	ev.Layout = compiler.Layout{Size: 48, Start: 1 << 20, Faults: 40, Slots: []compiler.Slot{{Off: 40, Data: 40, Cap: 4, Full: 4}}}
	return &compiler.Unit{Events: []*compiler.EventType{ev}}
}

// TestRecordOfNoEvent verifies that a record is refused of an event that has none, whose
// layout nobody has checked.
func TestRecordOfNoEvent(t *testing.T) {
	for kind, measure := range map[compiler.EventKind]compiler.Measure{compiler.EntryEvent: compiler.Tables, compiler.BeginEvent: compiler.NoMeasure} {
		var file bytes.Buffer
		w, err := NewWriter(&file, hostileUnit(measure, kind), Origin{}, nil)
		require.NoError(t, err)
		require.EqualError(t, w.Record(make([]byte, 47)), "write a record of 47 bytes: it has no header")
		require.NoError(t, w.Record(make([]byte, 64)))
		require.NoError(t, w.Flush())
		r, err := NewReader(&file)
		require.NoError(t, err)
		item, err := r.Next()
		require.NoError(t, err)
		var ev runtime.Event
		require.EqualError(t, ev.Decode(r.Unit, item.Record), "decode a record of f: this event has no records")
	}
}

// TestTableOfEvents verifies that a table belongs to events that are counted in tables, and
// that its rows have calls: the average is of them.
func TestTableOfEvents(t *testing.T) {
	written := func(measure compiler.Measure, calls uint64) (*Reader, error) {
		unit := hostileUnit(measure, compiler.EntryEvent)
		unit.Tables = []*compiler.TableLayout{{Function: -1, Events: []int{0}}}
		var file bytes.Buffer
		w, err := NewWriter(&file, unit, Origin{}, nil)
		if err != nil {
			return nil, err
		}
		p := unit.Events[0].Probe
		row := runtime.Row{Calls: calls, Key: []runtime.Value{{Value: p.Key[0], Data: make([]byte, 4)}}, Cells: make([]runtime.Cell, 1)}
		require.NoError(t, w.Tables([]*runtime.Table{{Key: p.Key, Aggregates: p.Aggregates, Rows: []runtime.Row{row}}}))
		require.NoError(t, w.Flush())
		return NewReader(&file)
	}
	r, err := written(compiler.Tables, 1)
	require.NoError(t, err)
	item, err := r.Next()
	require.NoError(t, err)
	require.Len(t, item.Table.Rows, 1)
	r, err = written(compiler.Tables, 0)
	require.NoError(t, err)
	_, err = r.Next()
	require.ErrorContains(t, err, "its content is not what a recording has")
	_, err = written(compiler.NoMeasure, 1)
	require.ErrorContains(t, err, "its content is not what a recording has")
}
