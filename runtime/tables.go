package runtime

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime/clock"
)

// Tables returns what has been counted so far of each spec with aggregates. After
// [Session.Stop] it is exact and does not change any more. Before, the cells of a
// row may have some calls more than its Calls. An iterator of the kernel reads the
// tables (5.9): if they are read by bpf(2), as where iterators are not permitted, kprobes
// can miss calls meanwhile, which are counted.
func (s *Session) Tables() ([]*Table, error) {
	var all []*Table
	for _, l := range s.unit.Tables {
		t, err := s.readTable(l)
		if err != nil {
			return nil, fmt.Errorf("read the table of %s: %w", label(l.Asked), err)
		}
		all = append(all, t)
	}
	return all, nil
}

// label returns what a spec traces, or the two points of a span.
func label(t *spec.Trace) string {
	if t.Ending != nil {
		return t.Target() + " => " + t.Ending.Target()
	}
	return t.Target()
}

// counted returns a table without its rows, as it is since the beginning.
func (s *Session) counted(l *compiler.TableLayout) (*Table, error) {
	probe := s.unit.Events[l.Events[0]].Probe
	t := &Table{
		Label: label(l.Asked), ByFunction: l.Function >= 0, Key: probe.Key, Aggregates: probe.Aggregates,
		Since: s.attachedAt, Time: clock.Now(),
	}
	return t, s.counters.use(func(load func(off int) uint64) {
		for _, number := range l.Events {
			t.Full += s.unit.Counters.Sum(number, compiler.CounterFull, load)
			t.Faulted += s.unit.Counters.Sum(number, compiler.CounterFaulted, load)
		}
	})
}

// readTable reads one table.
func (s *Session) readTable(l *compiler.TableLayout) (*Table, error) {
	t, err := s.counted(l)
	if err != nil {
		return nil, err
	}
	if s.emptied != nil {
		before := s.emptied[l]
		t.Since, t.Full, t.Faulted = before.Time, t.Full-before.Full, t.Faulted-before.Faulted
	}
	return t, s.eachElement(l, func(key, element []byte) error {
		if row, ok := s.row(l, key, element); ok {
			t.Rows = append(t.Rows, row)
		}
		return nil
	})
}

// emptyTables removes all rows, so that there is room for the keys of the next pass over
// iterators. Nothing is counted meanwhile.
func (s *Session) emptyTables() error {
	emptied := map[*compiler.TableLayout]*Table{}
	for _, l := range s.unit.Tables {
		t, err := s.counted(l)
		if err != nil {
			return err
		}
		emptied[l] = t
		var keys [][]byte
		err = s.eachElement(l, func(key, _ []byte) error {
			keys = append(keys, key)
			return nil
		})
		for i := 0; i < len(keys) && err == nil; i++ {
			err = s.coll.Maps[l.Map].Delete(keys[i])
		}
		if err != nil {
			return fmt.Errorf("empty the table of %s: %w", label(l.Asked), err)
		}
	}
	s.emptied = emptied
	return nil
}

// eachElement calls f with each key of a table and its element.
func (s *Session) eachElement(l *compiler.TableLayout, f func(key, element []byte) error) error {
	m := s.coll.Maps[l.Map]
	prog, err := s.elementReader(l, m)
	if errors.Is(err, unix.EPERM) {
		return lookUpEach(m, l, f)
	}
	if err != nil {
		return err
	}
	iter, err := link.AttachIter(link.IterOptions{Program: prog, Map: m})
	if err != nil {
		return err
	}
	defer iter.Close()
	file, err := iter.Open()
	if err != nil {
		return err
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, 1<<16)
	for {
		b := make([]byte, int(m.KeySize())+l.Size)
		switch _, err := io.ReadFull(r, b); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := f(b[:m.KeySize()], b[m.KeySize():]); err != nil {
			return err
		}
	}
}

// lookUpEach does the same by bpf(2), where the kernel permits tracing but not iterators.
func lookUpEach(m *ebpf.Map, l *compiler.TableLayout, f func(key, element []byte) error) error {
	var key, element []byte
	entries := m.Iterate()
	for entries.Next(&key, &element) {
		if err := f(slices.Clone(key), slices.Clone(element[:l.Size])); err != nil {
			return err
		}
	}
	return entries.Err()
}

// elementReader returns the program of an iterator that writes the keys and the
// elements of a table, or EPERM.
func (s *Session) elementReader(l *compiler.TableLayout, m *ebpf.Map) (*ebpf.Program, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.readers[l]; p != nil {
		return p, nil
	}
	const name = "elements"
	spec := &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{name: {
		Name: name, Type: ebpf.Tracing, AttachType: ebpf.AttachTraceIter, AttachTo: "bpf_map_elem", License: "Dual MIT/GPL",
		Instructions: asm.Instructions{
			asm.LoadMem(asm.R7, asm.R1, 16, asm.DWord), // ctx->key
			asm.JEq.Imm(asm.R7, 0, "exit"),             // the last call
			asm.LoadMem(asm.R8, asm.R1, 24, asm.DWord), // ctx->value
			asm.JEq.Imm(asm.R8, 0, "exit"),
			asm.LoadMem(asm.R1, asm.R1, 0, asm.DWord), // ctx->meta
			asm.LoadMem(asm.R6, asm.R1, 0, asm.DWord), // ctx->meta->seq
			asm.Mov.Reg(asm.R1, asm.R6),
			asm.Mov.Reg(asm.R2, asm.R7),
			asm.Mov.Imm(asm.R3, int32(m.KeySize())),
			asm.FnSeqWrite.Call(),
			asm.Mov.Reg(asm.R1, asm.R6),
			asm.Mov.Reg(asm.R2, asm.R8),
			asm.Mov.Imm(asm.R3, int32(l.Size)),
			asm.FnSeqWrite.Call(),
			asm.Mov.Imm(asm.R0, 0).WithSymbol("exit"),
			asm.Return(),
		},
	}}}
	coll, err := s.kernel.load(spec)
	if errors.Is(err, unix.EPERM) {
		return nil, err
	}
	if err != nil {
		return nil, loadError(spec, err, lockableHere(), ReadPrivileges())
	}
	if s.readers == nil {
		s.readers = map[*compiler.TableLayout]*ebpf.Program{}
	}
	s.readers[l] = coll.DetachProgram(name)
	coll.Close()
	return s.readers[l], nil
}

