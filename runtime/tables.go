package runtime

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime/clock"
)

// Tables returns what has been counted so far of each spec with aggregates, or since
// [Session.ClearTables]. After [Session.Stop] it is exact and does not change any more.
// Before, the cells of a row may have some calls more than its Calls. An iterator of the
// kernel reads the tables (5.9): if they are read by bpf(2), as where iterators are not
// permitted, kprobes can miss calls meanwhile, which are counted.
func (s *Session) Tables() ([]*Table, error) {
	var all []*Table
	for _, l := range s.unit.Tables {
		t, err := s.readTable(l, s.turn)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// ClearTables returns what Tables does, and counts anew from then on: each call is in what
// one of them returns, and is there whole. It waits for a grace period, some 10 ms, by
// bpf(2): on a preemptible kernel kprobes can miss calls meanwhile, which are counted. The
// unit must have been compiled with [compiler.Options].ClearTables. Only one goroutine at
// a time may call Tables and ClearTables.
func (s *Session) ClearTables() (all []*Table, err error) {
	if len(s.unit.Tables) > 0 && len(s.unit.Tables[0].Maps) < 2 {
		return nil, errors.New("the unit was compiled without Options.ClearTables")
	}
	idle := s.turn
	at, err := s.takeTurns()
	if err != nil {
		return nil, err
	}
	for _, l := range s.unit.Tables {
		t, err := s.readTable(l, idle)
		if err != nil {
			return nil, err
		}
		t.Time = at
		all = append(all, t)
		if err := s.emptyTable(l, idle, t); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// takeTurns makes calls be counted in the other maps of all tables, and waits for the end
// of programs that have not seen this yet. It returns the time at which calls began to be
// counted there.
func (s *Session) takeTurns() (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, os.ErrClosed
	}
	s.turn = 1 - s.turn
	at := clock.Now()
	if err := s.counters.store(compiler.ControlTurn, uint64(s.turn)); err != nil {
		return 0, err
	}
	return at, s.waitPrograms()
}

// label returns what a spec traces, or the two points of a span.
func label(t *spec.Trace) string {
	if t.Ending != nil {
		return t.Target() + " => " + t.Ending.Target()
	}
	return t.Target()
}

// counted returns a table without its rows, since it was empty.
func (s *Session) counted(l *compiler.TableLayout) (*Table, error) {
	probe := s.unit.Events[l.Events[0]].Probe
	begun := s.emptied[l]
	t := &Table{
		Label: label(l.Asked), ByFunction: l.Function >= 0, Key: probe.Key, Aggregates: probe.Aggregates,
		Since: cmp.Or(begun.at, s.attachedAt), Time: clock.Now(), Full: -begun.full, Faulted: -begun.faulted,
	}
	return t, s.counters.use(func(load func(off int) uint64) {
		for _, number := range l.Events {
			t.Full += s.unit.Counters.Sum(number, compiler.CounterFull, load)
			t.Faulted += s.unit.Counters.Sum(number, compiler.CounterFaulted, load)
		}
	})
}

// readTable reads what one of the maps of a table has counted since it was empty.
func (s *Session) readTable(l *compiler.TableLayout, turn int) (*Table, error) {
	t, err := s.counted(l)
	if err != nil {
		return nil, err
	}
	err = s.eachElement(l, s.coll.Maps[l.Maps[turn]], func(key, element []byte) error {
		if row, ok := s.row(l, key, element); ok {
			t.Rows = append(t.Rows, row)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the table of %s: %w", t.Label, err)
	}
	return t, nil
}

// emptying is when a table was emptied, and what had been counted before.
type emptying struct {
	at            time.Duration // CLOCK_MONOTONIC
	full, faulted uint64
}

// emptyTable removes the rows of one of the maps of a table, of which t has been read.
func (s *Session) emptyTable(l *compiler.TableLayout, turn int, t *Table) error {
	if err := s.empty(s.coll.Maps[l.Maps[turn]]); err != nil {
		return fmt.Errorf("empty the table of %s: %w", t.Label, err)
	}
	if s.emptied == nil {
		s.emptied = map[*compiler.TableLayout]emptying{}
	}
	begun := s.emptied[l]
	s.emptied[l] = emptying{t.Time, begun.full + t.Full, begun.faulted + t.Faulted}
	return nil
}

// emptyTables removes all rows, so that there is room for the keys of the next pass over
// iterators. Nothing is counted meanwhile.
func (s *Session) emptyTables() error {
	for _, l := range s.unit.Tables {
		t, err := s.counted(l)
		if err != nil {
			return err
		}
		if err := s.emptyTable(l, 0, t); err != nil {
			return err
		}
	}
	return nil
}

// eachElement calls f with each key of a map of a table and its element.
func (s *Session) eachElement(l *compiler.TableLayout, m *ebpf.Map, f func(key, element []byte) error) error {
	prog, err := s.forElements("elements", m, writeElement(int32(m.KeySize()), int32(l.Size)))
	if errors.Is(err, unix.EPERM) {
		return lookUpEach(m, l, f)
	}
	if err != nil {
		return err
	}
	_, err = iterate(link.IterOptions{Program: prog, Map: m}, func(file io.Reader) (none struct{}, err error) {
		r := bufio.NewReaderSize(file, 1<<16)
		for {
			b := make([]byte, int(m.KeySize())+l.Size)
			switch _, err := io.ReadFull(r, b); {
			case errors.Is(err, io.EOF):
				return none, nil
			case err != nil:
				return none, err
			}
			if err := f(b[:m.KeySize()], b[m.KeySize():]); err != nil {
				return none, err
			}
		}
	})
	return err
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

// empty removes all elements of a map of a table, in which nothing is counted meanwhile.
// An iterator does so, for the same reason as one reads them; after a million it makes a
// pause (MAX_ITER_OBJECTS in kernel/bpf/bpf_iter.c), and the next one takes the rest.
// The one element of a table without a key becomes zero.
func (s *Session) empty(m *ebpf.Map) error {
	do, each := removeElement, removeEach
	if m.Type() == ebpf.Array {
		do, each = zeroElement, zero
	}
	prog, err := s.forElements("empty", m, do(m))
	if errors.Is(err, unix.EPERM) {
		return each(m)
	}
	if err != nil {
		return err
	}
	for more := true; more && err == nil; {
		more, err = iterate(link.IterOptions{Program: prog, Map: m}, func(file io.Reader) (more bool, err error) {
			_, err = file.Read(make([]byte, 1))
			if more = errors.Is(err, unix.EAGAIN); more || errors.Is(err, io.EOF) {
				err = nil
			}
			return more, err
		})
	}
	return err
}

// removeEach does the same by bpf(2).
func removeEach(m *ebpf.Map) error {
	var key, element []byte
	var keys [][]byte
	entries := m.Iterate()
	for entries.Next(&key, &element) {
		keys = append(keys, slices.Clone(key))
	}
	err := entries.Err()
	for i := 0; i < len(keys) && err == nil; i++ {
		err = m.Delete(keys[i])
	}
	return err
}

// zero sets the element of a table without a key to zero, by bpf(2).
func zero(m *ebpf.Map) error {
	return m.Update(uint32(0), make([]byte, m.ValueSize()), ebpf.UpdateAny)
}

// forElements returns a program that an iterator runs for each element of a map, or EPERM.
// R1 is its context, R7 points to the key and R8 to the element.
func (s *Session) forElements(name string, m *ebpf.Map, do asm.Instructions) (*ebpf.Program, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := elementProgram{name, m}
	if p := s.elements[id]; p != nil {
		return p, nil
	}
	spec := &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{name: {
		Name: name, Type: ebpf.Tracing, AttachType: ebpf.AttachTraceIter, AttachTo: "bpf_map_elem", License: "Dual MIT/GPL",
		Instructions: slices.Concat(asm.Instructions{
			asm.LoadMem(asm.R7, asm.R1, 16, asm.DWord), // ctx->key
			asm.JEq.Imm(asm.R7, 0, "exit"),             // the last call
			asm.LoadMem(asm.R8, asm.R1, 24, asm.DWord), // ctx->value
			asm.JEq.Imm(asm.R8, 0, "exit"),
		}, do, asm.Instructions{
			asm.Mov.Imm(asm.R0, 0).WithSymbol("exit"),
			asm.Return(),
		}),
	}}}
	coll, err := s.kernel.load(spec)
	if errors.Is(err, unix.EPERM) {
		return nil, err
	}
	if err != nil {
		return nil, loadError(spec, err, lockableHere(), ReadPrivileges())
	}
	if s.elements == nil {
		s.elements = map[elementProgram]*ebpf.Program{}
	}
	s.elements[id] = coll.DetachProgram(name)
	coll.Close()
	return s.elements[id], nil
}

// elementProgram identifies a program for the elements of a map.
type elementProgram struct {
	name string
	of   *ebpf.Map
}

// writeElement writes a key and its element to the file of the iterator.
func writeElement(keySize, size int32) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.R1, 0, asm.DWord), // ctx->meta
		asm.LoadMem(asm.R6, asm.R1, 0, asm.DWord), // ctx->meta->seq
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Reg(asm.R2, asm.R7),
		asm.Mov.Imm(asm.R3, keySize),
		asm.FnSeqWrite.Call(),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Reg(asm.R2, asm.R8),
		asm.Mov.Imm(asm.R3, size),
		asm.FnSeqWrite.Call(),
	}
}

// removeElement removes an element from the map. Its size of a key is a multiple of 8.
func removeElement(m *ebpf.Map) (do asm.Instructions) {
	size := int16(m.KeySize())
	for at := int16(0); at < size; at += 8 {
		do = append(do, asm.LoadMem(asm.R1, asm.R7, at, asm.DWord), asm.StoreMem(asm.RFP, at-size, asm.R1, asm.DWord))
	}
	return append(do,
		asm.LoadMapPtr(asm.R1, m.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -int32(size)),
		asm.FnMapDeleteElem.Call(),
	)
}

// zeroElement sets an element to zero. Its size is a multiple of 8.
func zeroElement(m *ebpf.Map) (do asm.Instructions) {
	do = append(do, asm.Mov.Imm(asm.R1, 0))
	for at := int16(0); at < int16(m.ValueSize()); at += 8 {
		do = append(do, asm.StoreMem(asm.R8, at, asm.R1, asm.DWord))
	}
	return do
}
