package complete

import (
	"strconv"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/btfdump/rawbtf"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// operandType is the type of a value in a spec: a BTF type and a number of pointers
// to it.
type operandType struct {
	id    btf.TypeID
	stars int
}

// call holds the values that a spec can use.
type call struct {
	types  *rawbtf.Types
	params []rawbtf.Field // without names where BTF has none
	result btf.TypeID     // 0 for void, a tracepoint or an iterator

	tracepoint bool // takes no time
	iterator   bool // is run by ksnoop itself, so that values of the thread say nothing
}

// typeOf returns the type of a value, or false if it has none, or one without parts.
func (c *call) typeOf(x spec.Expr) (operandType, bool) {
	switch x := x.(type) {
	case *spec.Arg:
		for _, p := range c.params {
			if p.Name == x.Name.Name {
				return operandType{id: p.Type}, true
			}
		}
	case *spec.Return:
		return operandType{id: c.result}, c.result != 0
	case *spec.Builtin:
		return c.builtinType(x.Name.Name)
	case *spec.Global:
		id := c.types.Find(x.Name.Name, rawbtf.Var)
		return operandType{id: c.types.Target(id)}, id != 0
	case *spec.Member:
		return c.memberType(x)
	case *spec.Index:
		t, ok := c.typeOf(x.X)
		if !ok {
			return t, false
		}
		if bare := c.types.Underlying(t.id); t.stars == 0 && c.types.Kind(bare) == rawbtf.Array {
			return operandType{id: c.types.Target(bare)}, true
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
	if name == "task" {
		id := c.types.Find("task_struct", rawbtf.Struct)
		return operandType{id: id, stars: 1}, id != 0
	}
	n, err := strconv.Atoi(strings.TrimPrefix(name, "arg"))
	if err != nil || n < 1 || n > len(c.params) {
		return operandType{}, false
	}
	return operandType{id: c.params[n-1].Type}, true
}

func (c *call) memberType(m *spec.Member) (operandType, bool) {
	t, ok := c.typeOf(m.X)
	if !ok {
		return t, false
	}
	for _, f := range c.parts(t, !m.Dot) {
		if f.Name == m.Name.Name {
			return operandType{id: f.Type}, true
		}
	}
	return operandType{}, false
}

func (c *call) castType(t spec.TypeName) (operandType, bool) {
	kinds := []rawbtf.Kind{rawbtf.Typedef, rawbtf.Int, rawbtf.Struct, rawbtf.Union, rawbtf.Enum}
	name := t.Name
	for word, kind := range keywordKinds {
		if bare, ok := strings.CutPrefix(name, word+" "); ok {
			kinds, name = []rawbtf.Kind{kind}, bare
		}
	}
	id := c.types.Find(name, kinds...)
	return operandType{id, t.Stars}, id != 0
}

// keywordKinds are the kinds of types by the keywords before their names.
var keywordKinds = map[string]rawbtf.Kind{"struct": rawbtf.Struct, "union": rawbtf.Union, "enum": rawbtf.Enum}

// target returns the type that a pointer points to.
func (c *call) target(t operandType) (operandType, bool) {
	if t.stars > 0 {
		return operandType{t.id, t.stars - 1}, true
	}
	bare := c.types.Underlying(t.id)
	return operandType{id: c.types.Target(bare)}, c.types.Kind(bare) == rawbtf.Pointer
}

// parts returns the members of a structure, or with pointer those of the structure that it
// points to.
func (c *call) parts(t operandType, pointer bool) []rawbtf.Field {
	if pointer {
		var ok bool
		if t, ok = c.target(t); !ok {
			return nil
		}
	}
	if t.stars > 0 {
		return nil
	}
	return c.types.Members(t.id)
}

// accessor returns the operator for the members of a type: "->", "." or "".
func (c *call) accessor(id btf.TypeID) string {
	bare := c.types.Underlying(id)
	access := "."
	if c.types.Kind(bare) == rawbtf.Pointer {
		access, bare = "->", c.types.Underlying(c.types.Target(bare))
	}
	if k := c.types.Kind(bare); k != rawbtf.Struct && k != rawbtf.Union {
		return ""
	}
	return access
}

// enumerators returns those of a value's type, or nil if that is not an enum.
func (c *call) enumerators(t operandType) []rawbtf.Field {
	bare := c.types.Underlying(t.id)
	if k := c.types.Kind(bare); t.stars > 0 || k != rawbtf.Enum && k != rawbtf.Enum64 {
		return nil
	}
	return c.types.Fields(bare)
}
