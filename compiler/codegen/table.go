package codegen

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

const (
	// mostTable is the largest size of a table in bytes: it is all allocated in
	// advance, so that no call finds too little memory.
	mostTable = 256 << 20
	// mostElement is the largest size of a key with its element in bytes: an
	// iterator writes them at once, to a buffer of eight pages.
	mostElement = 30 << 10
	// stackBytes is the size of a stack in an element of a table, after its length.
	stackBytes = 8 * 64
)

// addTables decides where the tables of specs with aggregates are. The functions of
// a glob share one.
func (u *generator) addTables(opts options) error {
	for _, ev := range u.Events {
		p := ev.Probe
		if p.Measure != compiler.Tables {
			continue
		}
		at := slices.IndexFunc(u.Tables, func(l *compiler.TableLayout) bool { return l.Asked == p.Asked })
		if at < 0 {
			at = len(u.Tables)
			u.Tables = append(u.Tables, &compiler.TableLayout{Maps: []string{fmt.Sprintf("table_%d", at)}, Asked: p.Asked, Function: -1})
		}
		l := u.Tables[at]
		l.Events = append(l.Events, ev.Number)
		u.tables[p] = l
	}
	for _, l := range u.Tables {
		u.layTable(l, opts)
		if err := u.addTable(l, opts); err != nil {
			return err
		}
	}
	return nil
}

// layTable places the parts of a table so that they suit all of its functions.
func (u *generator) layTable(l *compiler.TableLayout, opts options) {
	var probes []*compiler.Probe
	for _, number := range l.Events {
		probes = append(probes, u.Events[number].Probe)
	}
	most := func(size func(*compiler.Probe) int) (n int) {
		for _, p := range probes {
			n = max(n, size(p))
		}
		return n
	}
	if probes[0].OfGlob {
		l.Function, l.KeySize = 0, 8
	}
	l.Size = 8
	for i := range probes[0].Key {
		l.Key = append(l.Key, l.KeySize)
		l.KeySize += most(func(p *compiler.Probe) int { return compiler.KeyRoom(p.Key[i]) })
		stack := 0
		if probes[0].Key[i].Base.Builtin == compiler.KernelStack {
			stack = l.Size
			l.Size += 8 + stackBytes
		}
		l.Stacks = append(l.Stacks, stack)
	}
	if !opts.Features.CompareExchange {
		l.Slots = slotsOf(opts.Features.CPUs)
	}
	for i, a := range probes[0].Aggregates {
		at := l.Size
		switch a.Kind {
		case compiler.Count:
			at = 0
		case compiler.Sum, compiler.Avg:
			l.Size += 16
		case compiler.Min, compiler.Max:
			l.Size += max(8, l.Slots*compiler.Nesting*compiler.ExtremesSize)
		default:
			l.Size += 8 * most(func(p *compiler.Probe) int { return p.Aggregates[i].Buckets() })
		}
		l.Cells = append(l.Cells, at)
	}
}

// addTable adds the maps of a table.
func (u *generator) addTable(l *compiler.TableLayout, opts options) error {
	keys := opts.Keys
	if keys == 0 {
		keys = compiler.DefaultKeys
	}
	m := &ebpf.MapSpec{Name: l.Maps[0], Type: ebpf.Hash, KeySize: uint32(l.KeySize), ValueSize: uint32(l.Size), MaxEntries: uint32(keys)}
	if l.KeySize == 0 {
		m.Type, m.KeySize, m.MaxEntries = ebpf.Array, 4, 1
	}
	if most := compiler.MostKey + 8; l.KeySize > most { // with the function; of a glob, resolve sees one at a time
		return refuse(l.Asked, "the key of all functions has %d bytes, and %d is the limit", l.KeySize, most).WithHint("name fewer values")
	}
	if l.Size+l.KeySize > mostElement {
		return refuse(l.Asked, "a row of the table would take %d bytes, and %d is the limit", l.Size+l.KeySize, mostElement).WithHint("count with fewer buckets")
	}
	size := (l.Size + l.KeySize) * int(m.MaxEntries)
	if opts.ClearTables {
		size *= 2
	}
	if size > mostTable {
		return refuse(l.Asked, "a table of %d keys would take %d MiB, and %d is the limit", keys, size>>20, mostTable>>20).
			WithHint("count fewer keys with --keys, or with fewer buckets")
	}
	u.Collection.Maps[m.Name] = m
	if opts.ClearTables {
		other := m.Copy()
		other.Name += "_other"
		l.Maps = append(l.Maps, other.Name)
		u.Collection.Maps[other.Name] = other
	}
	u.addZeroes(l.Size)
	if slices.ContainsFunc(l.Stacks, func(at int) bool { return at > 0 }) {
		u.addMap(stacksOf(l), ebpf.StackTrace, 4, stackBytes, 2*keys)
	}
	return nil
}

// stacksOf returns the name of the map that numbers the stacks of a table.
func stacksOf(l *compiler.TableLayout) string { return "stacks_" + l.Maps[0] }

// tabling is the part of a program that counts calls in a table.
type tabling struct {
	table  *compiler.TableLayout
	key    int                     // stack offset of the key
	turn   int                     // stack offset of [compiler.ControlTurn] as this call has found it, if the table has two maps
	values map[*compiler.Value]int // stack offsets of the values of aggregates
}

