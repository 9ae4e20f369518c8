package btfpart

// level is how much of a type is wanted.
type level uint8

const (
	absent   level = iota
	mention        // a record's name is enough
	inside         // its members
	followed       // and, for a pointer, those of what it points to
)

// walk finds what types are made of.
type walk struct {
	*blob
	levels  []level // by id
	members offsetSet
	todo    []uint32
	err     error
}

// from finds all that is wanted of the roots.
func (w *walk) from(roots []uint32) error {
	for _, id := range roots {
		w.want(id, followed)
	}
	for len(w.todo) > 0 && w.err == nil {
		id := w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		w.visit(w.types[w.offsets[id]:], w.levels[id])
	}
	return w.err
}

// want raises the level of a type.
func (w *walk) want(id uint32, l level) {
	if id == 0 {
		return
	}
	if int(id) >= len(w.levels) {
		w.err = errBroken
		return
	}
	if w.levels[id] < l {
		w.levels[id] = l
		w.todo = append(w.todo, id)
	}
}

// visit wants what a type refers to.
func (w *walk) visit(t []byte, l level) {
	k, parts := kind(word(t, 4))
	switch k {
	case kindPtr:
		if l == inside {
			l = mention
		}
		w.want(word(t, 8), l)
	case kindTypedef, kindVolatile, kindConst, kindRestrict, kindFunc, kindTypeTag:
		w.want(word(t, 8), l)
	case kindArray:
		w.want(word(t, 12), l)
		w.want(word(t, 16), l)
	case kindFuncProto:
		w.want(word(t, 8), l)
		for i := range parts {
			w.want(word(t, 12+8*i+4), l)
		}
	case kindStruct, kindUnion:
		if l == mention {
			return
		}
		for i := range parts {
			l := inside
			if w.members.has(word(t, 12+12*i)) {
				l = followed
			}
			w.want(word(t, 12+12*i+4), l)
		}
	}
}
