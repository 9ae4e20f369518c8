package main

import (
	"strconv"
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// operandType is the type of a value in a spec: a type of BTF behind so many
// pointers.
type operandType struct {
	id    uint32
	stars int
}

// call is what the values of a spec are taken from.
type call struct {
	types  *names
	params []field // with names
	result uint32  // 0: void, or a tracepoint
}

// typeOf is the type of a value; false: it has none, or one that has no parts.
func (c *call) typeOf(x spec.Expr) (operandType, bool) {
	switch x := x.(type) {
	case *spec.Arg:
		for _, p := range c.params {
			if p.name == x.Name.Name {
				return operandType{id: p.typ}, true
			}
		}
	case *spec.Return:
		return operandType{id: c.result}, c.result != 0
	case *spec.Builtin:
		return c.builtinType(x.Name.Name)
	case *spec.Global:
		id := c.types.find(x.Name.Name, kindVar)
		return operandType{id: c.types.ref(id)}, id != 0
	case *spec.Member:
		return c.memberType(x)
	case *spec.Index:
		t, ok := c.typeOf(x.X)
		if !ok {
			return t, false
		}
		if bare := c.types.bare(t.id); t.stars == 0 && c.types.kind(bare) == kindArray {
			return operandType{id: c.types.element(bare)}, true
		}
		return c.target(t)
	case *spec.Deref:
		if t, ok := c.typeOf(x.X); ok {
			return c.target(t)
		}
	case *spec.Cast:
		return c.castType(x.Type)
	}
	return operandType{}, false
}

func (c *call) builtinType(name string) (operandType, bool) {
	if name == "retval" {
		return operandType{id: c.result}, c.result != 0
	}
	n, err := strconv.Atoi(strings.TrimPrefix(name, "arg"))
	if err != nil || n < 1 || n > len(c.params) {
		return operandType{}, false
	}
	return operandType{id: c.params[n-1].typ}, true
}

func (c *call) memberType(m *spec.Member) (operandType, bool) {
	t, ok := c.typeOf(m.X)
	if !ok {
		return t, false
	}
	for _, f := range c.parts(t, !m.Dot) {
		if f.name == m.Name.Name {
			return operandType{id: f.typ}, true
		}
	}
	return operandType{}, false
}

func (c *call) castType(t spec.TypeName) (operandType, bool) {
	kinds := []int{kindTypedef, kindInt, kindStruct, kindUnion, kindEnum}
	name := t.Name
	for word, kind := range recordKinds {
		if bare, ok := strings.CutPrefix(name, word+" "); ok {
			kinds, name = []int{kind}, bare
		}
	}
	id := c.types.find(name, kinds...)
	return operandType{id, t.Stars}, id != 0
}

// recordKinds are the kinds of types by the words that stand before their names.
var recordKinds = map[string]int{"struct": kindStruct, "union": kindUnion, "enum": kindEnum}

// target is what a pointer points to.
func (c *call) target(t operandType) (operandType, bool) {
	if t.stars > 0 {
		return operandType{t.id, t.stars - 1}, true
	}
	bare := c.types.bare(t.id)
	return operandType{id: c.types.ref(bare)}, c.types.kind(bare) == kindPointer
}

// parts are the members of a record, or with a pointer of what it points to.
func (c *call) parts(t operandType, pointer bool) []field {
	if pointer {
		var ok bool
		if t, ok = c.target(t); !ok {
			return nil
		}
	}
	if t.stars > 0 {
		return nil
	}
	return c.types.members(t.id)
}

// accessor is what leads to the members of a type: "->", "." or nothing.
func (c *call) accessor(id uint32) string {
	bare := c.types.bare(id)
	access := "."
	if c.types.kind(bare) == kindPointer {
		access, bare = "->", c.types.bare(c.types.ref(bare))
	}
	if k := c.types.kind(bare); k != kindStruct && k != kindUnion {
		return ""
	}
	return access
}

// enumerators are those of a value's type, or of a type that it has bits of.
func (c *call) enumerators(t operandType) []field {
	bare := c.types.bare(t.id)
	if k := c.types.kind(bare); t.stars > 0 || k != kindEnum && k != kindEnum64 {
		return nil
	}
	return c.types.fields(bare)
}
