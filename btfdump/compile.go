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
	maxNested = 64            // levels of structures and arrays, by value
	// maxValues bounds the size of the text, since BTF can describe the same
	// byte many times. The largest kernel structures have a few thousand values.
	maxValues = 1 << 20
	// maxLabels bounds the total length of the casts in the code, in bytes. The
	// casts of task_struct take 6 KB.
	maxLabels = 16 << 20
)

var (
	errUnsized  = errors.New("type has no size")
	errNested   = errors.New("nested too deep")
	errTooLarge = errors.New("type too large")
	errBitfield = errors.New("bitfield with an impossible type or width")
	errOutside  = errors.New("lies outside the structure")
)

// compiler turns a type into ops.
type compiler struct {
	ops    []op
	spans  map[spanKey]span
	enums  map[*btf.Enum]*enumeration
	casts  map[btf.Type]string
	vars   []string // names of a section's entries
	values int      // values in the code, with those of shared structures counted each time
	labels int      // total length of the casts in bytes
	nested int
}

// spanKey distinguishes the two forms of a structure: an array without elements is
// flexible only at the end of the whole value.
type spanKey struct {
	t    btf.Type
	tail bool
}

// span is the range of ops that are a structure's members.
type span struct {
	first, n uint32
	values   int
	tail     bool
}

// root compiles the outermost value.
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

// value compiles a value of type t. The caller sets its offset and its label.
func (c *compiler) value(t btf.Type, tail bool) (op, error) {
	o, err := c.op(t, tail)
	if err != nil {
		return op{}, err
	}
	if c.values++; c.values > maxValues || c.labels > maxLabels || o.size > maxSize {
		return op{}, errTooLarge
	}
	return o, nil
}

func (c *compiler) op(t btf.Type, tail bool) (op, error) {
	switch v := btf.UnderlyingType(t).(type) {
	case *btf.Int:
		return intOp(v), nil
	case *btf.Float:
		return op{kind: kindFloat, size: v.Size}, nil
	case *btf.Pointer:
		return op{kind: kindPointer, size: 8}, nil
	case *btf.Enum:
		return c.enumValue(v), nil
	case *btf.Struct:
		return c.structure(v, v.Members, v.Size, tail)
	case *btf.Union:
		return c.structure(v, v.Members, v.Size, tail)
	case *btf.Array:
		return c.array(v, tail)
	}
	return op{}, errUnsized
}

func intOp(i *btf.Int) op {
	o := op{kind: kindInt, size: i.Size, signed: i.Encoding&btf.Signed != 0, truth: i.Encoding&btf.Bool != 0}
	switch i.Size {
	case 1, 2, 4, 8:
	default:
		o.kind = kindWide
	}
	return o
}

// setLabel sets the text before the value. Name and cast may be empty.
func (o *op) setLabel(name, cast string) {
	if name != "" {
		name = "." + Plain(name) + " = "
	}
	o.name = uint32(len(name))
	o.label = name + "(" + cast + ")"
}

// cast returns TypeName(t), computed once for each type.
func (c *compiler) cast(t btf.Type) string {
	s, ok := c.casts[t]
	if !ok {
		s = TypeName(t)
		c.casts[t] = s
	}
	c.labels += len(s)
	return s
}

// reserve appends n ops and returns the index of the first.
func (c *compiler) reserve(n int) uint32 {
	first := len(c.ops)
	c.ops = slices.Grow(c.ops, n)[:first+n]
	return uint32(first)
}

// enter and leave limit the nesting of values, which also stops the recursion in
// structures that contain themselves.
func (c *compiler) enter() error {
	if c.nested++; c.nested > maxNested {
		return errNested
	}
	return nil
}

func (c *compiler) leave() { c.nested-- }

// array compiles an array. An array without elements at the very end of the value
// is flexible.
func (c *compiler) array(a *btf.Array, tail bool) (op, error) {
	if err := c.enter(); err != nil {
		return op{}, err
	}
	defer c.leave()

	first := c.reserve(1)
	elem, err := c.value(a.Type, false)
	if err != nil {
		return op{}, fmt.Errorf("element: %w", err)
	}
	size := uint64(elem.size) * uint64(a.Nelems)
	if size > maxSize {
		return op{}, errTooLarge
	}

	o := op{kind: kindArray, size: uint32(size), first: first, n: a.Nelems}
	o.tail = tail && a.Nelems == 0
	if i, ok := btf.UnderlyingType(a.Type).(*btf.Int); ok && i.Size == 1 {
		o.kind = byteArray(i)
		elem.kind = kindChar
	}
	c.ops[first] = elem
	return o, nil
}

// byteArray returns the kind of an array with these one-byte elements: text,
// bools or bytes.
func byteArray(i *btf.Int) kind {
	switch {
	case i.Name == "char" || i.Encoding&btf.Char != 0:
		return kindChars
	case i.Encoding&btf.Bool != 0:
		return kindBools
	}
	return kindBytes
}