// reserveKey reserves room for the key and for the values of aggregates. The key
// shares its room with the strings of conditions, which are evaluated before.
func (p *program) reserveKey() {
	p.values = map[*compiler.Value]int{}
	for _, a := range p.probe.Aggregates {
		if a.Value != nil && p.values[a.Value] == 0 {
			p.values[a.Value] = p.room(8)
		}
	}
	if len(p.table.Maps) > 1 {
		p.turn = p.room(8)
	}
	size := p.table.KeySize
	if comparesText(p.probe) {
		size = max(size, textBuffer)
	}
	if size > 0 {
		p.key = p.room(size)
		p.buffer = p.key
	}
}

// tabulate counts a matching call in its row of the table.
func (p *program) tabulate() {
	done := p.prefix + "measured"
	p.step("count it as %s", compiler.CounterMatched)
	p.counters(done)
	p.add(compiler.CounterMatched.Offset())
	faulted := p.counted("faulted", compiler.CounterFaulted, done)
	for _, a := range p.probe.Aggregates {
		if at := p.values[a.Value]; a.Value != nil && p.saved[a.Value] != at {
			p.step("%s", a.Value.Name)
			p.number64(a.Value, faulted)
			p.emit(asm.StoreMem(asm.RFP, int16(at), asm.R1, asm.DWord))
			p.saved[a.Value] = at
		}
	}
	p.row(faulted, done)
	p.emit(asm.Mov.Reg(rOut, asm.R0))
	for i, a := range p.probe.Aggregates {
		if a.Value != nil {
			p.step("%s", a.Name)
			p.cell(a, p.table.Cells[i], done)
		}
	}
	p.step("count the call") // last: a row whose calls have not changed lacks nothing of them
	p.emit(asm.Mov.Imm(asm.R1, 1), asm.AddAtomic.Mem(rOut, asm.R1, asm.DWord, 0))
	p.label(done)
}

// row points R0 to the row of the call, a new one if there is none for its key.
func (p *program) row(unreadable, done string) {
	l := p.table
	if len(l.Maps) > 1 {
		p.step("the map that counts now")
		p.emit(controlWord(asm.R1, compiler.ControlTurn))
		p.copyWord(asm.RFP, int16(p.turn), asm.R1, 0)
	}
	if l.KeySize == 0 {
		p.emit(asm.StoreImm(asm.RFP, spKey, 0, asm.Word))
		p.lookUpRow(spKey, done)
		return
	}
	full := p.counted("full", compiler.CounterFull, done)
	if l.Function >= 0 {
		p.step("the function")
		p.loadNumber()
		p.emit(asm.StoreMem(asm.RFP, int16(p.key+l.Function), asm.R0, asm.DWord))
	}
	for i, v := range p.probe.Key {
		end := l.KeySize
		if i+1 < len(l.Key) {
			end = l.Key[i+1]
		}
		p.step("%s", v.Name)
		p.keyPart(v, p.key+l.Key[i], end-l.Key[i], unreadable, full)
	}
	p.step("its row")
	first, found := p.fresh("first"), p.prefix+p.fresh("row")
	p.lookUpRow(p.key, first)
	p.label(found)
	p.later(first, func() {
		p.step("the first call with this key")
		p.zeroes(l.Size, full)
		p.rowKey(p.key)
		p.emit(asm.Mov.Imm(asm.R4, int32(ebpf.UpdateNoExist)), asm.FnMapUpdateElem.Call())
		p.keepStacks(full)
		p.lookUpRow(p.key, full) // inserted now, or by another call meanwhile
		p.emit(asm.Ja.Label(found))
	})
}

// rowKey loads the first arguments of a call about the row for the key at a stack offset.
func (p *program) rowKey(key int) {
	p.mapKey(p.table.Maps[0], key)
	if len(p.table.Maps) > 1 {
		first := p.fresh("firstmap")
		p.emit(asm.LoadMem(asm.R0, asm.RFP, int16(p.turn), asm.DWord), asm.JEq.Imm(asm.R0, 0, first), mapPtr(asm.R1, p.table.Maps[1]))
		p.label(first)
	}
}

// lookUpRow points R0 to the row for the key at a stack offset.
func (p *program) lookUpRow(key int, missing string) {
	p.rowKey(key)
	p.emit(asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, missing))
}

// keepStacks stores the stacks of the key in a row that has been inserted.
func (p *program) keepStacks(full string) {
	for i, at := range p.table.Stacks {
		if at == 0 {
			continue
		}
		p.lookUpRow(p.key, full)
		p.step("%s", p.probe.Key[i].Name)
		p.emit(asm.Mov.Reg(rOut, asm.R0))
		p.origin = 0
		if _, _, kept := p.keptAt(p.probe.Key[i]); kept {
			p.copyBegunStack(p.probe.Key[i], at)
			continue
		}
		p.getStack(compiler.Slot{Off: at, Data: at + 8, Cap: stackBytes})
		p.emit(asm.StoreMem(rOut, int16(at), asm.R0, asm.DWord))
	}
}
