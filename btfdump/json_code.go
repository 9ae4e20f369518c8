package btfdump

import (
	"strconv"
	"strings"
)

// cutKey is the key of the number of missing bytes. No other member has this
// key.
const cutKey = "$cut"

// jsonCode holds what JSON needs in addition to the ops: for each structure its
// members and those of its anonymous members, with unique names.
type jsonCode struct {
	fields  []field
	objects []object // by op.first of the structure
}

// object is the range of a structure's fields.
type object struct{ first, n uint32 }

// field is a member of an object.
type field struct {
	key string // escaped, without quotes
	op  uint32
	off uint32 // bytes from the start of the object
}

// A jsonCompiler makes a jsonCode from ops.
type jsonCompiler struct {
	jsonCode
	ops   []op
	names map[string]use
}

// use is the last use of a name. With the number of the object in it, the map
// need not be cleared between objects.
type use struct {
	object uint32 // 1 for the first one
	times  uint32
}

func compileJSON(c *compiler, root *op) jsonCode {
	p := jsonCompiler{ops: c.ops, names: make(map[string]use, len(c.ops))}
	p.objects = make([]object, len(c.ops))
	p.fields = make([]field, 0, len(c.ops))
	number := uint32(0)
	p.value(root, c.vars, &number)
	return p.jsonCode
}

// value compiles the objects in a value.
func (p *jsonCompiler) value(o *op, vars []string, number *uint32) {
	switch o.kind {
	case kindArray:
		p.value(&p.ops[o.first], nil, number)
	case kindStructure, kindSection:
		if o.n == 0 || p.objects[o.first].n != 0 {
			return
		}
		first := len(p.fields)
		if o.kind == kindSection {
			for i, name := range vars {
				n := o.first + uint32(i)
				p.fields = append(p.fields, field{name, n, p.ops[n].off})
			}
		} else {
			p.members(o, 0)
		}
		last := len(p.fields)
		p.objects[o.first] = object{uint32(first), uint32(last - first)}
		*number++
		p.separate(p.fields[first:last], *number)
		for i := first; i < last; i++ {
			p.value(&p.ops[p.fields[i].op], nil, number)
		}
	}
}

// members collects the members of a structure. The total is bounded by the number
// of values in the code, since only named structures begin a new object.
func (p *jsonCompiler) members(o *op, off uint32) {
	for i := o.first; i < o.first+o.n; i++ {
		m := &p.ops[i]
		if m.name == 0 && m.kind == kindStructure {
			p.members(m, off+m.off)
			continue
		}
		name := ""
		if m.name != 0 {
			name = m.label[len(".") : m.name-uint32(len(" = "))]
		}
		p.fields = append(p.fields, field{name, i, off + m.off})
	}
}

// separate makes the names in one object unique: the second member called x
// becomes x#2. C has no such members, but BTF may.
func (p *jsonCompiler) separate(fields []field, object uint32) {
	p.names[cutKey] = use{object, 1}
	for i := range fields {
		f := &fields[i]
		f.key = escapeName(p.unused(f.key, object))
	}
}

func (p *jsonCompiler) unused(name string, object uint32) string {
	u := p.names[name]
	if u.object != object {
		p.names[name] = use{object, 1}
		return name
	}
	for {
		u.times++
		p.names[name] = u
		other := name + "#" + strconv.FormatUint(uint64(u.times), 10)
		if p.names[other].object != object {
			p.names[other] = use{object, 1}
			return other
		}
	}
}

// escapeName escapes a name that Plain returned for use in a JSON string.
func escapeName(name string) string {
	if strings.ContainsAny(name, `"\`) {
		return string(appendJSONName(nil, name))
	}
	return name
}
