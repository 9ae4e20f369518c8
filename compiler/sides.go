package compiler

import "github.com/ksnoop/ksnoop/compiler/spec"

// settle deals values and tests out to the two sides of a call. What can be
// known on both belongs to the entry, unless the spec has no other use for it.
func (p *Probe) settle(values []*Value, tests AllOf) {
	used := append([]*Value(nil), values...)
	for l := range leaves(tests) {
		used = append(used, l.Value)
	}
	var entry, ret bool
	for _, v := range used {
		entry = entry || v.Side == AtEntry
		ret = ret || v.Side == AtReturn
		p.Timed = p.Timed || v.Base.Builtin == Duration
	}
	for _, v := range used {
		if v.Side == AnySide && ret && !entry {
			v.Side = AtReturn
		} else if v.Side == AnySide {
			v.Side = AtEntry
		}
	}
	p.deal(values, tests)
	p.Paired = entry && ret && len(tests) > 0
	p.OnEntry = !p.Paired && (entry || !ret)
	p.OnReturn = p.Paired || ret
}

// deal puts values and tests where they belong.
func (p *Probe) deal(values []*Value, tests AllOf) {
	for _, v := range values {
		if v.Side == AtReturn {
			p.Return = append(p.Return, v)
		} else {
			p.Entry = append(p.Entry, v)
		}
	}
	for _, t := range tests {
		if t.side() == AtReturn {
			p.ReturnTests = append(p.ReturnTests, t)
		} else {
			p.EntryTests = append(p.EntryTests, t)
		}
	}
}

// decide chooses how to attach and what to keep from entry until return.
func (p *Probe) decide(f Features, force Kind, crowd crowd) error {
	attach, err := chooseAttach(p, f, force, crowd)
	if err != nil {
		return err
	}
	p.Attach = attach
	if p.Chain != nil {
		return nil
	}
	p.Stash = p.Timed || p.Paired && !(p.Attach.Return == Fexit && p.entryInRegisters())
	if !p.Stash {
		return nil
	}
	return p.flagTests()
}

// flag replaces the parts of a return test that are about the entry, as few and
// as large ones as possible.
func (p *Probe) flag(t Test) Test {
	if t.side() == AtEntry {
		f := &Flag{Test: t, Bit: len(p.Flags)}
		p.Flags = append(p.Flags, f)
		return f
	}
	switch t := t.(type) {
	case AllOf:
		entry, rest := bySide(t)
		if len(entry) > 0 {
			return append(AllOf{p.flag(AllOf(entry))}, p.flagEach(rest)...)
		}
		return AllOf(p.flagEach(rest))
	case AnyOf:
		entry, rest := bySide(t)
		if len(entry) > 0 {
			return append(AnyOf{p.flag(AnyOf(entry))}, p.flagEach(rest)...)
		}
		return AnyOf(p.flagEach(rest))
	}
	return t
}

func (p *Probe) flagEach(tests []Test) []Test {
	for i, t := range tests {
		tests[i] = p.flag(t)
	}
	return tests
}

// bySide tells the tests that can be made at entry from the others.
func bySide(tests []Test) (entry, rest []Test) {
	for _, t := range tests {
		if t.side() == AtEntry {
			entry = append(entry, t)
		} else {
			rest = append(rest, t)
		}
	}
	return entry, rest
}

// flagTests makes flags of all return tests.
func (p *Probe) flagTests() error {
	p.flagEach(p.ReturnTests)
	if n := len(p.Flags); n > faultFlag {
		return spec.Errorf(p.Trace.Text, p.Trace.Cond.Span(), "the condition joins entry and return in %d places, and %d is the limit", n, faultFlag)
	}
	return nil
}

// entryInRegisters says whether everything that is wanted of the entry is an
// argument word, with no memory to read.
func (p *Probe) entryInRegisters() bool {
	for _, v := range p.Entry {
		if !v.lasts() || v.Pointee != nil {
			return false
		}
	}
	for _, tests := range [][]Test{p.EntryTests, p.ReturnTests} {
		for l := range leaves(AllOf(tests)) {
			if l.Value.Side == AtEntry && (!l.Value.lasts() || l.Pred.Pattern != nil) {
				return false
			}
		}
	}
	return true
}

// lasts says whether a fexit program finds the value as it was at entry.
func (v *Value) lasts() bool {
	return v.inWords() || v.Base.Builtin == PID || v.Base.Builtin == TID
}
