package spec

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// This file has the values that only kprobe_events lines have.

// Register is %Name: a register with its name in struct pt_regs.
type Register struct {
	Name Ident // without the %, but At includes it
}

// StackPointer is $stack: the stack pointer when the probe is hit.
type StackPointer struct {
	At Span
}

// StackSlot is $stackN: the Nth word of the stack.
type StackSlot struct {
	N  uint64
	At Span
}

// ReturnAddress is the return address of a function, which the language of 2009
// called ra. Today's language has no such value.
type ReturnAddress struct {
	At Span
}

// Old is a name that the language of 2009 had: a0, s0, sa, rv, ra. It is the
// argument of the function with this name, or if there is none, what the name
// meant in 2009.
type Old struct {
	Name Ident
	Was  Expr
}

// AllArgs is $arg*: all arguments of the function, see [Trace.Expand].
type AllArgs struct {
	At Span
}

// Memory is +Off(X): the value in memory at X+Off. Its size is that of the item's
// type, or a word if another Memory reads through it. With User it is +uOff(X), and
// the memory is that of the process. For @SYMBOL, X is an [*Address] and Off is 0.
type Memory struct {
	X    Expr
	Off  int64
	User bool
	At   Span
}

// Address is an address in the kernel: that of Symbol plus an offset in bytes, or N
// if there is no symbol.
type Address struct {
	Symbol Ident
	Off    int64
	N      uint64
	At     Span
}

// Immediate is \CONSTANT. The constant is an Integer or a String.
type Immediate struct {
	Const Constant // without the \, but At includes it
}

// Field is a name in the filter of a line: one of its arguments, or a field that
// all events have.
type Field struct {
	Name Ident
	// Of is the item that Name refers to: an item of the trace, or a new one with
	// a builtin. It is nil until [Trace.Expand] is called if Name may be one of
	// the arguments that replace $arg*.
	Of *Item
	// As is "function" for NAME.function, which looks at the function that contains
	// the address, or "ustring" for NAME.ustring, which looks at the string in user
	// memory at the address.
	As Ident
}

// Span returns the place of the name and the %.
func (r *Register) Span() Span { return r.Name.At }

// Span returns the place of the word.
func (s *StackPointer) Span() Span { return s.At }

// Span returns the place of the word.
func (s *StackSlot) Span() Span { return s.At }

// Span returns the place of the word.
func (r *ReturnAddress) Span() Span { return r.At }

// Span returns the place of the name.
func (o *Old) Span() Span { return o.Name.At }

// Span returns the place of the word.
func (a *AllArgs) Span() Span { return a.At }

// Span returns the place of the offset, the value and the parentheses.
func (m *Memory) Span() Span { return m.At }

// Span returns the place of the symbol or number.
func (a *Address) Span() Span { return a.At }

// Span returns the place of the constant with the backslash.
func (i *Immediate) Span() Span { return i.Const.At }

// Span returns the place of the name and its suffix.
func (f *Field) Span() Span { return Span{f.Name.At.Start, max(f.Name.At.End, f.As.At.End)} }

// String returns "%" and the name.
func (r *Register) String() string { return "%" + r.Name.Name }

// String returns "$stack".
func (s *StackPointer) String() string { return "$stack" }

// String returns "$stack" and the number.
func (s *StackSlot) String() string { return "$stack" + strconv.FormatUint(s.N, 10) }

// String returns "ra".
func (r *ReturnAddress) String() string { return "ra" }

// String returns the name.
func (o *Old) String() string { return o.Name.Name }

// String returns "$arg*".
func (a *AllArgs) String() string { return "$arg*" }

// String returns m in canonical form: "+u16(%si)", "@jiffies".
func (m *Memory) String() string {
	if a, ok := m.X.(*Address); ok {
		return "@" + a.String()
	}
	sign, digits := "+", strconv.FormatInt(m.Off, 10)
	if m.Off < 0 {
		sign, digits = "-", digits[1:]
	}
	if m.User {
		sign += "u"
	}
	return sign + digits + "(" + m.X.String() + ")"
}

