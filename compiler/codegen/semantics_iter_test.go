package codegen

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
)

// iterators returns the iterators of a kernel: over objects of a kind, with numbers beside
// some of them. ksym gets the last object twice, and the others none at the end.
func (k *kernel) iterators() (all []*cFunction) {
	k.meta = &cType{kind: cRecord, name: "struct bpf_iter_meta", as: &btf.Struct{Name: "bpf_iter_meta"}}
	end := 0
	for _, m := range []cMember{{name: "seq", typ: pointerTo(cNothing)}, {name: "session_id", typ: k.types["u64"]}, {name: "seq_num", typ: k.types["u64"]}} {
		k.meta.align = 8
		k.meta.place(&m, &end, false)
		k.meta.members = append(k.meta.members, m)
	}
	k.meta.size = end / 8
	k.meta.describe()
	for _, name := range []string{"it", "ksym"} {
		fn := &cFunction{name: "iter:" + name, iterator: true, params: []cParam{{"meta", pointerTo(k.meta)}, {"object", pointerTo(pick(k.rnd, k.records))}}}
		for i := range k.rnd.IntN(3) {
			t := pick(k.rnd, k.scalars)
			if k.rnd.IntN(2) == 0 {
				t = pointerTo(pick(k.rnd, k.records))
			}
			fn.params = append(fn.params, cParam{string(rune('a' + i)), t})
		}
		all = append(all, fn)
	}
	return all
}

// seqFile returns the address of the file that iterators write to.
func (k *kernel) seqFile() uint64 { return k.metaAt + uint64(k.meta.size) }

// iterate reads an iterator, which gives an object for each planned call, as the kernel
// does: a program whose row has found no room runs again for the next read.
func (tr *trial) iterate() error {
	tr.seqFile, tr.seqRoom = tr.ref.k.seqFile(), 1+tr.rnd.IntN(300)
	for i, plan := range tr.calls {
		c := &referenceCall{args: plan.args, now: tr.moment()}
		tr.meta(c, uint64(i))
		if binary.LittleEndian.Uint64(plan.args[1]) == 0 {
			if err := tr.object(plan.args, 0); err != nil {
				return err
			}
			continue
		}
		events, err := tr.ref.enter(c)
		if err != nil {
			return err
		}
		if err := tr.note(c, compiler.AtEntry); err != nil {
			return err
		}
		if tr.ref.measure != compiler.NoMeasure {
			events = nil
		}
		tr.want = append(tr.want, events...)
		if err := tr.object(plan.args, len(events)); err != nil {
			return err
		}
		least, most := tr.ref.unreadable(tr.ref.conds(), false)
		tr.least, tr.most = tr.least+least, tr.most+most
		tr.ref.k.mem.mutate(tr.rnd)
	}
	last := tr.calls[len(tr.calls)-1].args
	if !tr.probe().Func.LastAgain {
		last = append([][]byte{last[0], make([]byte, 8)}, last[2:]...)
	}
	return tr.object(last, 0)
}

// meta sets what the program is told about the iteration.
func (tr *trial) meta(c *referenceCall, number uint64) {
	b, _, _ := tr.ref.k.mem.at(binary.LittleEndian.Uint64(c.args[0]), uint64(tr.ref.k.meta.size))
	copy(b, le(tr.seqFile, uint64(1), number))
}

// object runs the program for an object, and checks that it writes a row if rows is not
// 0, and none otherwise.
func (tr *trial) object(args [][]byte, rows int) error {
	at := tr.unit.Attachments[0]
	ctx := tr.alloc(slices.Concat(args...))
	for range 2 {
		before := len(tr.seq)
		tr.typed.context(at.Places[0].Probe.Func, at.Kind, ctx)
		if err := tr.runProgram(at.Program, ctx); err != nil {
			return err
		}
		if len(tr.seq) > before != (rows > 0) && len(tr.seq) > before {
			return fmt.Errorf("a row for an object that has none")
		}
		if len(tr.seq) > before || rows == 0 {
			return nil
		}
		tr.seqRoom = len(tr.seq) + 8<<12 // the next read
	}
	return fmt.Errorf("no row in two reads")
}

// checkRows compares the rows with what the reference expects.
func (tr *trial) checkRows() error {
	rows := (&iteration{rig: tr.rig}).rows()
	if len(rows) != len(tr.want) {
		return fmt.Errorf("%d rows, and not %d: %+v", len(rows), len(tr.want), tr.want)
	}
	for i, rec := range rows {
		ev := tr.unit.Events[binary.LittleEndian.Uint32(rec)]
		if ev.Kind != compiler.RowEvent || len(ev.Items) != len(tr.want[i].items) || !slices.Contains(sizes(ev), len(rec)) {
			return fmt.Errorf("row %d: %d bytes of kind %d with %d items, and not %d", i, len(rec), ev.Kind, len(ev.Items), len(tr.want[i].items))
		}
		if time := binary.LittleEndian.Uint64(rec[compiler.HeaderTime:]); time != tr.want[i].at.time {
			return fmt.Errorf("row %d at %d, and not at %d", i, time, tr.want[i].at.time)
		}
		if err := checkItems(rec, ev, tr.want[i].items); err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
	}
	c := tr.counters(0)
	if n := int(c.Unreadable); n < tr.least || n > tr.most {
		return fmt.Errorf("%d objects count as unreadable, and not %d to %d", n, tr.least, tr.most)
	}
	if tr.ref.measure != compiler.NoMeasure {
		return tr.checkMeasure()
	}
	objects := 0
	for _, plan := range tr.calls {
		if tr.countsCalls && binary.LittleEndian.Uint64(plan.args[1]) != 0 {
			objects++
		}
	}
	if int(c.Matched+c.Filtered) != objects || tr.countsCalls && int(c.Matched) != len(rows) {
		return fmt.Errorf("of %d objects %d have matched, and %d not; %d rows", objects, c.Matched, c.Filtered, len(rows))
	}
	return nil
}
