package rawbtf

import (
	"bytes"
	"iter"
	"strings"

	"github.com/cilium/ebpf/btf"
)

// Types is an index of BTF of which only a few types are used. Names are compared
// in place, and a type is decoded when it is asked for.
type Types struct {
	wire                   *wire
	base                   *Types // the types of the kernel, or nil if these are not a module's
	baseTypes, baseStrings uint32 // the number of types in base, without void, and of bytes in its strings
	// Decoded is the number of types whose fields were read.
	Decoded int
}

// Field is a parameter, a member or an enumerator.
type Field struct {
	Name string
	Type btf.TypeID // 0 if it is an enumerator
}

// Index returns an index of the types in raw, which it keeps. If raw is the BTF of
// a module, base has the types of the kernel, else it is nil. It returns an error if raw is
// not BTF, ends too early, or has a type of an unknown kind, but does not check what types
// refer to.
func Index(raw []byte, base *Types) (*Types, error) {
	w, err := parse(raw)
	if err != nil {
		return nil, err
	}
	if _, err := w.index(nil, nil); err != nil {
		return nil, err
	}
	t := &Types{wire: w, base: base}
	if base != nil {
		t.baseTypes = base.baseTypes + uint32(len(base.wire.offsets)) - 1
		t.baseStrings = base.baseStrings + uint32(len(base.wire.strings))
	}
	return t, nil
}

// text returns the name at an offset, or nil if the offset is out of range.
func (t *Types) text(at uint32) []byte {
	in := t.of(at)
	return in.wire.text(at - in.baseStrings)
}

// of returns the types, these or those of a base, whose strings an offset is in.
func (t *Types) of(at uint32) *Types {
	for at < t.baseStrings {
		t = t.base
	}
	return t
}

// at returns the bytes of a type from its header on and the BTF that it is in, or
// nil if there is no such type.
func (t *Types) at(id btf.TypeID) (raw []byte, in *Types) {
	before := btf.TypeID(t.baseTypes)
	if id <= before && t.base != nil {
		return t.base.at(id)
	}
	if id == 0 || id-before >= btf.TypeID(len(t.wire.offsets)) {
		return nil, nil
	}
	return t.wire.at(uint32(id - before)), t
}

// Kind returns the kind of a type, or 0 if it is void or there is no such type.
func (t *Types) Kind(id btf.TypeID) Kind {
	if raw, _ := t.at(id); raw != nil {
		return kindOf(raw)
	}
	return 0
}

// Name returns the name of a type, or "" if it has none.
func (t *Types) Name(id btf.TypeID) string {
	raw, in := t.at(id)
	if raw == nil {
		return ""
	}
	return string(in.text(word(raw, 0)))
}

// Target returns the type that a type refers to: that a pointer points to, that a
// typedef or a qualifier stands for, the prototype of a function, the result of a
// prototype, or the type of a variable or of an array's elements. 0 means void.
func (t *Types) Target(id btf.TypeID) btf.TypeID {
	raw, _ := t.at(id)
	switch {
	case raw == nil:
		return 0
	case kindOf(raw) == Array:
		return btf.TypeID(word(raw, typeHeader))
	case layouts[kindOf(raw)].ref:
		return btf.TypeID(word(raw, 8))
	}
	return 0
}

// maxNested is the greatest number of references that are followed in a row.
const maxNested = 32

// Underlying returns a type without typedefs, qualifiers and tags, or 0 if they
// refer to each other.
func (t *Types) Underlying(id btf.TypeID) btf.TypeID {
	for range maxNested {
		switch t.Kind(id) {
		case Typedef, Volatile, Const, Restrict, TypeTag:
			id = t.Target(id)
		default:
			return id
		}
	}
	return 0
}

// Word reports whether a type is a pointer, or a number of 8 bytes.
func (t *Types) Word(id btf.TypeID) bool {
	raw, _ := t.at(t.Underlying(id))
	if raw == nil {
		return false
	}
	k := kindOf(raw)
	return k == Pointer || (k == Int || k == Enum64) && word(raw, 8) == 8
}

// Named returns an iterator over the types of these kinds whose names begin with
// the prefix, in the order of the file. It skips types without a name and the
// types of the base.
func (t *Types) Named(prefix string, kinds ...Kind) iter.Seq2[btf.TypeID, string] {
	return func(yield func(btf.TypeID, string) bool) {
		for id, raw := range t.all(kinds...) {
			name, ok := t.beginning(word(raw, 0), prefix)
			if ok && !yield(id, string(name)) {
				return
			}
		}
	}
}

