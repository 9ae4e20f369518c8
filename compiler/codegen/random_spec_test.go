package codegen

import (
	"fmt"
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// writer writes random specs for a function. It looks at a call to choose
// constants near the true values.
type writer struct {
	*kernel
	ref   *reference
	paths bool // whether the spec is about paths
	ends  bool // whether the spec is the end of a span at the return, which has no arguments
}

// draft is a value that is being written.
type draft struct {
	text   string
	typ    *cType
	prefix bool // whether it begins with a star or a cast, which bind weaker than ->
	bits   int
	memory bool // whether it is in memory
}

// spec returns a whole spec.
func (w *writer) spec() string {
	if w.rnd.IntN(20) == 0 {
		return w.ref.fn.name + w.condition()
	}
	w.paths = w.rnd.IntN(8) == 0
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

// item returns a value, perhaps with a format, and with a predicate if compares is set.
func (w *writer) item(compares bool) string {
	if !compares && !w.ref.fn.iterator && w.rnd.IntN(40) == 0 {
		return pick(w.rnd, []string{"$kstack", "$ustack"})
	}
	d := w.value()
	if d.memory && w.rnd.IntN(6) == 0 && !w.ref.fn.iterator && !w.ends && !strings.HasPrefix(d.text, "after(") {
		text := "diff(" + d.text + ")"
		if w.rnd.IntN(4) == 0 && d.typ.kind != cPointer {
			text += w.format(d)
		}
		return text
	}
	for tries := 0; !compares && tries < 40 && w.rnd.IntN(40) != 0 && w.paths; tries++ {
		if w.hasPath(d) && w.rnd.IntN(8) != 0 {
			return d.text + ":path"
		}
		d = w.value()
	}
	for compares && !d.comparable() && w.rnd.IntN(10) != 0 {
		if size := d.typ.size; size == 4 || size == 16 {
			text := d.text + ":" + pick(w.rnd, addressFormats[size])
			return text + w.predicate(text)
		}
		d = w.value()
	}
	if d.typ.scalar() && w.rnd.IntN(4) == 0 {
		d = w.joined(d, 2)
	}
	text := d.text
	if w.rnd.IntN(4) == 0 {
		text += w.format(d)
	}
	switch {
	case compares && d.typ.scalar() && (d.typ.kind != cPointer || strings.Contains(text, ":")) && w.rnd.IntN(4) == 0:
		op := pick(w.rnd, []string{"==", "!=", "<", "<=", ">", ">=", "&"})
		text += " " + op + " " + w.plain(w.joined(w.number64(), 1)).text
	case compares:
		text += w.predicate(text)
	}
	return text
}

// number64 returns a value that is a number, if there is one nearby.
func (w *writer) number64() draft {
	d := w.value()
	for range 5 {
		if d.typ.scalar() {
			break
		}
		d = w.value()
	}
	return d
}

// plain casts a pointer to a number, mostly: few operators take pointers.
func (w *writer) plain(d draft) draft {
	if d.typ.kind == cPointer && w.rnd.IntN(8) != 0 {
		if inner, ok := strings.CutPrefix(d.text, "after("); ok {
			return draft{text: "after((u64)" + inner, typ: w.types["u64"]}
		}
		return draft{text: "(u64)" + d.text, typ: w.types["u64"], prefix: true}
	}
	return d
}

// joined joins a value with others, or with constants, by operators.
func (w *writer) joined(d draft, depth int) draft {
	for range w.rnd.IntN(3) {
		op := pick(w.rnd, []string{"+", "-", "*", "&", "|", "<<", ">>"})
		if d.typ.kind == cPointer {
			op = pick(w.rnd, []string{"+", "-"})
		}
		y := w.notation(d.text, w.rnd.Uint64()>>w.rnd.IntN(64)&^(1<<(10*w.rnd.IntN(3))-1))
		switch {
		case strings.HasSuffix(op, "<") || strings.HasSuffix(op, ">"):
			y = fmt.Sprint(w.rnd.IntN(34))
		case w.rnd.IntN(4) == 0:
			y = fmt.Sprint(-w.rnd.IntN(9))
		}
		if w.rnd.IntN(2) == 0 {
			other := w.number64()
			if depth > 0 {
				other = w.joined(other, depth-1)
			}
			if op != "-" || d.typ.kind != cPointer {
				other = w.plain(other)
			}
			y = "(" + other.text + ")"
			if !other.prefix {
				y = other.text
			}
		}
		d = draft{text: "(" + d.text + " " + op + " " + y + ")", typ: w.types["u64"]}
		if trace, err := spec.Parse(w.ref.fn.name + "(" + d.text + ")"); err == nil {
			w.ref.call.early = nil
			if c, err := w.ref.eval(trace.Items[0].Value); err == nil {
				d.typ = c.typ
			}
		}
	}
	return d
}

func (d *draft) comparable() bool { return d.typ.scalar() || d.typ.string() }

// value extends an argument, the result or a builtin by random steps.
func (w *writer) value() draft {
	d := w.primary()
	for range w.rnd.IntN(7) {
		next, ok := w.step(d)
		if !ok {
			break
		}
		d = next
	}
	late := strings.Contains(d.text, "return") || strings.Contains(d.text, "$")
	if w.ref.fn.iterator || w.ends {
		return d
	}
	if chance := w.rnd.IntN(40); d.memory && !late && chance < 10 || chance == 0 {
		d.text, d.prefix = "after("+d.text+")", false
	}
	return d
}

func (w *writer) primary() draft {
	fn := w.ref.fn
	n := w.rnd.IntN(len(fn.params) + 2)
	if w.ends {
		n = len(fn.params)
	}
	switch {
	case n < len(fn.params):
		p := fn.params[n]
		if w.rnd.IntN(8) == 0 {
			return draft{text: fmt.Sprintf("$arg%d", n+1), typ: p.typ}
		}
		return draft{text: p.name, typ: p.typ}
	case fn.result != nil && w.rnd.IntN(4) != 0:
		return draft{text: pick(w.rnd, []string{"return", "return", "$retval"}), typ: fn.result, memory: fn.result.inMemory()}
	case fn.iterator && w.rnd.IntN(20) != 0: // it has no builtins
		return w.variable()
	case w.rnd.IntN(4) == 0:
		return w.variable()
	case w.rnd.IntN(6) == 0:
		return draft{text: pick(w.rnd, []string{"$kstack", "$ustack"}), typ: cStack}
	case w.rnd.IntN(3) == 0:
		return draft{text: "$comm", typ: arrayOf(cChar, 16)}
	case w.rnd.IntN(4) == 0 && fn.result != nil:
		return draft{text: "$duration", typ: w.types["u64"]}
	}
	return draft{text: "$" + pick(w.rnd, []string{"pid", "tid", "cpu", "uid", "cgroup", "ppid", "task->tgid"}), typ: w.types["int"]}
}

// variable returns a variable, mostly with a cast to a type.
func (w *writer) variable() draft {
	d := draft{text: "@" + pick(w.rnd, []string{"word", "thing", "gone"}), typ: w.types["u64"], memory: true}
	if w.rnd.IntN(3) != 0 {
		t := pick(w.rnd, append(w.records, w.scalars...))
		d.text, d.typ, d.prefix = fmt.Sprintf("(%s)%s", t.name, d.text), t, true
	}
	return d
}

// step extends a value, if possible.
func (w *writer) step(d draft) (draft, bool) {
	if strings.HasPrefix(d.text, "$") && !strings.HasPrefix(d.text, "$arg") && d.text != "$retval" {
		return d, false
	}
	n := w.rnd.IntN(16)
	switch t := d.typ; {
	case n == 0:
		return w.cast(d), true
	case t.kind == cArray && n == 1, t.kind == cPointer && t.to.size > 0 && n == 1:
		return w.part(d), true
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

// part extends a value to some elements of an array, or of memory that a pointer points to.
func (w *writer) part(d draft) draft {
	most := 3
	if d.typ.kind == cArray {
		most = d.typ.n
	}
	first := w.rnd.IntN(most)
	last := first + w.rnd.IntN(most-first)
	memory := d.memory || d.typ.kind == cPointer
	return draft{text: fmt.Sprintf("%s[%d..%d]", d.operand(), first, last), typ: arrayOf(d.typ.to, last-first+1), memory: memory}
}

// cast casts a value to another type, mostly to a possible one.
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

// hasPath reports whether a value is a file, or the like, whose path can be shown.
func (w *writer) hasPath(d draft) bool {
	return d.typ.kind == cPointer && w.files.shown(d.typ.to) || w.files.shown(d.typ) && d.memory
}

func (w *writer) format(d draft) string {
	if w.hasPath(d) && w.rnd.IntN(4) != 0 {
		return ":path"
	}
	formats := []string{"x", "d", "u", "c", "x8", "u16", "s32", "x64", "s8", "u64", "s64", "errno"}
	switch t := d.typ; {
	case !t.scalar() && w.rnd.IntN(2) == 0 && addressFormats[t.size] != nil:
		formats = addressFormats[t.size]
	case t.kind == cArray && t.to.size == 1:
		formats = []string{"string"}
	case t.kind == cPointer:
		formats = []string{"x", "string", "ustring", "u64", "symbol", "ip4", "mac", "x32", "ip6", "errno"}
	case !t.scalar():
		return ""
	case t.size > 1 && d.bits == 0:
		formats = append(formats, "be", "be")
		if t.size == 4 {
			formats = append(formats, "ip4", "ip")
		}
	}
	return ":" + pick(w.rnd, formats)
}

// addressFormats has the formats of network addresses, by size.
var addressFormats = map[int][]string{4: {"ip4", "ip"}, 6: {"mac"}, 16: {"ip6", "ip"}}

// predicate returns an operator and a constant for the value of an item.
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
	if isAddress(it, c.typ) && w.rnd.IntN(8) != 0 {
		return w.addressPredicate(it, c)
	}
	if !c.typ.scalar() || c.typ.has(cInt) && c.typ.to.isChar() && it.Format.Name == "" || strings.HasSuffix(it.Format.Name, "string") {
		return w.textPredicate(it, c)
	}
	return w.numberPredicate(it, c)
}
