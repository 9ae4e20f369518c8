package main

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// appendFormat appends a value that its spec gives a format, or that is no plain
// value of its type, without its type. The symbol is what is at the value if it
// is an address; "" is nothing. It returns false for values that look as their
// type says.
func appendFormat(dst []byte, v *runtime.Value, symbol func(addr uint64) string) ([]byte, bool) {
	if isString(v.Value) {
		return btfdump.AppendString(dst, v.Data), true
	}
	if v.Elem != nil {
		return appendElements(dst, v, symbol), true
	}
	switch v.Format {
	case "x", "x8", "x16", "x32", "x64":
		return appendHex(dst, unsigned(v.Data)), true
	case "d":
		return strconv.AppendInt(dst, signed(v.Data), 10), true
	case "u":
		return strconv.AppendUint(dst, unsigned(v.Data), 10), true
	case "c":
		return appendCharacter(dst, v.Data), true
	case "symbol":
		return appendAddress(dst, unsigned(v.Data), symbol), true
	case "ip4", "ip6":
		return appendIP(dst, v.Data), true
	case "mac":
		return appendMAC(dst, v.Data), true
	}
	return dst, false
}

// appendElements appends an array as C writes one: {1,2}.
func appendElements(dst []byte, v *runtime.Value, symbol func(addr uint64) string) []byte {
	dst = append(dst, '{')
	for i, e := range v.Elements() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst, _ = appendFormat(dst, &e, symbol) // all of them have a format
	}
	return append(dst, '}')
}

// isString says whether all bytes of a value are a string, whatever its type.
func isString(v *compiler.Value) bool {
	return v.Text != compiler.NoText || v.Base.Builtin == compiler.Comm || v.Format == "string"
}

// isReturn says whether a value is the one that the function returns.
func isReturn(v *compiler.Value) bool { return v.Name == "return" || v.Name == "$retval" }

// shownType is the type of the bytes that are shown.
func shownType(v *compiler.Value) btf.Type {
	if v.Pointee != nil {
		return v.Pointee
	}
	return v.Type
}

// unsigned is the number in 1, 2, 4 or 8 bytes.
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

// appendCharacter appends a number as C writes a character, or as it is if it is
// none.
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

// appendAddress appends a number in hex and what is there.
func appendAddress(dst []byte, addr uint64, symbol func(uint64) string) []byte {
	dst = appendHex(dst, addr)
	if name := symbol(addr); name != "" {
		dst = append(append(append(dst, " <"...), name...), '>')
	}
	return dst
}

// appendIP appends 4 or 16 bytes in network byte order, as they are in memory.
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

// remark is what a comment behind a value says of it; "": nothing.
func remark(v *runtime.Value) string {
	if v.Base.Builtin != compiler.Duration {
		return ""
	}
	return time.Duration(unsigned(v.Data)).String()
}
