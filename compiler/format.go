package compiler

import (
	"strconv"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// addressBytes is the size of the values of formats for network addresses.
var addressBytes = map[string]uint32{"ip4": 4, "ip6": 16, "mac": 6}

// format makes v what a format shows.
func (b *binder) format(v *Value, format spec.Ident) error {
	v.Format = format.Name
	fail := func(want string) error {
		return b.errorf(format.At, "'%s' is %s: ':%s' shows %s", v.Name, describe(v.Type), v.Format, want)
	}
	switch v.Format {
	case "x", "d", "u", "c":
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
	case "ip4", "ip6", "mac":
		return b.networkAddress(v, fail)
	default:
		return b.sized(v, fail)
	}
	return nil
}

// bigEndian reads a number that is in network byte order.
func (b *binder) bigEndian(v *Value, fail func(string) error) error {
	if v.Scalar == nil || v.Scalar.isField() || v.Scalar.Size < 2 {
		return fail("numbers of 2, 4 or 8 bytes")
	}
	v.Swap = true
	v.Scalar = &Scalar{Size: v.Scalar.Size}
	v.Type = intType("u"+strconv.Itoa(8*v.Scalar.Size), uint32(v.Scalar.Size), btf.Unsigned)
	return nil
}

// sized converts to a number of so many bits: x32, u8, s16.
func (b *binder) sized(v *Value, fail func(string) error) error {
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
func (b *binder) text(v *Value, fail func(string) error) error {
	if a, ok := btf.As[*btf.Array](v.Type); ok && v.Format == "string" {
		if size, err := btf.Sizeof(a.Type); err == nil && size == 1 {
			return nil
		}
	}
	if v.Scalar == nil || v.Scalar.Size != 8 || v.Scalar.Bits != 0 && v.Scalar.Bits != 64 {
		return fail("strings, behind a pointer or in an array of bytes")
	}
	v.followText(KernelText)
	if v.Format == "ustring" {
		v.followText(UserText)
	}
	return nil
}

func (v *Value) followText(t Text) {
	v.Pointee, v.Text = intType("char", 1, btf.Signed), t
}

// readAsText takes bytes for a string, as they are compared with one.
func (v *Value) readAsText() {
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
		v.followText(KernelText)
	}
}

// networkAddress shows bytes: of a number, of a record or array of that size,
// or those that a pointer points to.
func (b *binder) networkAddress(v *Value, fail func(string) error) error {
	want := addressBytes[v.Format]
	if _, ok := btf.As[*btf.Pointer](v.Type); ok {
		v.Pointee = &btf.Array{Type: intType("unsigned char", 1, btf.Unsigned), Nelems: want}
		return nil
	}
	if size, err := btf.Sizeof(v.Type); err != nil || uint32(size) != want || v.Load != nil && v.Load.isField() {
		return fail("addresses of " + strconv.Itoa(int(want)) + " bytes, or what a pointer points to")
	}
	return nil
}

// IsText says whether the value shows as a string.
func (v *Value) IsText() bool {
	if v.Text != NoText || strings.HasSuffix(v.Format, "string") || v.Base.Builtin == Comm {
		return true
	}
	a, ok := btf.As[*btf.Array](v.Type)
	return ok && v.Format == "" && isChar(a.Type)
}
