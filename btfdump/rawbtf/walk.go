package rawbtf

import "fmt"

// level is the amount of a type that is wanted.
type level uint8

const (
	absent   level = iota
	mention        // of a structure only its name
	inside         // the members too
	followed       // and, of a pointer, the members of the structure that it points to
)

// walk finds the types that the wanted types consist of.
type walk struct {
	*wire
	levels  []level // by type ID
	members *nameSet
	todo    []uint32
	err     error
}

// from sets the levels of the roots and of all types that they need.
func (w *walk) from(roots []uint32) error {
	for _, id := range roots {
		w.want(id, followed)
	}
	for len(w.todo) > 0 && w.err == nil {
		id := w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		w.visit(w.at(id), w.levels[id])
	}
	return w.err
}

// want raises the level of a type to l, if it is lower.
func (w *walk) want(id uint32, l level) {
	if id == 0 {
		return
	}
	if int(id) >= len(w.levels) {
		w.err = fmt.Errorf("there is no type #%d", id)
		return
	}
	if w.levels[id] < l {
		w.levels[id] = l
		w.todo = append(w.todo, id)
	}
}

// visit calls want for the types that a type refers to.
func (w *walk) visit(t []byte, l level) {
	lay, n := shape(t)
	switch k := kindOf(t); k {
	case Pointer:
		if l == inside {
			l = mention
		}
		w.want(word(t, 8), l)
	case Typedef, Volatile, Const, Restrict, Func, FuncProto, Var, TypeTag, Array:
		if lay.ref {
			w.want(word(t, 8), l)
		}
		for i := range lay.refCount(n) {
			w.want(word(t, lay.refAt(i)), l)
		}
	case Struct, Union:
		if l == mention {
			return
		}
		for i := range n {
			l := inside
			if w.has(w.members, word(t, lay.element(i))) {
				l = followed
			}
			w.want(word(t, lay.refAt(i)), l)
		}
	}
}
