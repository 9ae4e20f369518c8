package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// table returns a random spec with aggregates of numbers, by a key of anything. The
// items of plain are the parts of the key and the values of the aggregates.
func (w *writer) table() (text, plain string) {
	var items, values []string
	for range w.rnd.IntN(3) {
		part := w.keyPart()
		if trace, err := spec.Parse(w.ref.fn.name + "(" + part + ")"); err == nil {
			part = trace.Items[0].String() // the same value is in a key only once
		}
		if !slices.Contains(values, part) {
			values = append(values, part)
		}
	}
	items = append(items, values...)
	more := w.rnd.IntN(3)
	if more == 0 || w.rnd.IntN(2) == 0 {
		items = append(items, "count()")
	}
	for range more {
		v := w.counted()
		values = append(values, v)
		aggregate := pick(w.rnd, []string{"sum", "avg", "min", "max", "hist", "lhist"})
		if aggregate == "lhist" {
			low := w.rnd.IntN(9)
			step := pick(w.rnd, []int{1, 2, 3, 8})
			v += fmt.Sprintf(", %d, %d, %d", low, low+1+w.rnd.IntN(90), step)
		}
		items = append(items, aggregate+"("+v+")")
	}
	cond := w.condition()
	of := func(items []string) string {
		return fmt.Sprintf("%s(%s)%s", w.ref.fn.name, strings.Join(items, ", "), cond)
	}
	return of(items), of(values)
}

// keyPart returns a number, a string, or the bytes of a value.
func (w *writer) keyPart() string {
	switch n := w.rnd.IntN(16); {
	case n < 8:
		return w.counted()
	case n == 8 && !w.ref.fn.iterator:
		return "$kstack"
	}
	for range 20 {
		if d := w.value(); !d.typ.scalar() && d.typ.size > 0 && d.typ.size <= compiler.MostKeyPart {
			return d.text
		}
	}
	return w.known("$comm")
}

// counted returns a value that is a number and no pointer.
func (w *writer) counted() string {
	for range 20 {
		d := w.value()
		if d.typ.scalar() && w.rnd.IntN(4) == 0 {
			d = w.plain(w.joined(d, 1))
		}
		if d.typ.scalar() && d.typ.kind != cPointer {
			return d.text
		}
	}
	return w.known("$pid")
}

// known returns a value that every call has, for want of another.
func (w *writer) known(builtin string) string {
	if w.ref.fn.iterator {
		return "meta->seq_num"
	}
	return builtin
}