// row decodes a row. It returns false if no call has been counted in it yet.
func (s *Session) row(l *compiler.TableLayout, key, element []byte) (Row, bool) {
	order := binary.NativeEndian
	row := Row{Calls: order.Uint64(element)}
	if row.Calls == 0 {
		return row, false
	}
	probe := s.unit.Events[l.Events[0]].Probe
	if l.Function >= 0 {
		if n := int(order.Uint64(key[l.Function:])); slices.Contains(l.Events, n) {
			probe = s.unit.Events[n].Probe
		}
		row.Func = probe.Func.Name
	}
	for i, v := range probe.Key {
		row.Key = append(row.Key, keyValue(v, l, i, key, element))
	}
	for i, a := range probe.Aggregates {
		row.Cells = append(row.Cells, newCell(a, l, row.Calls, element[l.Cells[i]:]))
	}
	return row, true
}

// keyValue decodes a part of a key.
func keyValue(v *compiler.Value, l *compiler.TableLayout, i int, key, element []byte) Value {
	at := l.Key[i]
	slot := compiler.Slot{Off: at, Data: at}
	switch {
	case v.Base.Builtin == compiler.KernelStack:
		stack := element[l.Stacks[i]:]
		n := int64(binary.NativeEndian.Uint64(stack))
		stack = stack[8 : 8+min(max(n, 0), 8*int64(stackFrames))]
		return Value{Value: v, Data: stack, Full: len(stack)}
	case v.Text != compiler.NoText:
		slot.Cap = compiler.MostKeyPart + compiler.StringSlack
	case v.Scalar != nil:
		slot.Cap = 8
	default:
		slot.Cap, _ = btf.Sizeof(v.Type) // sizes of bound values are known
	}
	slot.Full = slot.Cap
	val := decodeValue(v, slot, compiler.NoFault, key)
	val.Addr = 0
	return val
}

// stackFrames is the largest number of frames of a stack in a table.
const stackFrames = 64

// newCell decodes an aggregate from the beginning of b.
func newCell(a *compiler.Aggregate, l *compiler.TableLayout, calls uint64, b []byte) (c Cell) {
	order := binary.NativeEndian
	switch a.Kind {
	case compiler.Count:
		c.Number = NewUint(calls)
	case compiler.Sum, compiler.Avg:
		c.Number = number(order.Uint64(b[8:]), a.Signed()).shifted().Add(NewUint(order.Uint64(b)))
	case compiler.Min, compiler.Max:
		c.Number = extreme(extremeOf(a, l, b), a.Signed())
	default:
		c.Buckets = bucketsOf(a, func(i int, _ Int) uint64 { return order.Uint64(b[8*i:]) })
	}
	return c
}

// extremeOf returns the least or the greatest value, stored as in [compiler.Extremes]: that
// of all CPUs, or the one that they share.
func extremeOf(a *compiler.Aggregate, l *compiler.TableLayout, b []byte) (v uint64) {
	order := binary.NativeEndian
	if l.Slots == 0 {
		v = order.Uint64(b)
	}
	for i := range l.Slots * compiler.Nesting {
		at := i*compiler.ExtremesSize + compiler.ExtremesMost
		if a.Kind == compiler.Min {
			at = i*compiler.ExtremesSize + compiler.ExtremesNotLeast
		}
		v = max(v, order.Uint64(b[at:]))
	}
	if a.Kind == compiler.Min {
		v = ^v
	}
	return v
}

// bucketsOf returns the buckets of a histogram from the first to the last that is not
// empty. count returns what is in bucket i, whose least value is from.
func bucketsOf(a *compiler.Aggregate, count func(i int, from Int) uint64) []Bucket {
	var all []Bucket
	for i := range a.Buckets() {
		if a.Kind == compiler.Hist && a.Signed() && i == 64 {
			continue // no value from 0 on has 64 bits
		}
		low, high := a.Edges(i)
		from := number(low, a.Signed())
		all = append(all, Bucket{from, number(high, a.Signed()), count(i, from)})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].From.Cmp(all[j].From) < 0 })
	counted := func(b Bucket) bool { return b.Count > 0 }
	for len(all) > 0 && !counted(all[len(all)-1]) {
		all = all[:len(all)-1]
	}
	return all[max(slices.IndexFunc(all, counted), 0):]
}
