package resolve

import (
	"encoding/binary"
	"iter"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// number returns the integer that a constant stands for when compared with v.
func (b *binder) number(v *compiler.Value, c spec.Constant) (spec.Constant, error) {
	switch c.Kind {
	case spec.Name:
		return b.named(v, c)
	case spec.Duration:
		if v.Base.Builtin != compiler.Duration {
			return c, b.errorf(c.At, "'%s' is %s, not a duration", v.Name, kindOf(v)).
				WithHint("durations are compared with $duration")
		}
	case spec.String:
		return b.addressNumber(v, c)
	}
	return c, nil
}

// named returns the number that a name stands for: an enumerator of the value's
// own type, an error, or any enumerator of the kernel.
func (b *binder) named(v *compiler.Value, c spec.Constant) (spec.Constant, error) {
	if e, ok := btf.As[*btf.Enum](v.Type); ok {
		if n, ok := enumerator(e, c.Str); ok && !c.Neg && !Halved(e) {
			return withNumber(c, n, v.Scalar.Signed), nil
		}
	}
	_, isPointer := btf.As[*btf.Pointer](v.Type)
	switch {
	case c.Neg && (c.Str == "NULL" || c.Str == "true" || c.Str == "false"):
		return c, b.errorf(c.At, "%s has no sign", c.Str).WithHint("leave out the '-'")
	case c.Str == "NULL" && isPointer, c.Str == "false":
		return withNumber(c, 0, false), nil
	case c.Str == "true":
		return withNumber(c, 1, false), nil
	case c.Str == "NULL":
		return c, b.errorf(c.At, "'%s' is %s, and NULL is for pointers", v.Name, kindOf(v)).WithHint("write 0")
	}
	if n, ok := compiler.Errnos[c.Str]; ok {
		if isPointer && c.Neg {
			return withNumber(c, -n, false), nil // like the kernel's ERR_PTR
		}
		c.Abs, c.Kind = n, spec.Integer
		return c, nil
	}
	n, signed, ok := b.namedNumber(c.Str)
	if signed && !v.Scalar.Signed && v.Scalar.Width() == 32 { // then 0xffffffff is no -1, unless BTF says so
		if e, _ := b.enumWith(c.Str); e.Size == 4 && !e.Signed {
			n, signed = uint64(uint32(n)), false
		}
	}
	switch {
	case ok && c.Neg:
		return c, b.errorf(c.At, "of all names, only those of errors have a sign").WithHint("write 0 - %s", c.Str)
	case ok:
		return withNumber(c, n, signed), nil
	}
	return c, b.unknownConstant(v, c)
}

// namedNumber returns the value of an enumerator of any type, or of a flag of
// open(2).
func (b *binder) namedNumber(name string) (n uint64, signed, ok bool) {
	if n, signed, ok = b.anyEnumerator(name); ok {
		return n, signed, true
	}
	n, ok = openFlag(name, b.target.Arch)
	return n, false, ok
}

func (b *binder) unknownConstant(v *compiler.Value, c spec.Constant) error {
	if err := b.uncertain(c.Str, c.At); err != nil {
		return err
	}
	err := b.errorf(c.At, "there is no constant '%s': no enumerator and no error has this name", c.Str)
	names := slices.Collect(maps.Keys(compiler.Errnos))
	if !c.Neg {
		names = slices.AppendSeq(names, maps.Keys(openFlags))
	}
	if e, ok := btf.As[*btf.Enum](v.Type); ok {
		for _, m := range e.Values {
			names = append(names, m.Name)
		}
	}
	near, ok := spec.Nearest(c.Str, slices.Values(names))
	switch {
	case !c.Neg && slices.Contains([]string{"nullptr", "nil", "None", "null"}, c.Str):
		return err.WithMeant("NULL")
	case !c.Neg && b.habit(err, c.Str):
		return err
	case ok && c.Neg:
		return err.WithMeant("-%s", near)
	case ok:
		return err.WithMeant("%s", near)
	case syscallNumberHint(b.target, c.Str) != "":
		return err.WithHint("%s", syscallNumberHint(b.target, c.Str))
	case strings.ToUpper(c.Str) == c.Str:
		return err.WithHint("macros of C are not in BTF: write the number")
	}
	if ptr, ok := btf.As[*btf.Pointer](v.Type); v.IsText() || ok && isBytes(ptr.Target) {
		return err.WithHint("strings are in quotes: \"%s\"", c.Str)
	}
	return err
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

// anyEnumerator returns the value of an enumerator, and whether its enum is signed. It
// searches all enums, and returns false if the value is not certain.
func (b *binder) anyEnumerator(name string) (n uint64, signed, ok bool) {
	e, other := b.enumWith(name)
	if e == nil || other != nil {
		return 0, false, false
	}
	n, ok = enumerator(e, name)
	return n, enumSigned(e), ok
}

// Halved reports whether BTF has only the lower halves of an enum's numbers. C gives an
// enum 8 bytes if one of them needs these, but before BTF_KIND_ENUM64 (Linux 6.0) there was
// room for 4. No kernel has an enum of 8 bytes by its declaration, as C23 allows.
func Halved(e *btf.Enum) bool {
	return e.Size == 8 && !slices.ContainsFunc(e.Values, func(v btf.EnumValue) bool { return v.Value>>32 != 0 })
}

// enumWith returns the first enum that has an enumerator of this name. If its number is
// not certain, other is the next one in which it is another number, or first itself if BTF
// has only a half of it.
func (b *binder) enumWith(name string) (first, other *btf.Enum) {
	var known uint64
	for _, types := range specsOf(b.fn, b.target) {
		for e := range b.mayHave(types, name) {
			n, ok := enumerator(e, name)
			switch {
			case !ok:
			case first == nil && Halved(e):
				return e, e
			case first == nil:
				first, known = e, n
			case n != known:
				return first, e
			}
		}
		if first != nil {
			break
		}
	}
	return first, nil
}

// uncertain returns the error for an enumerator whose number is not certain, or nil.
func (b *binder) uncertain(name string, at spec.Span) error {
	first, other := b.enumWith(name)
	switch other {
	case nil:
		return nil
	case first:
		return b.errorf(at, "the BTF of this kernel has only the lower 32 bits of '%s'", name).WithHint("write the number")
	}
	n, _ := enumerator(first, name)
	m, _ := enumerator(other, name)
	return b.errorf(at, "'%s' is %d in one enum of this kernel and %d in another", name, int64(n), int64(m)).WithHint("write the number")
}

// mayHave iterates over enums in the order of their ids, among them all that have an
// enumerator of this name. Decoding all types would take a tenth of a second.
func (b *binder) mayHave(types *btf.Spec, name string) iter.Seq[*btf.Enum] {
	if types == b.target.Kernel && b.target.EnumsWith != nil {
		if ids, known := b.target.EnumsWith(name); known {
			if enums, err := typesByID[*btf.Enum](types, ids); err == nil {
				return slices.Values(enums)
			}
		}
	}
	return func(yield func(*btf.Enum) bool) {
		for t, err := range types.All() {
			if err != nil {
				return
			}
			if e, ok := t.(*btf.Enum); ok && !yield(e) {
				return
			}
		}
	}
}

// addressNumber converts an IPv4 address to the number that it is in memory.
func (b *binder) addressNumber(v *compiler.Value, c spec.Constant) (spec.Constant, error) {
	if v.Format != "ip4" || v.Scalar == nil {
		return c, b.noString(v, c)
	}
	bytes, err := b.addressOf(v, c)
	if err != nil {
		return c, err
	}
	n := binary.LittleEndian.Uint32(bytes)
	if v.Scalar.Signed {
		return withNumber(c, uint64(int64(int32(n))), true), nil
	}
	return withNumber(c, uint64(n), false), nil
}

// withNumber returns the constant c with a 64-bit pattern as its number.
func withNumber(c spec.Constant, n uint64, signed bool) spec.Constant {
	c.Kind, c.Abs, c.Neg = spec.Integer, n, false
	if signed && int64(n) < 0 {
		c.Abs, c.Neg = -n, true
	}
	return c
}

// openFlag returns the value of a flag of open(2) on an architecture.
func openFlag(name string, arch *compiler.Arch) (n uint64, ok bool) {
	if arch == compiler.ARM64 {
		if n, ok = openFlagsARM64[name]; ok {
			return n, true
		}
	}
	n, ok = openFlags[name]
	return n, ok
}

// openFlagsARM64 has the flags whose values differ on arm64
// (arch/arm64/include/uapi/asm/fcntl.h).
var openFlagsARM64 = map[string]uint64{
	"O_DIRECTORY": 0o40000,
	"O_NOFOLLOW":  0o100000,
	"O_DIRECT":    0o200000,
	"O_LARGEFILE": 0o400000,
	"O_TMPFILE":   0o20040000,
}

// openFlags has the flags of open(2) with their values on x86. They are macros,
// so they are not in BTF (include/uapi/asm-generic/fcntl.h).
var openFlags = map[string]uint64{
	"O_ACCMODE":   0o3,
	"O_RDONLY":    0o0,
	"O_WRONLY":    0o1,
	"O_RDWR":      0o2,
	"O_CREAT":     0o100,
	"O_EXCL":      0o200,
	"O_NOCTTY":    0o400,
	"O_TRUNC":     0o1000,
	"O_APPEND":    0o2000,
	"O_NONBLOCK":  0o4000,
	"O_NDELAY":    0o4000,
	"O_DSYNC":     0o10000,
	"O_ASYNC":     0o20000,
	"FASYNC":      0o20000,
	"O_DIRECT":    0o40000,
	"O_LARGEFILE": 0o100000,
	"O_DIRECTORY": 0o200000,
	"O_NOFOLLOW":  0o400000,
	"O_NOATIME":   0o1000000,
	"O_CLOEXEC":   0o2000000,
	"__O_SYNC":    0o4000000,
	"O_SYNC":      0o4010000,
	"O_PATH":      0o10000000,
	"__O_TMPFILE": 0o20000000,
	"O_TMPFILE":   0o20200000,
}

// wide is a signed number of 128 bits, in which expressions of 64-bit constants are
// computed exactly. Package math/big would make the binary larger.
type wide struct {
	high int64
	low  uint64
	over bool // whether the number may need more bits; it then needs at least 127
}

// wideOf returns a number from its absolute value.
func wideOf(abs uint64, negative bool) wide {
	n := wide{low: abs}
	if negative {
		return n.negated()
	}
	return n
}

func (n wide) negated() wide { return wide{}.minus(n) }

// abs returns the absolute value, and whether it has 64 bits at most.
func (n wide) abs() (abs uint64, fits bool) {
	if n.high < 0 {
		n = n.negated()
	}
	return n.low, n.high == 0 && !n.over
}

// fits reports whether the number is an int64 or a uint64.
func (n wide) fits() bool {
	return !n.over && (n.high == 0 || n.high == -1 && int64(n.low) < 0)
}

func (n wide) plus(o wide) wide {
	low, carry := bits.Add64(n.low, o.low, 0)
	high := n.high + o.high + int64(carry)
	return wide{high, low, n.over || o.over || (n.high < 0) == (o.high < 0) && (high < 0) != (n.high < 0)}
}

func (n wide) minus(o wide) wide {
	low, borrow := bits.Sub64(n.low, o.low, 0)
	high := n.high - o.high - int64(borrow)
	return wide{high, low, n.over || o.over || (n.high < 0) != (o.high < 0) && (high < 0) != (n.high < 0)}
}

func (n wide) times(o wide) wide {
	x, y := n, o
	if n.high < 0 {
		x = n.negated()
	}
	if o.high < 0 {
		y = o.negated()
	}
	high, low := bits.Mul64(x.low, y.low)
	over1, cross1 := bits.Mul64(uint64(x.high), y.low)
	over2, cross2 := bits.Mul64(x.low, uint64(y.high))
	high, carry1 := bits.Add64(high, cross1, 0)
	high, carry2 := bits.Add64(high, cross2, 0)
	product := wide{high: int64(high), low: low}
	if (n.high < 0) != (o.high < 0) {
		product = product.negated()
	}
	product.over = x.over || y.over || x.high != 0 && y.high != 0 || over1|over2|carry1|carry2 != 0 || int64(high) < 0
	return product
}

// left returns n*2^by, where by is less than 64.
func (n wide) left(by uint64) wide {
	if by == 0 {
		return n
	}
	shifted := wide{n.high<<by | int64(n.low>>(64-by)), n.low << by, n.over}
	shifted.over = n.over || shifted.high>>by != n.high
	return shifted
}

// right returns n/2^by, rounded down, where by is less than 64.
func (n wide) right(by uint64) wide {
	if by == 0 {
		return n
	}
	return wide{n.high >> by, n.low>>by | uint64(n.high)<<(64-by), n.over}
}

// exactly returns the result of an operation, or nil if that is not defined.
func exactly(op spec.Operator, x, y wide) *wide {
	var n wide
	switch op {
	case spec.BitOr:
		n = wide{x.high | y.high, x.low | y.low, x.over || y.over}
	case spec.BitAnd:
		n = wide{x.high & y.high, x.low & y.low, x.over || y.over}
	case spec.Add:
		n = x.plus(y)
	case spec.Sub:
		n = x.minus(y)
	case spec.Mul:
		n = x.times(y)
	case spec.Shl, spec.Shr:
		if y.high != 0 || y.low > 63 || y.over {
			return nil
		}
		if n = x.right(y.low); op == spec.Shl {
			n = x.left(y.low)
		}
	}
	return &n
}
