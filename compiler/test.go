package compiler

import (
	"cmp"
	"slices"

	"github.com/cilium/ebpf/asm"
)

// hasAlternatives says whether one of the tests has an "or" in it.
func hasAlternatives(tests []Test) bool {
	return slices.ContainsFunc(tests, func(t Test) bool {
		switch t := t.(type) {
		case AnyOf:
			return true
		case AllOf:
			return hasAlternatives(t)
		case *Flag:
			return hasAlternatives([]Test{t.Test})
		}
		return false
	})
}

// tests leaves unless all tests hold, the cheapest first.
func (p *program) tests(tests []Test) {
	if len(tests) == 0 {
		return
	}
	sorted := slices.Clone(tests)
	slices.SortStableFunc(sorted, func(a, b Test) int { return cmp.Compare(p.cost(a), p.cost(b)) })
	unread := p.countedUnreadable()
	no := p.reject()
	if p.mixed {
		no = p.prefix + p.fresh("no")
		p.later(no, func() {
			p.step("rejected; by a fault?")
			p.emit(
				asm.LoadMem(asm.R1, asm.RFP, spFault, asm.DWord),
				asm.JNE.Imm(asm.R1, 0, unread),
				asm.Ja.Label(p.reject()),
			)
		})
	}
	for _, t := range sorted {
		p.branch(t, outcome{no: no, unread: unread, sure: true})
	}
}

// countedUnreadable is the label of code that counts a fault and rejects the
// call. A call that was rejected at entry does not count.
func (p *program) countedUnreadable() string {
	label := p.prefix + p.fresh("unreadable")
	if p.stash == nil || p.found {
		p.later(label, func() {
			p.leaveSelf()
			p.count(counterUnreadable, p.reject())
		})
		return label
	}
	p.later(label, func() {
		p.find(p.stash, rStash, p.exitLabel())
		p.count(counterUnreadable, p.reject())
	})
	return label
}

// outcome is where a test goes that does not hold.
type outcome struct {
	no     string // it does not hold
	unread string // a value could not be read
	sure   bool   // every call that passes all tests evaluates this one
}

// branch goes on if a test holds.
func (p *program) branch(t Test, to outcome) {
	switch t := t.(type) {
	case *Leaf:
		p.leaf(t, to)
	case AllOf:
		for _, part := range t {
			p.branch(part, to)
		}
	case AnyOf:
		p.anyOf(t, to)
	case *Flag:
		p.step("tested at entry")
		p.emit(asm.LoadMem(asm.R1, rStash, int16(p.stash.flags), asm.DWord))
		p.jumpUnlessBits(1<<t.Bit, to.no)
	}
}

// anyOf tries one test after the other. A fault in one is noted, and counts if
// none of the others holds.
func (p *program) anyOf(tests AnyOf, to outcome) {
	yes := p.prefix + p.fresh("yes")
	for i, t := range tests {
		last := i == len(tests)-1
		next := outcome{no: to.no, unread: to.unread}
		if !last {
			next.no = p.prefix + p.fresh("or")
			next.unread = p.noted(next.no)
		}
		p.branch(t, next)
		if !last {
			p.emit(asm.Ja.Label(yes))
			p.label(next.no)
		}
	}
	p.label(yes)
}

// noted is the label of code that notes a fault and goes on.
func (p *program) noted(next string) string {
	label := p.prefix + p.fresh("fault")
	p.later(label, func() {
		p.setWord(spFault, 1)
		p.emit(asm.Ja.Label(next))
	})
	return label
}
