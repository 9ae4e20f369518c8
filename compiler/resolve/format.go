package resolve

import (
	"strconv"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// addressBytes has the size in bytes of each format for network addresses.
var addressBytes = map[string]uint32{"ip4": 4, "ip6": 16, "mac": 6}

// format sets the format of v and checks that it can show the type.
func (b *binder) format(v *compiler.Value, format spec.Ident) error {
	v.Format = format.Name
	fail := func(want string) error {
		return b.errorf(format.At, "'%s' is %s: ':%s' shows %s", v.Name, kindOf(v), v.Format, want)
	}
	switch v.Format {
	case "x", "d", "u", "c", "errno":
		if v.Scalar == nil {
			return fail("numbers")
		}
	case "symbol":
		if v.Scalar == nil || v.Scalar.Size != 8 {
			return fail("addresses, of 8 bytes")
		}
	case "be":
		return b.bigEndian(v, fail)
	case "string", "ustring":
		return b.text(v, fail)
	case "path":
		return b.path(v, format, fail)
	case "ip":
		return b.ipAddress(v, fail)
	case "ip4", "ip6", "mac":
		return b.networkAddress(v, fail)
	default:
		return b.sized(v, fail)
	}
	return nil
}

// bigEndian reads a number in network byte order.
func (b *binder) bigEndian(v *compiler.Value, fail func(string) error) error {
	_, isPointer := btf.As[*btf.Pointer](v.Type)
	if isPointer || v.Scalar == nil || v.Scalar.IsField() || v.Scalar.Size < 2 {
		return fail("numbers of 2, 4 or 8 bytes")
	}
	v.Swap = true
	v.Scalar = &compiler.Scalar{Size: v.Scalar.Size}
	v.Type = intType("u"+strconv.Itoa(8*v.Scalar.Size), uint32(v.Scalar.Size), btf.Unsigned)
	return nil
}

// sized converts v to a number of a given width in bits: x32, u8, s16.
func (b *binder) sized(v *compiler.Value, fail func(string) error) error {
	if v.Scalar == nil {
		return fail("numbers")
	}
	bits, _ := strconv.Atoi(v.Format[1:])
	encoding := btf.Unsigned
	name := "u" + v.Format[1:]
	if v.Format[0] == 's' {
		encoding, name = btf.Signed, v.Format
	}
	v.Type = intType(name, uint32(bits/8), encoding)
	v.Casts = append(v.Casts[:len(v.Casts):len(v.Casts)], *scalarOf(v.Type))
	v.Scalar = &v.Casts[len(v.Casts)-1]
	return nil
}

// text follows a pointer to a string. An array in memory is a string itself.
func (b *binder) text(v *compiler.Value, fail func(string) error) error {
	if a, ok := btf.As[*btf.Array](v.Type); ok && v.Format == "string" {
		if size, err := btf.Sizeof(a.Type); err == nil && size == 1 {
			return nil
		}
	}
	if v.Scalar == nil || v.Scalar.Size != 8 || v.Scalar.Bits != 0 && v.Scalar.Bits != 64 {
		return fail("strings, behind a pointer or in an array of bytes")
	}
	followText(v, compiler.KernelText)
	if v.Format == "ustring" {
		followText(v, compiler.UserText)
	}
	return nil
}

func followText(v *compiler.Value, t compiler.Text) {
	v.Pointee, v.Text = intType("char", 1, btf.Signed), t
}

// own binds an item to its own bytes: what a pointer points to is not watched.
func (b *builder) own(item *spec.Item) (*compiler.Value, error) {
	v, err := b.shared(item)
	if err != nil {
		return nil, err
	}
	if v.Pointee != nil && item.Format.Name != "" {
		return nil, b.errorf(item.Format.At, "':%s' shows what '%s' points to, and it is the pointer that is watched", item.Format.Name, v.Name).
			WithHint("leave the format out")
	}
	v.Pointee, v.Text, v.Walk = nil, compiler.NoText, nil
	return v, nil
}

// ownOnly returns an error if a condition has followed a pointer that [builder.own] binds.
func (b *builder) ownOnly() error {
	for _, item := range b.trace.Watched() {
		v, err := b.shared(item)
		if err != nil {
			return err
		}
		if v.Text != compiler.NoText {
			return b.errorf(item.Value.Span(), "'%s' is a pointer that is watched, and a condition on it cannot be about the string that it points to", v.Name).
				WithHint("choose writes by their process or CPU: if $comm == \"NAME\"")
		}
	}
	return nil
}

// readAsText reads bytes as a string, because they are compared with one.
func readAsText(v *compiler.Value) {
	if v.Format != "" {
		return
	}
	elem, ok := pointee(v.Type)
	if i, isInt := btf.As[*btf.Int](elem); !ok || !isInt || i.Size != 1 {
		return
	}
	if _, isArray := btf.As[*btf.Array](v.Type); isArray {
		v.Format = "string"
	} else {
		followText(v, compiler.KernelText)
	}
}

// networkAddress shows the bytes of a number, or of a structure or array of that
// size, or those that a pointer points to.
func (b *binder) networkAddress(v *compiler.Value, fail func(string) error) error {
	want := addressBytes[v.Format]
	if v.Base.Builtin == compiler.Comm {
		return fail("addresses, and not the name of a thread")
	}
	if _, ok := btf.As[*btf.Pointer](v.Type); ok {
		v.Pointee = &btf.Array{Type: intType("unsigned char", 1, btf.Unsigned), Nelems: want}
		return nil
	}
	if size, err := btf.Sizeof(v.Type); err != nil || uint32(size) != want || v.Load != nil && v.Load.IsField() {
		return fail("addresses of " + strconv.Itoa(int(want)) + " bytes, or what a pointer points to")
	}
	return nil
}

// ipAddress shows an IP address, as IPv4 or IPv6 by its size.
func (b *binder) ipAddress(v *compiler.Value, fail func(string) error) error {
	if _, ok := btf.As[*btf.Pointer](v.Type); ok {
		return fail("an address by its length, and what a pointer points to may be of any: say ip4 or ip6")
	}
	size, err := btf.Sizeof(v.Type)
	for _, f := range []string{"ip4", "ip6"} {
		if err == nil && uint32(size) == addressBytes[f] {
			v.Format = f
			return b.networkAddress(v, fail)
		}
	}
	return fail("addresses of 4 or 16 bytes")
}
