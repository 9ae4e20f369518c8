package spec

import "strconv"

// The values here are those that only kprobe_events lines have.

// Register is %Name: a register, by its name in struct pt_regs.
type Register struct {
	Name Ident // without the %; At is with it
}

// StackPointer is $stack: where the stack is when the probe is hit.
type StackPointer struct {
	At Span
}

// StackSlot is $stackN: the Nth word of the stack.
type StackSlot struct {
	N  uint64
	At Span
}

// ReturnAddress is where a function returns to. No line of today has it as a
// value; it is what ra meant in 2009.
type ReturnAddress struct {
	At Span
}

// Old is a name that the language of 2009 had: a0, s0, sa, rv, ra. It is the
// argument of the function with this name, or if there is none, what it was
// then.
type Old struct {
	Name Ident
	Was  Expr
}

// AllArgs is $arg*: all arguments of the function, see [Trace.Expand].
type AllArgs struct {
	At Span
}

// Memory is +Off(X): what is in memory at X+Off, as much of it as the item's
// type takes, or a word if X is followed further. With User, +uOff(X), it is
// the memory of the process. As @SYMBOL, X is an [*Address] and Off is 0.
type Memory struct {
	X    Expr
	Off  int64
	User bool
	At   Span
}

// Address is an address in the kernel: of Symbol and so many bytes from it, or
// N if there is no symbol.
type Address struct {
	Symbol Ident
	Off    int64
	N      uint64
	At     Span
}

// Immediate is \CONSTANT: a number, which is an Integer, or a String.
type Immediate struct {
	Const Constant // without the \; At is with it
}

// Field is a name in the filter of a line: one of its arguments, or something
// that all events have.
type Field struct {
	Name Ident
	// Of is what it names: an item of the trace, or one of its own with a
	// builtin. It is nil until [Trace.Expand] if $arg* may stand for it.
	Of *Item
	// As is "function" for NAME.function, of which it is asked which function
	// the address is in, or "ustring" for NAME.ustring, the string in user
	// memory that it points to.
	As Ident
}

// Span returns the place of the name with the %.
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

// Span returns the place of the name and what it is taken as.
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

// String returns i in canonical form: `\-5`, `\"text"`. There are no escapes
// in the string.
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

// FetchesText says whether a value of a kprobe_events line is a string by itself,
// whatever its type.
func FetchesText(x Expr) bool {
	switch x := x.(type) {
	case *Builtin:
		return x.Name.Name == "comm"
	case *Immediate:
		return x.Const.Kind == String
	}
	return false
}
