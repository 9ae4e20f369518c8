package codegen

import (
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// rooms lists the bytes that are tried for each string at the end of a record,
// before its largest size. Most names fit in the first, most paths in the second.
var rooms = []int{48, 256}

// pathRooms lists those of a record with paths, which need room for one more name
// of any length.
var pathRooms = []int{compiler.PathName + compiler.LongestName + 176}

// A form is a size of the record being written.
type form struct {
	room   int    // bytes for each string; 0 means as many as the layout says
	longer string // where to go if that is not enough for a string; "" if it is
}

// forms returns the rooms to try for the strings of the program's event. The
// last is that of the largest record.
func (p *program) forms() []int {
	l := &p.event.Layout
	if l.Strings == 0 {
		return []int{0}
	}
	largest := (l.Size - l.Texts) / l.Strings
	var tried []int
	shorter := rooms
	if slices.ContainsFunc(p.event.Items, func(v *compiler.Value) bool { return v.Text == compiler.PathText }) {
		shorter = pathRooms
	}
	for _, room := range shorter {
		if room < largest {
			tried = append(tried, room)
		}
	}
	return append(tried, largest)
}

// record writes a record of the event and counts it, whether or not there is room
// for it. The function head writes what comes before the items.
//
// The kernel reserves constant sizes only, and the length of a string is known
// once it is read. So the record is reserved for short strings; if one is longer,
// another record gets what has been written, and strings that are read again.
func (p *program) record(items []*compiler.Value, head func()) {
	written := p.fresh("written")
	lost := p.counted("lost", compiler.CounterLost, written)
	l := &p.event.Layout
	fixed, strings := p.splitStrings(items)
	forms := p.forms()
	p.countMatched()
	if slices.ContainsFunc(strings, isPath) {
		p.checkpoint(meetingJumps) // for 6.1, no states are equal once they have reserved by themselves
	}
	p.reserve(l.SizeFor(forms[0]), lost)
	p.emit(asm.Mov.Reg(rOut, asm.R0))
	p.origin = 0
	head()
	p.capture(fixed)
	submit := p.fresh("submit")
	p.captureStrings(strings, forms, submit, lost)
	if len(forms) > 1 {
		p.label(submit)
	}
	p.submit()
	p.label(written)
}

// splitStrings separates the strings at the end of the record from the other items.
func (p *program) splitStrings(items []*compiler.Value) (fixed, strings []*compiler.Value) {
	for _, v := range items {
		if p.event.Layout.EndsRecord(slices.Index(p.event.Items, v)) {
			strings = append(strings, v)
		} else {
			fixed = append(fixed, v)
		}
	}
	return fixed, strings
}

// captureStrings copies the strings at the end of a record whose form is the
// first of forms. It continues at submit, in place or, for longer forms, by a
// jump.
func (p *program) captureStrings(strings []*compiler.Value, forms []int, submit, lost string) {
	p.form = form{room: forms[0]}
	if len(forms) > 1 {
		p.form.longer = p.fresh("longer")
		event, number, later := p.event, p.number, p.form.longer
		p.later(later, func() {
			p.event, p.number, p.origin = event, number, 0
			p.lengthen(forms[1], lost)
			for _, v := range strings {
				p.markFault(slices.Index(p.event.Items, v), compiler.NoFault)
			}
			p.captureStrings(strings, forms[1:], submit, lost)
			p.emit(asm.Ja.Label(submit))
		})
	}
	p.capture(strings)
	p.form = form{}
}

// lengthen replaces the record at rOut by one with more room for its strings. If
// there is none in the ring buffer, the event is lost.
func (p *program) lengthen(room int, lost string) {
	l := &p.event.Layout
	full := p.fresh("noroom")
	p.emit(asm.Mov.Reg(rBase, rOut))
	p.reserve(l.SizeFor(room), full)
	p.emit(
		asm.Mov.Reg(rOut, asm.R0),
		asm.Mov.Reg(asm.R1, asm.R0),
		asm.Mov.Imm(asm.R2, int32(l.Texts)),
		asm.Mov.Reg(asm.R3, rBase),
		asm.FnProbeReadKernel.Call(),
	)
	p.discard(rBase)
	p.later(full, func() {
		p.discard(rBase)
		p.emit(asm.Ja.Label(lost))
	})
}

// discard gives up the record at reg. A reader that waits is woken as if the record
// had been submitted: until it has passed over this one, the next wakes nobody.
func (p *program) discard(reg asm.Register) {
	p.emit(asm.Mov.Reg(asm.R1, reg), asm.Mov.Imm(asm.R2, 0), asm.FnRingbufDiscard.Call())
}

// slot returns the place of an item in what is being written.
func (p *program) slot(i int) compiler.Slot {
	l := &p.event.Layout
	if p.form.room == 0 {
		return l.Slots[i]
	}
	return l.Slot(i, l.SizeFor(p.form.room))
}

// elsewhere jumps to fail if the pointer in R3 cannot point to a string there: an attempt to read it would clear the whole slot.
func (p *program) elsewhere(in compiler.Space, fail string) {
	arch := p.opts.Arch
	p.emit(asm.Mov.Reg(asm.R2, asm.R3))
	if arch.Unused > 0 {
		p.emit(asm.LSh.Imm(asm.R2, int32(arch.Unused)))
	}
	if in == compiler.UserSpace {
		p.emit(asm.JSLT.Imm(asm.R2, 0, fail))
		return
	}
	if in == compiler.EitherSpace {
		process := p.fresh("process")
		p.emit(asm.JSGE.Imm(asm.R2, 0, process))
		defer p.label(process)
	}
	p.emit(
		asm.ArSh.Imm(asm.R2, int32(64-arch.KernelOnes)),
		asm.JNE.Imm(asm.R2, -1, fail),
		asm.JGE.Imm(asm.R3, -compiler.MaxErrno, fail),
	)
}
