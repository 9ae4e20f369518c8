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

// appendValue appends a value that its spec gives a format, or that is no plain
// value of its type. The symbol is what is at the value if it is an address; ""
// is nothing. It returns false for values that look as their type says.
func appendValue(dst []byte, v *runtime.Value, symbol func(addr uint64) string) ([]byte, bool) {
	if v.Text != compiler.NoText {
		return btfdump.AppendString(append(dst, "(char *)"...), v.Data), true
	}
	show := func(text string) ([]byte, bool) {
		return fmt.Appendf(dst, "(%s)%s", btfdump.TypeName(shownType(v.Value)), text), true
	}
	switch v.Format {
	case "x", "x8", "x16", "x32", "x64":
		return show(fmt.Sprintf("%#x", unsigned(v.Data)))
	case "d":
		return show(strconv.FormatInt(signed(v.Data), 10))
	case "u":
		return show(strconv.FormatUint(unsigned(v.Data), 10))
	case "c":
		return show(character(v.Data))
	case "symbol":
		return show(address(unsigned(v.Data), symbol))
	case "ip4", "ip6":
		return show(ipAddress(v.Data))
	case "mac":
		return show(macAddress(v.Data))
	}
	if v.Base.Builtin == compiler.Comm || v.Format == "string" {
		return show(string(btfdump.AppendString(nil, v.Data)))
	}
	return dst, false
}

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

// character is a number as C writes a character, or as it is if it is none.
func character(data []byte) string {
	n := unsigned(data)
	switch {
	case n > 0xff:
		return strconv.FormatInt(signed(data), 10)
	case n == 0:
		return `'\0'`
	case n == '\'':
		return `'\''`
	case n == '"':
		return `'"'`
	}
	quoted := btfdump.AppendString(nil, []byte{byte(n)})
	return "'" + string(quoted[1:len(quoted)-1]) + "'"
}

// address is a number in hex and what is there.
func address(addr uint64, symbol func(uint64) string) string {
	if name := symbol(addr); name != "" {
		return fmt.Sprintf("%#x <%s>", addr, name)
	}
	return fmt.Sprintf("%#x", addr)
}

// ipAddress is 4 or 16 bytes in network byte order, as they are in memory.
func ipAddress(data []byte) string {
	addr, ok := netip.AddrFromSlice(data)
	if !ok {
		return fmt.Sprintf("%#x", data)
	}
	return addr.String()
}

// remark is what a comment behind a value says of it; "": nothing.
func remark(v *runtime.Value) string {
	if v.Base.Builtin != compiler.Duration {
		return ""
	}
	return time.Duration(unsigned(v.Data)).String()
}

func macAddress(data []byte) string {
	text := ""
	for i, b := range data {
		if i > 0 {
			text += ":"
		}
		text += fmt.Sprintf("%02x", b)
	}
	return text
}
