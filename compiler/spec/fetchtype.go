package spec

import (
	"fmt"
	"strconv"
	"strings"
)

// FetchTypes lists the types that may stand behind an argument of a
// kprobe_events line, but for bitfields.
var FetchTypes = []string{
	"u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "x8", "x16", "x32", "x64",
	"char", "string", "ustring", "symbol", "symstr", "%pd", "%pD",
}

// FetchType is the type of an argument of a kprobe_events line. Without one it
// is that of BTF, or else x64.
type FetchType struct {
	Name  string // one of [FetchTypes]; "" of a bitfield
	Field Bitfield
	Count int // of the elements of an array, TYPE[Count]; 0: it is none
	At    Span
}

// Bitfield is bWidth@Offset/Container: so many bits of a number of so many
// bits, counted from the least significant.
type Bitfield struct {
	Width, Offset, Container int
}

// String returns t in canonical form: "u8[4]", "b4@0/8".
func (t *FetchType) String() string {
	text := t.Name
	if f := t.Field; text == "" {
		text = fmt.Sprintf("b%d@%d/%d", f.Width, f.Offset, f.Container)
	}
	if t.Count > 0 {
		text += "[" + strconv.Itoa(t.Count) + "]"
	}
	return text
}

// IsText reports whether values of the type, or the elements of an array, show
// as strings.
func (t *FetchType) IsText() bool {
	return strings.HasSuffix(t.Name, "str") || strings.HasSuffix(t.Name, "string") || strings.HasPrefix(t.Name, "%")
}

// Bits returns the width and the sign of a number of the type; 0 if it is none.
func (t *FetchType) Bits() (width int, signed bool) {
	switch t.Name {
	case "":
		return t.Field.Width, false
	case "char":
		return 8, false
	case "symbol":
		return 64, false
	}
	width, err := strconv.Atoi(t.Name[1:])
	if err != nil {
		return 0, false
	}
	return width, t.Name[0] == 's'
}
