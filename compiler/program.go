package compiler

import (
	"cmp"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// program generates the instructions for one side of one probe.
type program struct {
	code
	kind   Kind
	event  *Event
	number int // of the event
	opts   Options
	saved  map[*Item]int // stack offsets of values that predicates have read
	next   int           // stack offset of the next one
	origin int           // offset in the record of where rOut points
	stash  *stash        // nil: none
}

func newProgram(u *Unit, ev *Event, kind Kind, opts Options) *program {
	return &program{
		kind: kind, event: ev, number: u.number(ev), opts: opts,
		saved: map[*Item]int{}, next: spSaved,
	}
}

// record is a program that writes the event: test, reserve, copy, submit.
func (p *program) record() asm.Instructions {
	p.prologue()
	p.filter()
	p.test(p.event.Items)
	p.reserve()
	p.header()
	p.clearFaults()
	p.capture(p.event.Items)
	p.submit()
	return p.insns
}

// keep is the entry program of a paired probe: it keeps the entry values of a
// call that may match.
func (p *program) keep(s *stash) asm.Instructions {
	p.prologue()
	p.filter()
	p.test(p.event.Probe.Entry)
	p.frame()
	p.insert(s)
	p.capture(p.event.Probe.Entry)
	p.emit(asm.Ja.Label(labelExit))
	p.label(labelLost)
	p.count(counterNoRoom)
	p.exit()
	return p.insns
}

// complete is the return program of a paired probe: it writes the event with
// the values kept at entry.
func (p *program) complete(s *stash) asm.Instructions {
	p.stash = s
	p.prologue()
	p.filter()
	p.frame()
	p.lookup(s)
	p.test(p.event.Probe.Return)
	p.reserve()
	p.header()
	p.copyStash(s)
	p.capture(p.event.Probe.Return)
	p.submit()
	return p.insns
}

func (p *program) prologue() {
	p.step("%s %s", p.kind, p.event.Probe.Func.Name)
	p.emit(asm.Mov.Reg(rContext, asm.R1))
}

// filter leaves early for processes that are not to be traced.
func (p *program) filter() {
	p.step("process")
	p.emit(asm.FnGetCurrentPidTgid.Call(), asm.StoreMem(asm.RFP, spPIDTID, asm.R0, asm.DWord))
	if p.opts.TID != 0 {
		p.step("thread is %d", p.opts.TID)
		p.emit(asm.Mov.Reg32(asm.R1, asm.R0), asm.JNE.Imm32(asm.R1, int32(p.opts.TID), labelExit))
	}
	if p.opts.PID == 0 && p.opts.Self == 0 {
		return
	}
	p.emit(asm.RSh.Imm(asm.R0, 32))
	if p.opts.PID != 0 {
		p.step("process is %d", p.opts.PID)
		p.emit(asm.JNE.Imm(asm.R0, int32(p.opts.PID), labelExit))
	}
	if p.opts.Self != 0 && p.opts.Self != p.opts.PID {
		p.step("process is not ksnoop")
		p.emit(asm.JEq.Imm(asm.R0, int32(p.opts.Self), labelExit))
	}
}

// test leaves unless the predicates of all items hold, the cheapest first.
func (p *program) test(items []*Item) {
	var tests []*Item
	for _, it := range items {
		if len(it.Preds) > 0 {
			tests = append(tests, it)
		}
	}
	slices.SortStableFunc(tests, func(a, b *Item) int { return cmp.Compare(p.cost(a.Value), p.cost(b.Value)) })
	for _, it := range tests {
		p.testItem(it)
	}
}

// cost orders values by what reading them takes.
func (p *program) cost(v *Value) int {
	if p.direct(v) {
		return len(v.Path)
	}
	return 100 * len(v.Path)
}

func (p *program) direct(v *Value) bool { return p.kind.trampoline() && v.direct() }

func (p *program) testItem(it *Item) {
	zero := !slices.ContainsFunc(it.Preds, func(pr *Predicate) bool { return !pr.holds(0) })
	p.step("%s", it.Preds[0].Text)
	p.readScalar(it.Value, p.direct(it.Value), zero, p.reject())
	for i, pr := range it.Preds {
		if i > 0 {
			p.step("%s", pr.Text)
		}
		p.jump(inverse(pr), asm.R1, pr.Const, p.reject())
	}
	if p.next > -stackSize { // further ones are read again
		p.emit(asm.StoreMem(asm.RFP, int16(p.next), asm.R1, asm.DWord))
		p.saved[it] = p.next
		p.next -= 8
	}
}

// reject is where a call goes that is not to be shown.
func (p *program) reject() string {
	if p.stash != nil {
		return labelDrop
	}
	return labelExit
}

// inverse is the jump that is taken when the predicate is false.
func inverse(pr *Predicate) asm.JumpOp {
	if pr.Signed {
		switch pr.Op {
		case spec.Lt:
			return asm.JSGE
		case spec.Le:
			return asm.JSGT
		case spec.Gt:
			return asm.JSLE
		case spec.Ge:
			return asm.JSLT
		}
	}
	switch pr.Op {
	case spec.Eq:
		return asm.JNE
	case spec.Ne:
		return asm.JEq
	case spec.Lt:
		return asm.JGE
	case spec.Le:
		return asm.JGT
	case spec.Gt:
		return asm.JLE
	default:
		return asm.JLT
	}
}
