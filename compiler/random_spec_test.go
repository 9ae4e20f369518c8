package compiler

import (
	"fmt"
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// writer writes random specs for a function. It looks at a call to choose
// constants that are near the truth.
type writer struct {
	*kernel
	ref *reference
}

// draft is a value that is being written.
type draft struct {
	text   string
	typ    *cType
	prefix bool // it begins with a star or a cast, which bind weaker than ->
	bits   int
	memory bool // it is in memory
}

// spec is a whole spec.
func (w *writer) spec() string {
	if w.rnd.IntN(20) == 0 {
		return w.ref.fn.name + w.condition()
	}
	var items []string
	for range 1 + w.rnd.IntN(4) {
		items = append(items, w.item(w.rnd.IntN(4) == 0))
	}
	return fmt.Sprintf("%s(%s)%s", w.ref.fn.name, strings.Join(items, ", "), w.condition())
}

func (w *writer) condition() string {
	if w.rnd.IntN(2) == 0 {
		return ""
	}
	return " if " + w.cond(3)
}

func (w *writer) cond(depth int) string {
	switch n := w.rnd.IntN(8); {
	case depth == 0 || n < 3:
		return w.item(w.rnd.IntN(6) != 0)
	case n < 5:
		return fmt.Sprintf("(%s && %s)", w.cond(depth-1), w.cond(depth-1))
	case n < 7:
		return fmt.Sprintf("(%s || %s)", w.cond(depth-1), w.cond(depth-1))
	}
	return fmt.Sprintf("!(%s)", w.cond(depth-1))
}

// item is a value, perhaps with a format, perhaps with a test.
func (w *writer) item(test bool) string {
	d := w.value()
	for test && !d.testable() && w.rnd.IntN(10) != 0 {
		d = w.value()
	}
	text := d.text
	if w.rnd.IntN(4) == 0 {
		text += w.format(d)
	}
	if test {
		text += w.predicate(text)
	}
	return text
}

func (d *draft) testable() bool { return d.typ.scalar() || d.typ.string() }

// value walks from an argument, the result or a builtin on.
func (w *writer) value() draft {
	d := w.primary()
	for range w.rnd.IntN(7) {
		next, ok := w.step(d)
		if !ok {
			break
		}
		d = next
	}
	return d
}

func (w *writer) primary() draft {
	fn := w.ref.fn
	n := w.rnd.IntN(len(fn.params) + 2)
	switch {
	case n < len(fn.params):
		p := fn.params[n]
		if w.rnd.IntN(8) == 0 {
			return draft{text: fmt.Sprintf("$arg%d", n+1), typ: p.typ}
		}
		return draft{text: p.name, typ: p.typ}
	case fn.result != nil && w.rnd.IntN(4) != 0:
		return draft{text: pick(w.rnd, []string{"return", "return", "$retval"}), typ: fn.result, memory: fn.result.inMemory()}
	case w.rnd.IntN(4) == 0:
		return w.variable()
	case w.rnd.IntN(3) == 0:
		return draft{text: "$comm", typ: arrayOf(cChar, 16)}
	case w.rnd.IntN(4) == 0 && fn.result != nil:
		return draft{text: "$duration", typ: w.types["u64"]}
	}
	return draft{text: "$" + pick(w.rnd, []string{"pid", "tid", "cpu", "uid", "cgroup"}), typ: w.types["int"]}
}

// variable is one, mostly with a cast that says what it is.
func (w *writer) variable() draft {
	d := draft{text: "@" + pick(w.rnd, []string{"word", "thing", "gone"}), typ: w.types["u64"], memory: true}
	if w.rnd.IntN(3) != 0 {
		t := pick(w.rnd, append(w.records, w.scalars...))
		d.text, d.typ, d.prefix = fmt.Sprintf("(%s)%s", t.name, d.text), t, true
	}
	return d
}

// step goes on from a value, if it can.
func (w *writer) step(d draft) (draft, bool) {
	if strings.HasPrefix(d.text, "$") && !strings.HasPrefix(d.text, "$arg") && d.text != "$retval" {
		return d, false
	}
	n := w.rnd.IntN(16)
	switch t := d.typ; {
	case n == 0:
		return w.cast(d), true
	case t.kind == cRecord && len(t.names()) > 0:
		return w.member(d, ".", t), true
	case t.has(cRecord) && n < 12 && len(t.to.names()) > 0:
		d.memory = true
		return w.member(d, "->", t.to), true
	case t.kind == cPointer && t.to.size > 0 && n < 14:
		d.memory = true
		return w.element(d, t.to, w.rnd.IntN(3)), n < 14
	case t.kind == cArray && !t.string() || t.kind == cArray && n < 4:
		return w.element(d, t.to, w.rnd.IntN(t.n)), true
	case t.scalar() && n < 3:
		return w.cast(d), true
	}
	return d, false
}

func (d draft) operand() string {
	if d.prefix {
		return "(" + d.text + ")"
	}
	return d.text
}

func (w *writer) member(d draft, op string, record *cType) draft {
	m, _ := record.find(pick(w.rnd, record.names()))
	return draft{text: d.operand() + op + m.name, typ: m.typ, bits: m.bits, memory: d.memory}
}

func (w *writer) element(d draft, t *cType, n int) draft {
	if n == 0 && w.rnd.IntN(2) == 0 {
		return draft{text: "*" + d.text, typ: t, prefix: true, memory: d.memory}
	}
	return draft{text: fmt.Sprintf("%s[%d]", d.operand(), n), typ: t, memory: d.memory}
}

// cast looks at a value as another type, mostly one that is possible.
func (w *writer) cast(d draft) draft {
	record := pick(w.rnd, w.records)
	name, t := record.name+" *", pointerTo(record)
	switch {
	case d.typ.kind == cRecord && d.memory && w.rnd.IntN(20) != 0:
		name, t = record.name, record
	case d.typ.kind == cArray && d.memory, d.typ.kind == cPointer && w.rnd.IntN(2) == 0, d.typ.scalar() && d.typ.size == 8 && w.rnd.IntN(3) == 0:
		if w.rnd.IntN(4) == 0 {
			t = pick(w.rnd, w.scalars)
			name, t = t.name+" *", pointerTo(t)
		}
	default:
		name = pick(w.rnd, w.numbers)
		t = w.types[name]
	}
	return draft{text: fmt.Sprintf("(%s)%s", name, d.text), typ: t, prefix: true, memory: d.memory && !t.scalar()}
}

func (w *writer) format(d draft) string {
	formats := []string{"x", "d", "u", "c", "x8", "u16", "s32", "x64", "s8", "u64", "s64"}
	switch t := d.typ; {
	case t.kind == cArray && t.to.size == 1:
		formats = []string{"string"}
	case t.kind == cPointer:
		formats = []string{"x", "string", "ustring", "u64", "symbol", "ip4", "mac", "x32", "ip6", "be"}
	case !t.scalar():
		return ""
	case t.size > 1 && d.bits == 0:
		formats = append(formats, "be", "be")
		if t.size == 4 {
			formats = append(formats, "ip4", "ip4")
		}
	}
	return ":" + pick(w.rnd, formats)
}

// predicate is an operator and a constant for the value that an item has.
func (w *writer) predicate(text string) string {
	trace, err := spec.Parse(w.ref.fn.name + "(" + text + ")")
	if err != nil {
		return " == 0"
	}
	it := trace.Items[0]
	c, err := w.ref.eval(it.Value)
	if err != nil {
		return " != 0"
	}
	if !c.typ.scalar() || c.typ.has(cInt) && c.typ.to.isChar() && it.Format.Name == "" || strings.HasSuffix(it.Format.Name, "string") {
		return w.textPredicate(it, c)
	}
	return w.numberPredicate(it, c)
}
