package spec

// Trace is one parsed spec: a function and what to record of its calls.
type Trace struct {
	Text  string  // the source text, for error messages
	Func  Ident   // the function
	Items []*Item // nil without a list: every argument and the return value
}

// Item is a value to record, with an optional predicate on it.
type Item struct {
	Value Expr
	Pred  *Predicate
}

// Expr is a value of the traced call. It is an [*Arg], a [*Return] or a
// [*Member].
type Expr interface {
	Span() Span
	String() string
}

// Arg is a named argument of the function.
type Arg struct {
	Name Ident
}

// Return is the return value of the function.
type Return struct {
	At Span
}

// Member is X->Name: a member of the record that X points to.
type Member struct {
	X    Expr
	Name Ident
}

// Predicate compares an item's value with a constant.
type Predicate struct {
	Op    Op
	OpAt  Span
	Const Constant
}

// Ident is a name in the source text.
type Ident struct {
	Name string
	At   Span
}

// Constant is an integer from -2^63 to 2^64-1, as sign and magnitude.
type Constant struct {
	Text string // as written
	Neg  bool
	Abs  uint64
	At   Span
}

// Span is a range of bytes [Start, End) of the source text.
type Span struct {
	Start, End int
}

// Op is a comparison operator.
type Op uint8

// The comparison operators, as in C.
const (
	Eq Op = iota + 1
	Ne
	Lt
	Le
	Gt
	Ge
)
