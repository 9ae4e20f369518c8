package spec

// Trace is one parsed spec, or one kprobe_events line: a function and what to
// record of its calls.
type Trace struct {
	Text       string  // the source text, for error messages
	From       Source  // where Text is from
	Probe      *Probe  // of a kprobe_events line; nil: a spec
	Tracepoint bool    // tp:NAME: Func is a tracepoint
	Module     Ident   // MODULE: before the function; no name: not given
	Func       Ident   // the function, or a glob that means many
	Items      []*Item // nil without a list: every argument and the return value
	Cond       Cond    // behind "if"; nil: none
}

// Source is a line of a file; without a line it is none.
type Source struct {
	File string
	Line int // counted from 1
}

// Item is a value to record, or to test, with an optional format and an
// optional predicate on it. Name and Type are of kprobe_events lines, which
// have no formats.
type Item struct {
	Name   Ident // NAME=; no name: see [Trace.ItemNames]
	Value  Expr
	Format Ident      // one of [Formats]; no name: as its type says
	Type   *FetchType // nil: as its type says
	Pred   *Predicate
}

// Expr is a value of the traced call. It is an [*Arg], [*Return], [*Builtin],
// [*Global], [*Member], [*Index], [*Deref] or [*Cast]; in a kprobe_events line
// it is an [*Arg], [*Builtin], [*Member], [*Register], [*StackPointer],
// [*StackSlot], [*Memory], [*Immediate], [*Old] or [*AllArgs], in its condition
// a [*Field].
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

// Builtin is $Name: something known at every call. [Builtins] lists them.
type Builtin struct {
	Name Ident // without the $; At is with it
}

// Global is @Name: a variable of the kernel.
type Global struct {
	Name Ident // without the @; At is with it
}

// Member is X->Name: a member of the record that X points to; or, with Dot,
// X.Name: a member of the record X.
type Member struct {
	X    Expr
	Dot  bool
	Name Ident
}

// Index is X[N]: an element of the array X, or behind the pointer X.
type Index struct {
	X  Expr
	N  uint64
	At Span // of the brackets
}

// Deref is *X: what X points to.
type Deref struct {
	X  Expr
	At Span // of the star
}

// Cast is (Type)X.
type Cast struct {
	Type TypeName
	X    Expr
	At   Span // of the parentheses
}

// TypeName is a type as C writes it: "struct sock *", "u32", "unsigned long".
type TypeName struct {
	Name  string // without stars, one blank between words, no qualifiers
	Stars int
	At    Span
}

// Cond is a condition: an [*And], [*Or], [*Not], or an [*Item], which without
// a predicate holds if the value is not zero.
type Cond interface {
	Span() Span
	String() string
}

// And holds if both conditions do.
type And struct{ X, Y Cond }

// Or holds if one of the conditions does.
type Or struct{ X, Y Cond }

// Not holds if X does not.
type Not struct {
	X  Cond
	At Span // of the !
}

// Predicate compares an item's value with a constant.
type Predicate struct {
	Op    Op
	OpAt  Span
	Const Constant // [IsErr] has none
}

// Ident is a name in the source text.
type Ident struct {
	Name string
	At   Span
}

// ConstantKind is what a constant was written as.
type ConstantKind uint8

// The kinds of constants.
const (
	Integer  ConstantKind = iota // 10, -1, 0xff, 'c'
	Name                         // an enumerator, an error number, NULL, true, false; may be negative
	String                       // "eth0"
	Duration                     // 10ms
	CPUs                         // CPUS{0-3,8}, in kprobe_events lines
)

// Constant is what a value is compared with. A number is one from -2^63 to
// 2^64-1, as sign and magnitude.
type Constant struct {
	Kind ConstantKind
	Text string // as written
	Neg  bool
	Abs  uint64 // of an integer; of a duration in nanoseconds
	Str  string // the name, or what the string means
	CPUs []CPURange
	At   Span
}

// CPURange is the processors from First to Last, both of them included.
type CPURange struct{ First, Last int }

// Span is a range of bytes [Start, End) of the source text.
type Span struct {
	Start, End int
}

// Op is what a predicate does with a value and its constant.
type Op uint8

// The operators. The comparisons are as in C.
const (
	Eq Op = iota + 1
	Ne
	Lt
	Le
	Gt
	Ge
	Mask  // &: they have a bit in common
	Glob  // ~: the string matches the pattern, where * ? [a-z] [!a-z] are as in a shell
	IsErr // is-err: the pointer is an error number, as IS_ERR has it
)

// Formats lists the formats that may stand behind a value.
var Formats = []string{
	"x", "d", "u", "c", "string", "ustring", "symbol", "ip4", "ip6", "mac", "be",
	"x8", "x16", "x32", "x64", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64",
}

// Builtins lists the names behind a $; arg stands for arg1, arg2 and so on.
var Builtins = []string{
	"comm", "pid", "tid", "cpu", "uid", "cgroup", "arg", "retval", "duration", "kstack",
}
