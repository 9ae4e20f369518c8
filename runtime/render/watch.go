package render

import (
	"slices"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// watchHeader is the heading of the lines of writes to memory.
const watchHeader = "            TIME  CPU      PID COMM             MEMORY: BEFORE -> AFTER at WRITER\n"

// onlyWrites reports whether a unit shows nothing but writes to memory.
func onlyWrites(unit *compiler.Unit) bool {
	other := func(ev *compiler.EventType) bool { return ev.Kind != compiler.WriteEvent && ev.Probe.Follow == nil }
	return len(unit.Events) > 0 && !slices.ContainsFunc(unit.Events, other)
}

// written returns the values of a write by their meaning. after is nil where it is not
// known.
func written(ev *runtime.Event) (before, after, at, stack *runtime.Value) {
	w := ev.Probe.Watch
	for i := range ev.Values {
		switch v := &ev.Values[i]; v.Value {
		case w.Old:
			before = v
		case w.New:
			after = v
		case w.At:
			at = v
		case w.Stack:
			stack = v
		}
	}
	return before, after, at, stack
}

// writer returns the place of the instruction that has written, as symbol and offset,
// or "". Where the breakpoint is hit after the write, that is the end of the instruction.
func (s *Symbols) writer(ev *runtime.Event, ip uint64) string {
	if ev.Probe.Arch.BreaksBefore {
		return s.at(ip)
	}
	return s.caller(ip)
}

// write prints a write to memory, without the stack.
func (p *compactPrinter) write(ev *runtime.Event) (stack *runtime.Value, err error) {
	before, after, at, stack := written(ev)
	p.columns(ev)
	p.comm(ev.Comm)
	p.memory(ev.Probe, ev.Call)
	if err := p.data(before); err != nil {
		return nil, err
	}
	p.text = append(p.text, " -> "...)
	if after == nil {
		p.text = append(p.text, '?')
	} else if err := p.data(after); err != nil {
		return nil, err
	}
	p.place(append(p.text, " at "...), p.symbols.writer(ev, at.Uint64()), at.Uint64())
	return stack, nil
}

// place continues the text with the name of an address, or the address if it has none.
func (p *compactPrinter) place(text []byte, name string, addr uint64) {
	if p.text = append(text, name...); name == "" {
		p.text = appendHex(p.text, addr)
	}
}

// writeLine prints a write to memory on a line.
func (p *compactPrinter) writeLine(ev *runtime.Event) error {
	start := len(p.text)
	stack, err := p.write(ev)
	if err != nil {
		return err
	}
	if stack != nil && stack.Fault == compiler.NoFault {
		p.text = append(p.text, ' ')
		p.stack(stack.Data)
	}
	p.text = append(wrapValues(p.text, start, p.look.Width), '\n')
	return nil
}

// memory prints what is watched.
func (p *compactPrinter) memory(probe *compiler.Probe, addr uint64) {
	p.text = append(p.text, FunctionName(probe.Func)...)
	if probe.Watch.Finder != nil {
		p.text = appendHex(append(p.text, " at "...), addr)
	}
	p.text = append(p.text, ": "...)
}

// found prints an object that is watched from now on, a line for each member.
func (p *compactPrinter) found(ev *runtime.Event) error {
	for _, m := range ev.Probe.Find.Members {
		now := ev.ValueOf(m.Now)
		p.columns(ev)
		p.comm(ev.Comm)
		p.text = appendHex(append(append(p.text, now.Name...), " at "...), ev.ValueOf(m.Addr).Uint64())
		p.text = append(p.text, ": "...)
		if err := p.data(now); err != nil {
			return err
		}
		p.text = append(append(append(p.text, " found by "...), FunctionName(ev.Probe.Func)...), '\n')
	}
	return nil
}

// ended prints the end of an object, a line for each member.
func (p *compactPrinter) ended(ev *runtime.Event) error {
	for i := range ev.Ended {
		e := &ev.Ended[i]
		if e.Unseen != nil {
			if err := p.Unseen(e.Unseen); err != nil {
				return err
			}
		}
		p.columns(ev)
		p.comm(ev.Comm)
		p.memory(e.Probe, e.Addr)
		if !e.Unwatched {
			if err := p.data(&e.Last); err != nil {
				return err
			}
			p.text = append(p.text, ' ')
		}
		p.text = append(append(p.text, "ends in "...), FunctionName(ev.Probe.Func)...)
		if by := freedBy(ev); by != nil {
			p.place(append(p.text, ", freed by "...), p.symbols.caller(by.Uint64()), by.Uint64())
		}
		if e.Unwatched {
			p.text = append(p.text, ", unwatched: it ended before its breakpoints were set"...)
		}
		p.text = append(p.text, '\n')
	}
	return nil
}

// freedBy returns from where the memory of an object was freed, or nil if it ends at a
// function.
func freedBy(ev *runtime.Event) *runtime.Value {
	for i := range ev.Values {
		if ev.Values[i].Name == compiler.FreedBy {
			return &ev.Values[i]
		}
	}
	return nil
}

// Unseen prints a change that no breakpoint has seen.
func (p *compactPrinter) Unseen(u *runtime.Unseen) error {
	p.time(u.Time, 16)
	p.blanks(3)
	p.text = append(p.text, "-        - -                "...)
	p.memory(u.Probe, u.Addr)
	if err := p.data(&u.Before); err != nil {
		return err
	}
	p.text = append(p.text, " -> "...)
	err := p.data(&u.Now)
	p.text = append(p.text, " unseen: no breakpoint was hit\n"...)
	return err
}

// asLine calls f with the printer of lines, which shares the page of p.
func (p *printer) asLine(f func(*ftracePrinter) error) error {
	p.lined.page = p.page
	err := f(p.lined)
	p.page = p.lined.page
	return err
}

// write prints a write to memory, and the stack below it.
func (p *printer) write(ev *runtime.Event) error {
	return p.asLine(func(c *ftracePrinter) error {
		stack, err := c.write(ev)
		if err != nil {
			return err
		}
		c.text = append(c.text, '\n')
		if stack != nil && stack.Fault == compiler.NoFault {
			for i := 0; i+8 <= len(stack.Data); i += 8 {
				c.blanks(nameIndent)
				c.text = append(c.symbols.appendFrame(c.text, i/8, unsigned(stack.Data[i:i+8])), '\n')
			}
		}
		return nil
	})
}

// Unseen prints a change that no breakpoint has seen.
func (p *printer) Unseen(u *runtime.Unseen) error {
	return p.asLine(func(c *ftracePrinter) error { return c.Unseen(u) })
}

// write prints a write to memory.
func (p *jsonPrinter) write(ev *runtime.Event) error {
	before, after, at, stack := written(ev)
	p.by(`{"type":"write","time":`, ev)
	if err := p.state(ev.Probe, ev.Call, before); err != nil {
		return err
	}
	if after != nil {
		if err := p.member(`,"after":`, after); err != nil {
			return err
		}
	}
	p.text = append(p.text, `,"at":`...)
	p.hex(at.Uint64())
	if name := p.symbols.writer(ev, at.Uint64()); name != "" {
		p.text = btfdump.AppendJSONString(append(p.text, `,"writer":`...), []byte(name))
	}
	if stack != nil {
		if err := p.member(`,"stack":`, stack); err != nil {
			return err
		}
	}
	p.text = append(p.text, '}', '\n')
	return nil
}

// found prints an object that is watched from now on, a line for each member.
func (p *jsonPrinter) found(ev *runtime.Event) error {
	for _, m := range ev.Probe.Find.Members {
		now := ev.ValueOf(m.Now)
		p.by(`{"type":"object","time":`, ev)
		p.text = quoteJSON(append(p.text, `,"func":`...), FunctionName(ev.Probe.Func))
		p.text = quoteJSON(append(p.text, `,"memory":`...), now.Name)
		p.text = append(p.text, `,"address":`...)
		p.hex(ev.ValueOf(m.Addr).Uint64())
		if err := p.member(`,"now":`, now); err != nil {
			return err
		}
		p.text = append(p.text, '}', '\n')
	}
	return nil
}

// ended prints the end of an object, a line for each member.
func (p *jsonPrinter) ended(ev *runtime.Event) error {
	for i := range ev.Ended {
		e := &ev.Ended[i]
		if e.Unseen != nil {
			if err := p.Unseen(e.Unseen); err != nil {
				return err
			}
		}
		p.by(`{"type":"ended","time":`, ev)
		p.text = quoteJSON(append(p.text, `,"func":`...), FunctionName(ev.Probe.Func))
		last := &e.Last
		if e.Unwatched {
			last = nil
		}
		if err := p.state(e.Probe, e.Addr, last); err != nil {
			return err
		}
		if by := freedBy(ev); by != nil {
			if err := p.member(`,"place":`, by); err != nil {
				return err
			}
		}
		if e.Unwatched {
			p.text = append(p.text, `,"unwatched":true`...)
		}
		p.text = append(p.text, '}', '\n')
	}
	return nil
}

// state prints what is watched, and the value that was seen last, which is nil if it is
// not known.
func (p *jsonPrinter) state(probe *compiler.Probe, addr uint64, before *runtime.Value) error {
	p.text = quoteJSON(append(p.text, `,"memory":`...), FunctionName(probe.Func))
	p.text = append(p.text, `,"address":`...)
	p.hex(addr)
	if before == nil {
		p.text = append(p.text, `,"before":null`...)
		return nil
	}
	return p.member(`,"before":`, before)
}

// member prints a value that is not a stack of a process, with what is before it.
func (p *jsonPrinter) member(key string, v *runtime.Value) error {
	p.text = append(p.text, key...)
	return p.data(v)
}

// Unseen prints a change that no breakpoint has seen.
func (p *jsonPrinter) Unseen(u *runtime.Unseen) error {
	p.clock()
	p.when(`{"type":"unseen","time":`, u.Time)
	if err := p.state(u.Probe, u.Addr, &u.Before); err != nil {
		return err
	}
	if err := p.member(`,"now":`, &u.Now); err != nil {
		return err
	}
	p.text = append(p.text, '}', '\n')
	return nil
}