// all returns an iterator over the types of these kinds with their bytes, without those
// of the base.
func (t *Types) all(kinds ...Kind) iter.Seq2[btf.TypeID, []byte] {
	var want uint32
	for _, k := range kinds {
		want |= 1 << k
	}
	return func(yield func(btf.TypeID, []byte) bool) {
		for i, at := range t.wire.offsets[1:] {
			raw := t.wire.types[at:]
			if want>>kindOf(raw)&1 != 0 && !yield(btf.TypeID(t.baseTypes+uint32(i)+1), raw) {
				return
			}
		}
	}
}

// beginning returns the name at an offset, and whether there is a name and it has
// this prefix.
func (t *Types) beginning(at uint32, prefix string) ([]byte, bool) {
	in := t.of(at)
	if at -= in.baseStrings; at >= uint32(len(in.wire.strings)) {
		return nil, false
	}
	text := in.wire.strings[at:]
	if len(text) < len(prefix) || string(text[:len(prefix)]) != prefix {
		return nil, false
	}
	text = text[:bytes.IndexByte(text, 0)]
	return text, len(text) > 0
}

// Find returns the first type with this name and one of these kinds, or 0 if there
// is none. It searches the types of a module before those of its base.
func (t *Types) Find(name string, kinds ...Kind) btf.TypeID {
	for id, have := range t.Named(name, kinds...) {
		if have == name {
			return id
		}
	}
	if t.base != nil {
		return t.base.Find(name, kinds...)
	}
	return 0
}

// WithEnumerator returns the enums with an enumerator of this name, in the order of the
// file, without those of the base.
func (t *Types) WithEnumerator(name string) (enums []btf.TypeID) {
	for id, raw := range t.all(Enum, Enum64) {
		if anyElement(raw, func(e []byte) bool { return string(t.text(word(e, 0))) == name }) {
			enums = append(enums, id)
		}
	}
	return enums
}

// Taking returns the functions with a parameter that points to a struct with this
// name, in the order of the file, without those of the base.
func (t *Types) Taking(name string) (funcs []btf.TypeID) {
	known := map[btf.TypeID]bool{}
	for id := range t.Named("", Func) {
		if t.takes(t.Target(id), name, known) {
			funcs = append(funcs, id)
		}
	}
	return funcs
}

// takes reports whether a prototype has a parameter that points to a struct with this
// name. It keeps the answer for each type of a parameter in known.
func (t *Types) takes(proto btf.TypeID, name string, known map[btf.TypeID]bool) bool {
	raw, _ := t.at(proto)
	if raw == nil || kindOf(raw) != FuncProto {
		return false
	}
	return anyElement(raw, func(e []byte) bool {
		param := btf.TypeID(word(e, 4))
		does, seen := known[param]
		if !seen {
			pointer := t.Underlying(param)
			structure := t.Underlying(t.Target(pointer))
			does = t.Kind(pointer) == Pointer && t.Kind(structure) == Struct && t.Name(structure) == name
			known[param] = does
		}
		return does
	})
}

// Fields returns the parameters of a prototype, the members of a structure or the
// enumerators of an enum.
func (t *Types) Fields(id btf.TypeID) []Field {
	raw, in := t.at(id)
	if raw == nil {
		return nil
	}
	l, n := shape(raw)
	if !l.named {
		return nil
	}
	t.Decoded++
	fields := make([]Field, n)
	for i := range n {
		at := l.element(i)
		fields[i].Name = string(in.text(word(raw, at)))
		if len(l.refs) > 0 {
			fields[i].Type = btf.TypeID(word(raw, at+4))
		}
	}
	return fields
}

// maxStructures bounds the anonymous structures in a structure. In invalid BTF a structure may
// contain itself.
const maxStructures = 200

// Members returns the members of a struct or union, including those of its
// anonymous structures.
func (t *Types) Members(id btf.TypeID) (members []Field) {
	structures := []btf.TypeID{id} // the loop appends the anonymous ones
	for i := 0; i < len(structures) && i < maxStructures; i++ {
		id := t.Underlying(structures[i])
		if k := t.Kind(id); k != Struct && k != Union {
			continue
		}
		for _, f := range t.Fields(id) {
			if f.Name != "" {
				members = append(members, f)
			} else {
				structures = append(structures, f.Type)
			}
		}
	}
	return members
}

// words has what precedes the name of a type in C, or stands for it.
var words = [Enum64 + 1]string{
	0: "void", Struct: "struct", Forward: "struct", Union: "union", Enum: "enum", Enum64: "enum", FuncProto: "function",
}

// CName returns the C name of a type, shortened for people to read.
func (t *Types) CName(id btf.TypeID) string {
	stars, after := "", ""
	for range maxNested {
		switch k := t.Kind(id); k {
		case Pointer:
			stars = "*" + stars
		case Array:
			after = "[]"
		case Volatile, Const, Restrict, TypeTag:
		default:
			return strings.Join(strings.Fields(words[k]+" "+t.Name(id)+" "+stars), " ") + after
		}
		id = t.Target(id)
	}
	return ""
}
