package render

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// appendFormat appends a value to which its spec gives a format, or that is not a
// plain value of its type, without its type. n has the names of addresses and
// containers. appendFormat returns false for values that are printed by their type.
func appendFormat(dst []byte, v *runtime.Value, n *names) ([]byte, bool) {
	if isString(v.Value) {
		return btfdump.AppendString(dst, v.Data), true
	}
	if v.Elem != nil {
		return appendElements(dst, v, n), true
	}
	switch v.Format {
	case "x", "x8", "x16", "x32", "x64":
		return appendHex(dst, v.Uint64()), true
	case "d":
		return strconv.AppendInt(dst, v.Int64(), 10), true
	case "u":
		return strconv.AppendUint(dst, v.Uint64(), 10), true
	case "c":
		return appendCharacter(dst, v.Data), true
	case "errno":
		return appendErrno(dst, v), true
	case "symbol":
		return appendAddress(dst, v.Uint64(), n), true
	case compiler.ContainerFormat:
		return btfdump.AppendString(dst, []byte(n.container(v.Uint64()).String())), true
	case "ip4", "ip6":
		return appendIP(dst, v.Data), true
	case "mac":
		return appendMAC(dst, v.Data), true
	}
	return dst, false
}

// appendElements appends an array as in C: {1,2}.
func appendElements(dst []byte, v *runtime.Value, n *names) []byte {
	dst = append(dst, '{')
	for i, e := range v.Elements() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst, _ = appendFormat(dst, &e, n) // all elements have a format
	}
	return append(dst, '}')
}

// isString reports whether a value is a string as a whole, whatever its type.
func isString(v *compiler.Value) bool {
	return v.Text != compiler.NoText || v.Base.Builtin == compiler.Comm || v.Format == "string"
}

// isReturn reports whether a value is the function's return value.
func isReturn(v *compiler.Value) bool { return v.Name == "return" || v.Name == "$retval" }

// unsigned returns the unsigned number in 1, 2, 4 or 8 bytes.
func unsigned(data []byte) uint64 {
	var word [8]byte
	copy(word[:], data)
	return binary.LittleEndian.Uint64(word[:])
}

func signed(data []byte) int64 {
	shift := 64 - 8*min(len(data), 8)
	return int64(unsigned(data)<<shift) >> shift
}

func appendHex(dst []byte, n uint64) []byte {
	return strconv.AppendUint(append(dst, "0x"...), n, 16)
}

// appendCharacter appends a number as a C character literal, or as a number if it
// is not a character.
func appendCharacter(dst, data []byte) []byte {
	n := unsigned(data)
	switch {
	case n > 0xff:
		return strconv.AppendInt(dst, signed(data), 10)
	case n == 0:
		return append(dst, `'\0'`...)
	case n == '\'':
		return append(dst, `'\''`...)
	case n == '"':
		return append(dst, `'"'`...)
	}
	start := len(dst)
	dst = btfdump.AppendString(dst, []byte{byte(n)})
	dst[start], dst[len(dst)-1] = '\'', '\''
	return dst
}

// appendAddress appends a number in hex and the symbol at this address.
func appendAddress(dst []byte, addr uint64, n *names) []byte {
	dst = appendHex(dst, addr)
	if name := n.symbols.at(addr); name != "" {
		dst = append(append(append(dst, " <"...), name...), '>')
	}
	return dst
}

// appendIP appends an IP address of 4 or 16 bytes in network byte order.
func appendIP(dst, data []byte) []byte {
	addr, ok := netip.AddrFromSlice(data)
	if !ok {
		return fmt.Appendf(dst, "%#x", data)
	}
	return addr.AppendTo(dst)
}

func appendMAC(dst, data []byte) []byte {
	const digits = "0123456789abcdef"
	for i, b := range data {
		if i > 0 {
			dst = append(dst, ':')
		}
		dst = append(dst, digits[b>>4], digits[b&15])
	}
	return dst
}

// appendErrno appends the name of an error, with its sign, or a number that is none.
func appendErrno(dst []byte, v *runtime.Value) []byte {
	if name := compiler.ErrnoName(v.Uint64()); name != "" {
		return append(dst, name...)
	}
	if name := compiler.ErrnoName(uint64(-v.Int64())); name != "" {
		return append(append(dst, '-'), name...)
	}
	if v.Scalar != nil && v.Scalar.Signed {
		return strconv.AppendInt(dst, v.Int64(), 10)
	}
	return strconv.AppendUint(dst, v.Uint64(), 10)
}

// remark returns the text of the comment after a value, or "". A duration gets its units,
// unless a cast or a format has made another number of it. A return value that is a
// negative error number gets the name of the error.
func remark(v *runtime.Value) string {
	switch s := v.Scalar; {
	case v.Base.Builtin == compiler.Duration && !v.Swap && len(v.Casts) == 0:
		return time.Duration(v.Uint64()).String()
	case isReturn(v.Value) && v.Format == "" && s != nil && s.Signed && s.Width() >= 32 && v.Pointee == nil && v.Int64() < 0:
		if name := compiler.ErrnoName(uint64(-v.Int64())); name != "" {
			return "-" + name
		}
	}
	return ""
}
