package btfdump

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cilium/ebpf/btf"
)

const (
	maxSize   = math.MaxInt32 // bytes of a value
	maxNested = 64            // records and arrays inside each other, by value
	// maxValues bounds the text: every byte is printed at most so many times.
	// The largest kernel records have a few thousand values.
	maxValues = 1 << 20
	// maxLabels bounds the casts of a plan, in bytes. Those of task_struct take
	// 6 KB.
	maxLabels = 16 << 20
)

var (
	errUnsized  = errors.New("type has no size")
	errNested   = errors.New("nested too deep")
	errTooLarge = errors.New("type too large")
	errBitfield = errors.New("bitfield of a type or width that cannot be")
	errOutside  = errors.New("lies outside the record")
)

// compiler turns a type into ops.
type compiler struct {
	ops    []op
	spans  map[spanKey]span
	enums  map[*btf.Enum]*enumeration
	casts  map[btf.Type]string
	vars   []string // names of a section's entries
	values int      // values in the plan if nothing were shared
	labels int      // bytes of all casts
	nested int
}

// spanKey tells the two forms of a record apart: only at the end of the whole
// value is an array without elements a flexible one.
type spanKey struct {
	t    btf.Type
	tail bool
}

// span is where a record's members are among the ops.
type span struct {
	first, n uint32
	values   int
	tail     bool
}

func newCompiler() *compiler {
	return &compiler{
		spans: make(map[spanKey]span),
		enums: make(map[*btf.Enum]*enumeration),
		casts: make(map[btf.Type]string),
	}
}

// root plans the outermost value.
func (c *compiler) root(t btf.Type) (op, error) {
	switch v := t.(type) {
	case *btf.Var:
		return c.variable(v, true)
	case *btf.Datasec:
		return c.section(v)
	}
	o, err := c.value(t, true)
	o.setLabel("", c.cast(t))
	return o, err
}

// value plans a value of type t. The caller sets its place and label.
func (c *compiler) value(t btf.Type, tail bool) (op, error) {
	o, err := c.plan(t, tail)
	if err != nil {
		return op{}, err
	}
	if c.values++; c.values > maxValues || c.labels > maxLabels || o.size > maxSize {
		return op{}, errTooLarge
	}
	return o, nil
}

func (c *compiler) plan(t btf.Type, tail bool) (op, error) {
	switch v := underlying(t).(type) {
	case *btf.Int:
		return planInt(v), nil
	case *btf.Float:
		return op{kind: kindFloat, size: v.Size}, nil
	case *btf.Pointer:
		if _, ok := underlying(v.Target).(*btf.FuncProto); ok {
			return op{kind: kindFuncPtr, size: 8}, nil
		}
		return op{kind: kindPointer, size: 8}, nil
	case *btf.Enum:
		return c.enumValue(v), nil
	case *btf.Struct:
		return c.record(v, v.Members, v.Size, tail)
	case *btf.Union:
		return c.record(v, v.Members, v.Size, tail)
	case *btf.Array:
		return c.array(v, tail)
	}
	return op{}, errUnsized
}

func planInt(i *btf.Int) op {
	o := op{kind: kindInt, size: i.Size, signed: i.Encoding&btf.Signed != 0, truth: i.Encoding&btf.Bool != 0}
	switch i.Size {
	case 1, 2, 4, 8:
	default:
		o.kind = kindWide
	}
	return o
}

// setLabel joins what stands before the value. Name and cast may be empty.
func (o *op) setLabel(name, cast string) {
	if name != "" {
		name = "." + clean(name) + " = "
	}
	o.name = uint32(len(name))
	o.label = name + "(" + cast + ")"
}

// cast is TypeName, computed once for each type.
func (c *compiler) cast(t btf.Type) string {
	s, ok := c.casts[t]
	if !ok {
		s = TypeName(t)
		c.casts[t] = s
	}
	c.labels += len(s)
	return s
}

// reserve makes room for n neighbouring ops.
func (c *compiler) reserve(n int) uint32 {
	first := len(c.ops)
	c.ops = slices.Grow(c.ops, n)[:first+n]
	return uint32(first)
}

// enter and leave bound how deep values lie in each other, which also ends
// records that contain themselves.
func (c *compiler) enter() error {
	if c.nested++; c.nested > maxNested {
		return errNested
	}
	return nil
}

func (c *compiler) leave() { c.nested-- }

// memberError names the member on the way to the fault.
func memberError(name string, err error) error {
	return fmt.Errorf("member %q: %w", name, err)
}