// String returns a in canonical form: "init_task+8", "0xffffffff81000000".
func (a *Address) String() string {
	switch {
	case a.Symbol.Name == "":
		return hex(a.N)
	case a.Off > 0:
		return a.Symbol.Name + "+" + strconv.FormatInt(a.Off, 10)
	case a.Off < 0:
		return a.Symbol.Name + strconv.FormatInt(a.Off, 10)
	default:
		return a.Symbol.Name
	}
}

// String returns i in canonical form: `\-5`, `\"text"`. The string has no escapes.
func (i *Immediate) String() string {
	if i.Const.Kind == String {
		return `\"` + i.Const.Str + `"`
	}
	return `\` + i.Const.String()
}

// String returns f in canonical form: "ip.function".
func (f *Field) String() string {
	if f.As.Name == "" {
		return f.Name.Name
	}
	return f.Name.Name + "." + f.As.Name
}

// FetchesText reports whether a value of a kprobe_events line is a string whatever
// its type is.
func FetchesText(x Expr) bool {
	switch x := x.(type) {
	case *Builtin:
		return x.Name.Name == "comm"
	case *Immediate:
		return x.Const.Kind == String
	}
	return false
}

// FetchTypes lists the types that an argument of a kprobe_events line may have,
// except bitfields.
var FetchTypes = []string{
	"u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "x8", "x16", "x32", "x64",
	"char", "string", "ustring", "symbol", "symstr", "%pd", "%pD",
}

// FetchType is the type of an argument of a kprobe_events line. An argument without
// one has the type that BTF has for it, or x64 if BTF has none.
type FetchType struct {
	Name  string // one of [FetchTypes], or "" for a bitfield
	Field Bitfield
	Count int // number of elements of an array, TYPE[Count]; 0 if it is not an array
	At    Span
}

// Bitfield is bWidth@Offset/Container: Width bits of a number of Container bits.
// Offset counts from the least significant bit.
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

// IsText reports whether values of the type, or the elements of an array, are
// printed as strings.
func (t *FetchType) IsText() bool {
	return strings.HasSuffix(t.Name, "str") || strings.HasSuffix(t.Name, "string") || strings.HasPrefix(t.Name, "%")
}

// Bits returns the width of a number of the type and whether it is signed. The
// width is 0 if the type is not a number.
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

// EventFields has the fields that every event has in addition to the arguments of
// its kprobe_events line, with the equivalent builtins. The kernel's common_pid is
// the ID of a thread.
var EventFields = map[string]string{
	"common_pid": "tid", "common_cpu": "cpu", "cpu": "cpu", "CPU": "cpu", "comm": "comm", "COMM": "comm",
}

// NoField returns the error for a name in the filter of a kprobe_events line that
// is not one of its fields.
func (t *Trace) NoField(name Ident) *Error {
	err := t.Errorf(name.At, "the event has no field %s", Quote(name.Name))
	names := t.ItemNames()
	names = append(names, slices.Sorted(maps.Keys(EventFields))...)
	if near, ok := Nearest(name.Name, slices.Values(names)); ok {
		return err.WithMeant("%s", near)
	}
	return err.WithHint("it has %s", strings.Join(names, " "))
}

// FieldItem returns the item that a name in the filter of a kprobe_events line
// refers to, or nil. An argument hides a field that all events have.
func (t *Trace) FieldItem(name Ident) *Item {
	if i := slices.Index(t.ItemNames(), name.Name); i >= 0 {
		return t.Items[i]
	}
	if is, ok := EventFields[name.Name]; ok {
		return &Item{Value: &Builtin{Ident{is, name.At}}}
	}
	if name.Name == "__probe_ret_ip" && t.Line.Return {
		return &Item{Value: &ReturnAddress{name.At}}
	}
	return nil
}
