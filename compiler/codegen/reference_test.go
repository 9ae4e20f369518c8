package codegen

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// reference evaluates the syntax tree of a spec directly over the types and the
// memory of a random kernel, as C would. It shares no code with the compiler.
type reference struct {
	k     *kernel
	fn    *cFunction
	trace *spec.Trace
	all   []*spec.Item // items of a spec without a list
	shown []*spec.Item // the items that are recorded
	max   int          // largest number of bytes of a value
	// measure selects the statistics of calls.
	measure compiler.Measure
	table   tableOf // of compiler.Tables
	call    *referenceCall
	// open is set if the result is undefined, because only a part of a value
	// exists.
	open bool
	late bool // whether the call has returned
	// hidden has the items that others are compared with.
	hidden  map[*spec.Item]bool
	changed spec.Cond // the condition of a spec that only shows what differs
	now     bool      // whether values are those at return, except for arguments
}

// cell is the value of an expression: a place in memory, a part of the words
// that are passed, or a number.
type cell struct {
	typ         *cType
	shift, bits int // of a bitfield, at its place
	in          storage
	base, off   uint64 // in memory, or of an address that was taken
	words       []byte // from the cell on
	num         uint64
	taken       bool // whether the number is the address base+off
	untyped     bool // whether it is a variable without a type in BTF
	bad         bool // whether base is a pointer that could not be read
}

type storage int

const (
	inMemory storage = iota
	inWords
	isNumber
)

// eval returns the value of an expression, or an error if it has no meaning.
func (r *reference) eval(e spec.Expr) (cell, error) {
	switch e := e.(type) {
	case *spec.Arg:
		for i, p := range r.fn.params {
			if p.name == e.Name.Name {
				return cell{typ: p.typ, in: inWords, words: r.call.args[i]}, nil
			}
		}
	case *spec.Return:
		return r.result()
	case *spec.Builtin:
		return r.builtin(e.Name.Name)
	case *spec.Global:
		return cell{typ: r.k.types["u64"], base: r.k.globals[e.Name.Name], untyped: true}, nil
	case *spec.Member:
		return r.member(e)
	case *spec.Index:
		x, err := r.eval(e.X)
		if err != nil {
			return x, err
		}
		return r.element(x, e.N)
	case *spec.Range:
		x, err := r.eval(e.X)
		if err == nil {
			x, err = r.element(x, e.First)
		}
		x.typ = arrayOf(x.typ, int(e.Last-e.First+1))
		return x, err
	case *spec.Deref:
		x, err := r.eval(e.X)
		if err != nil {
			return x, err
		}
		return r.element(x, 0)
	case *spec.Cast:
		return r.cast(e)
	case *spec.Binary:
		return r.binary(e)
	case *spec.Diff:
		return r.eval(&spec.After{X: r.comparedIn(e)})
	case *spec.After:
		defer func(now bool) { r.now = now }(r.now)
		r.now = true
		return r.eval(e.X)
	}
	return cell{}, fmt.Errorf("%s means nothing", e)
}

func (r *reference) result() (cell, error) {
	t := r.fn.result
	switch {
	case t == nil:
		return cell{}, fmt.Errorf("%s returns nothing", r.fn.name)
	case t.inMemory():
		return cell{typ: t, base: binary.LittleEndian.Uint64(r.call.result)}, nil
	}
	return cell{typ: t, in: inWords, words: r.call.result}, nil
}

func (r *reference) builtin(name string) (cell, error) {
	number := func(n uint64, t *cType) (cell, error) { return cell{typ: t, in: isNumber, num: n}, nil }
	now := r.call.now
	switch name {
	case "retval":
		return r.result()
	case "pid":
		return number(now.pidtid>>32, r.k.types["int"])
	case "tid":
		return number(now.pidtid&0xffff_ffff, r.k.types["int"])
	case "ppid":
		return number(parentPID, r.k.types["int"])
	case "cpu":
		return number(uint64(now.cpu), r.k.types["u32"])
	case "uid":
		return number(uint64(now.uid), r.k.types["u32"])
	case "cgroup":
		return number(4242, r.k.types["u64"])
	case "duration":
		return number(now.time-r.call.start, r.k.types["u64"])
	case "kstack", "ustack":
		return cell{typ: cStack, in: inWords, words: make([]byte, cStack.size)}, nil
	case "comm":
		b := make([]byte, 16)
		copy(b, now.comm)
		return cell{typ: arrayOf(cChar, 16), in: inWords, words: b}, nil
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(name, "arg")); err == nil && n <= len(r.fn.params) {
		return cell{typ: r.fn.params[n-1].typ, in: inWords, words: r.call.args[n-1]}, nil
	}
	return cell{}, fmt.Errorf("no $%s", name)
}

func (r *reference) member(e *spec.Member) (cell, error) {
	if e.String() == "$task->tgid" {
		return r.builtin("pid")
	}
	x, err := r.eval(e.X)
	if err != nil {
		return x, err
	}
	if !e.Dot {
		if x, err = r.element(x, 0); err != nil {
			return x, err
		}
	}
	m, ok := x.typ.find(e.Name.Name)
	if !ok {
		return x, fmt.Errorf("%s has no %s", x.typ.name, e.Name.Name)
	}
	x.move(m.offset / 8)
	x.typ, x.shift, x.bits = m.typ, m.offset%8, m.bits
	return x, nil
}

func (c *cell) move(n int) {
	if c.bad {
		return
	}
	if c.in == inWords {
		c.words = c.words[n:]
	} else {
		c.off += uint64(n)
	}
}

// element returns x[n] of an array or a pointer.
func (r *reference) element(x cell, n uint64) (cell, error) {
	t := x.typ
	switch {
	case t.kind == cArray:
		x.move(int(n) * t.to.size)
		x.typ = t.to
		return x, nil
	case t.kind != cPointer:
		return x, fmt.Errorf("%s is no pointer", t.name)
	}
	if !x.taken && !x.bad {
		p := r.number(x)
		x = cell{base: p.num, bad: p.bad}
		if p.bad {
			x.base = p.base
		}
	}
	x.in, x.taken, x.typ = inMemory, false, t.to
	x.move(int(n) * t.to.size)
	return x, nil
}

func (r *reference) cast(e *spec.Cast) (cell, error) {
	x, err := r.eval(e.X)
	if err != nil {
		return x, err
	}
	t := r.k.types[e.Type.Name]
	if t == nil {
		return x, fmt.Errorf("no type %s", e.Type.Name)
	}
	for range e.Type.Stars {
		t = pointerTo(t)
	}
	switch {
	case t.kind == cPointer && x.typ.kind == cArray && x.in == inMemory:
		x.num, x.in, x.taken, x.typ = x.base+x.off, isNumber, true, t
	case x.untyped && t.kind != cPointer:
		x.typ, x.untyped = t, false
	case t.scalar():
		if !x.typ.scalar() {
			return x, fmt.Errorf("%s is no number", x.typ.name)
		}
		address := x.taken && t.kind == cPointer
		x = r.number(x)
		x.num, x.typ, x.taken, x.bits, x.untyped = t.convert(x.num), t, address, 0, false
	default:
		x.typ, x.bits = t, 0
	}
	return x, nil
}
