package spec

// Trace is a parsed spec or kprobe_events line: a function and the values to record
// at its calls.
type Trace struct {
	Text       string  // the source text, for error messages
	From       Source  // the line that Text is from
	Line       *Line   // the rest of a kprobe_events line; nil for a spec
	Tracepoint bool    // as in tp:NAME; Func is a tracepoint
	Iterator   bool    // as in iter:NAME; Func is an iterator
	Module     Ident   // as in MODULE:FUNC; no name if not given
	Func       Ident   // the function, or a glob that matches several
	Items      []*Item // nil if there is no list: every argument and the return value; empty: only the call
	Cond       Cond    // the condition after "if", or nil
	Values     bool    // no function, but Items that are read without a call, see [ParseValues]
	Ending     *Trace  // where a span ends that begins at Func; nil if t is not a span
	Key        Expr    // for both traces of a span: what tells which end belongs to which beginning
	Watch      bool    // whether the items are memory to watch, see [ParseWatch]
}

// Source is a line of a file. If Line is 0, there is no file.
type Source struct {
	File string
	Line int // counted from 1
}

// Item is a value to record or to compare, with an optional format and an optional
// predicate. Only items of kprobe_events lines have Name and Type; they have no
// Format.
type Item struct {
	Name   Ident // as in NAME=VALUE; may be empty, see [Trace.ItemNames]
	Value  Expr
	Format Ident      // one of [Formats]; if empty, the type of the value decides
	Type   *FetchType // if nil, the type of the value decides
	Pred   *Predicate
}

// Expr is a value of the traced call. It is an [*Arg], [*Return], [*Builtin],
// [*Global], [*Member], [*Index], [*Range], [*Deref], [*Cast], [*Binary], [*Number],
// [*After] or, as a whole item, [*Diff] or [*Aggregate]. In a kprobe_events line it is
// an [*Arg], [*Builtin], [*Member], [*Register], [*StackPointer], [*StackSlot],
// [*Memory], [*Immediate], [*Old], [*AllArgs] or [*ReturnAddress], and in its condition
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

// Builtin is $Name: a value that is known at every call. [Builtins] lists the names.
type Builtin struct {
	Name Ident // without the $, but At includes it
}

// Global is @Name: a variable of the kernel.
type Global struct {
	Name Ident // without the @, but At includes it
}

// Member is X->Name, a member of the structure that X points to. With Dot it is X.Name,
// a member of the structure X.
type Member struct {
	X    Expr
	Dot  bool
	Name Ident
}

// Index is X[N]: an element of the array X, or of the array that X points to.
type Index struct {
	X  Expr
	N  uint64
	At Span // of the brackets
}

// Deref is *X: the value that X points to.
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
	Count uint64 // as in (u64[3]): the elements of an array of them, or 0
	At    Span
}

// Cond is a condition: an [*And], [*Or], [*Not] or [*Item]. An item without a
// predicate holds if its value is not zero.
type Cond interface {
	Span() Span
	String() string
}

// And holds if both conditions do.
type And struct{ X, Y Cond }

// Or holds if one of the conditions does.
type Or struct{ X, Y Cond }

// Not holds if X does not hold.
type Not struct {
	X  Cond
	At Span // of the !
}

// Predicate compares an item's value with a constant, or with another value.
type Predicate struct {
	Op    Op
	OpAt  Span
	Const Constant // not used by [IsErr]
	// With is the value to compare with, or nil if that is Const. If Const is a
	// Name without a sign, it may be that of an argument.
	With Expr
}

// Ident is a name in the source text.
type Ident struct {
	Name string
	At   Span
}

// ConstantKind is the form in which a constant is written.
type ConstantKind uint8

// The kinds of constants.
const (
	Integer  ConstantKind = iota // 10, -1, 0xff, 'c'
	Name                         // an enumerator, an error number, NULL, true, false; may be negative
	String                       // "eth0"
	Duration                     // 10ms
	CPUs                         // CPUS{0-3,8}, in kprobe_events lines
)

// Constant is a constant that a value is compared with. Numbers are from -2^63 to
// 2^64-1 and stored as sign and magnitude.
type Constant struct {
	Kind ConstantKind
	Text string // as written
	Neg  bool
	Abs  uint64 // magnitude of an integer, or of a duration in nanoseconds
	Str  string // the name, or the string without quotes and escapes
	CPUs []CPURange
	At   Span
}

// CPURange is the range of processors from First to Last, inclusive.
type CPURange struct{ First, Last int }

// Span is a range of bytes [Start, End) of the source text.
type Span struct {
	Start, End int
}

// Op is the operator of a predicate.
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

// Holds reports whether a comparison is true for two values. Order is the result of
// [cmp.Compare] for them.
func (op Op) Holds(order int) bool {
	switch op {
	case Eq:
		return order == 0
	case Ne:
		return order != 0
	case Lt:
		return order < 0
	case Le:
		return order <= 0
	case Gt:
		return order > 0
	default:
		return order >= 0
	}
}

// Formats lists the formats of values.
var Formats = []string{
	"x", "d", "u", "c", "string", "ustring", "symbol", "path", "ip", "ip4", "ip6", "mac", "errno", "be",
	"x8", "x16", "x32", "x64", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64",
}

// Builtins lists the names that may follow a $. The name arg stands for arg1, arg2
// and so on.
var Builtins = []string{
	"comm", "pid", "tid", "cpu", "uid", "cgroup", "container", "arg", "retval", "duration", "kstack", "ustack", "task", "ppid",
}

// AllItems returns the items of the list and of the condition, and one for the key of
// a span. Those of its ending are not among them.
func (t *Trace) AllItems() []*Item {
	items := append([]*Item(nil), t.Items...)
	if t.Key != nil {
		items = append(items, &Item{Value: t.Key})
	}
	return appendItems(items, t.Cond)
}

func appendItems(items []*Item, c Cond) []*Item {
	switch c := c.(type) {
	case *And:
		return appendItems(appendItems(items, c.X), c.Y)
	case *Or:
		return appendItems(appendItems(items, c.X), c.Y)
	case *Not:
		return appendItems(items, c.X)
	case *Item:
		return append(items, c)
	}
	return items
}

// Walk calls visit for x and for each value that x is made of, from the outermost
// inwards.
func Walk(x Expr, visit func(Expr)) {
	visit(x)
	switch x := x.(type) {
	case *Member:
		Walk(x.X, visit)
	case *Index:
		Walk(x.X, visit)
	case *Range:
		Walk(x.X, visit)
	case *Deref:
		Walk(x.X, visit)
	case *Cast:
		Walk(x.X, visit)
	case *Memory:
		Walk(x.X, visit)
	case *After:
		Walk(x.X, visit)
	case *Diff:
		Walk(x.X, visit)
	case *Binary:
		Walk(x.X, visit)
		Walk(x.Y, visit)
	case *Aggregate:
		if x.X != nil {
			Walk(x.X, visit)
		}
	}
}

// Walk calls visit for the values of an item: its own, what they are made of, and
// the one that it is compared with. A constant that may be an argument is not among
// them.
func (i *Item) Walk(visit func(Expr)) {
	Walk(i.Value, visit)
	if i.Pred != nil && i.Pred.With != nil {
		Walk(i.Pred.With, visit)
	}
}
