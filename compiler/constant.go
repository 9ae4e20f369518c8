package compiler

import (
	"encoding/binary"
	"net/netip"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// number is the integer that a constant stands for when compared with v.
func (b *binder) number(v *Value, c spec.Constant) (spec.Constant, error) {
	switch c.Kind {
	case spec.Name:
		return b.named(v, c)
	case spec.Duration:
		if v.Base.Builtin != Duration {
			return c, b.errorf(c.At, "'%s' is %s, no duration", v.Name, describe(v.Type)).
				WithHint("durations are compared with $duration")
		}
	case spec.String:
		return b.addressNumber(v, c)
	}
	return c, nil
}

// named finds the number that a name stands for: of an enumerator of the
// value's own type, of an error, or of any enumerator of the kernel.
func (b *binder) named(v *Value, c spec.Constant) (spec.Constant, error) {
	if e, ok := btf.As[*btf.Enum](v.Type); ok {
		if n, ok := enumerator(e, c.Str); ok && !c.Neg {
			return withNumber(c, n, v.Scalar.Signed), nil
		}
	}
	_, isPointer := btf.As[*btf.Pointer](v.Type)
	switch {
	case c.Str == "NULL" && isPointer, c.Str == "false":
		return withNumber(c, 0, false), nil
	case c.Str == "true":
		return withNumber(c, 1, false), nil
	case c.Str == "NULL":
		return c, b.errorf(c.At, "'%s' is %s, and NULL is for pointers", v.Name, describe(v.Type)).WithHint("write 0")
	}
	if n, ok := errnos[c.Str]; ok {
		if isPointer && c.Neg {
			return withNumber(c, -n, false), nil // as the kernel's ERR_PTR
		}
		c.Abs, c.Kind = n, spec.Integer
		return c, nil
	}
	if n, signed, ok := b.anyEnumerator(c.Str); ok && !c.Neg {
		return withNumber(c, n, signed), nil
	}
	if n, ok := openFlags[c.Str]; ok && !c.Neg {
		return withNumber(c, n, false), nil
	}
	return c, b.unknownConstant(v, c)
}

func (b *binder) unknownConstant(v *Value, c spec.Constant) error {
	err := b.errorf(c.At, "there is no constant '%s': no enumerator and no error has this name", c.Str)
	names := func(yield func(string) bool) {
		if e, ok := btf.As[*btf.Enum](v.Type); ok {
			for _, m := range e.Values {
				if !yield(m.Name) {
					return
				}
			}
		}
		for name := range errnos {
			if !yield(name) {
				return
			}
		}
		for name := range openFlags {
			if !c.Neg && !yield(name) {
				return
			}
		}
	}
	near, ok := spec.Nearest(c.Str, names)
	switch {
	case ok && c.Neg:
		return err.WithHint("did you mean '-%s'?", near)
	case ok:
		return err.WithHint("did you mean '%s'?", near)
	case strings.ToUpper(c.Str) == c.Str:
		return err.WithHint("macros of C are not in BTF: write the number")
	}
	return err.WithHint("a value is compared with a constant; strings stand in quotes: \"%s\"", c.Str)
}

func enumerator(e *btf.Enum, name string) (uint64, bool) {
	for _, v := range e.Values {
		if v.Name == name {
			if e.Size == 4 && enumSigned(e) {
				return uint64(int64(int32(v.Value))), true
			}
			return v.Value, true
		}
	}
	return 0, false
}

// anyEnumerator looks through all enums, which takes a tenth of a second.
func (b *binder) anyEnumerator(name string) (n uint64, signed, ok bool) {
	for _, types := range b.fn.specs(b.target) {
		for t, err := range types.All() {
			if err != nil {
				break
			}
			if e, is := t.(*btf.Enum); is {
				if n, ok := enumerator(e, name); ok {
					return n, enumSigned(e), true
				}
			}
		}
	}
	return 0, false, false
}

// addressNumber reads an IPv4 address as the number that it is in memory.
func (b *binder) addressNumber(v *Value, c spec.Constant) (spec.Constant, error) {
	if v.Format != "ip4" || v.Scalar == nil {
		return c, b.errorf(c.At, "'%s' is %s, which is not compared with a string", v.Name, describe(v.Type))
	}
	a, err := netip.ParseAddr(c.Str)
	if err != nil || !a.Is4() {
		return c, b.errorf(c.At, "%s is not an IPv4 address", c.Text).WithHint(`write it as "192.0.2.1"`)
	}
	bytes := a.As4()
	n := binary.LittleEndian.Uint32(bytes[:])
	if v.Scalar.Signed {
		return withNumber(c, uint64(int64(int32(n))), true), nil
	}
	return withNumber(c, uint64(n), false), nil
}

// withNumber is the constant c with a 64-bit pattern as its number.
func withNumber(c spec.Constant, n uint64, signed bool) spec.Constant {
	c.Kind, c.Abs, c.Neg = spec.Integer, n, false
	if signed && int64(n) < 0 {
		c.Abs, c.Neg = -n, true
	}
	return c
}
