package kprobe

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// value parses a value with its members.
func (p *parser) value() (spec.Expr, error) {
	switch c := p.text[min(p.pos, len(p.text)-1)]; {
	case p.pos == p.end, c == ')', c == ':':
		return nil, p.noValue()
	case c == '%':
		return p.register()
	case c == '$':
		return p.variable()
	case c == '@':
		return p.memoryAt()
	case c == '+', c == '-':
		return p.memory()
	case c == '\\':
		return p.immediate()
	case spec.IsDigit(c), c == '"', c == '\'':
		return nil, p.constantFirst()
	case spec.IsWord(c):
		return p.name()
	}
	return nil, p.notValue()
}

// noValue returns the error for an end where a value is expected.
func (p *parser) noValue() error {
	at, what := p.token()
	switch {
	case p.depth > 0:
		return p.errorf(at, "a value is missing after '('")
	case p.has(":"):
		return p.errorf(at, "a value is missing before ':'").WithHint("there are no blanks in an argument")
	default:
		return p.errorf(at, "expected a value, not %s", what)
	}
}

// constantFirst returns the error for a constant without a backslash.
func (p *parser) constantFirst() error {
	at, what := p.token()
	if spec.IsDigit(p.text[p.pos]) {
		return p.errorf(at, "%s is only a number", what).
			WithHint("a constant is written \\%s, what is in memory @%s", p.word(at), p.word(at))
	}
	return p.errorf(at, "a string without '\\' before it").WithHint(`write \"text"`)
}

func (p *parser) notValue() error {
	err := p.expected("a value")
	switch {
	case p.has("*"):
		return err.WithHint("what a pointer points to is written +0($arg1)")
	case p.has("("):
		return err.WithHint("an offset comes before '(': +0($arg1)")
	case p.has("&&"), p.has("||"), p.has("!"), p.has("="), p.has("<"), p.has(">"):
		return err.WithHint("a condition comes after 'if': p vfs_read count=$arg3 if count > 4096")
	case p.has(","):
		return err.WithHint("blanks separate the arguments")
	case p.has("#"):
		return err.WithHint("comments are for files")
	default:
		return err
	}
}

// register parses %NAME. It accepts any name, since the registers depend on the
// machine.
func (p *parser) register() (spec.Expr, error) {
	start := p.pos
	p.pos++
	id := p.run(spec.IsWord)
	id.At = p.from(start)
	switch kind := p.trace.Line.Kind; {
	case id.Name == "":
		return nil, p.expected("the name of a register after '%'")
	case kind == spec.Fprobe:
		return nil, p.errorf(id.At, "f has no registers").WithHint("write p, or name arguments: $arg1")
	case kind == spec.Tracepoint:
		return nil, p.errorf(id.At, "a tracepoint has no registers").WithHint("name its arguments: $arg1")
	}
	return p.members(&spec.Register{Name: id})
}

// variables lists the names after a $, for hints.
var variables = []string{"arg1", "arg*", "stack", "stack0", "retval", "comm"}

// variable parses $NAME.
func (p *parser) variable() (spec.Expr, error) {
	start := p.pos
	p.pos++
	id := p.run(spec.IsWord)
	arg, isArg := strings.CutPrefix(id.Name, "arg")
	slot, isStack := strings.CutPrefix(id.Name, "stack")
	all := id.Name == "arg" && p.accept("*")
	id.At = p.from(start)
	switch {
	case all:
		return p.everyArg(id.At)
	case isArg && strings.Trim(arg, digits) == "":
		return p.numbered(id, arg)
	case isStack && strings.Trim(slot, digits) == "":
		return p.stack(id.At, slot)
	case id.Name == "retval":
		return p.result(id)
	case strings.EqualFold(id.Name, "comm") && (id.Name == "comm" || id.Name == "COMM"):
		id.Name = "comm"
		return p.members(&spec.Builtin{Name: id})
	}
	return nil, p.badVariable(id)
}

func (p *parser) badVariable(id spec.Ident) error {
	if id.Name == "" {
		return p.errorf(id.At, "a name is missing after '$'").WithHint("there are $%s", strings.Join(variables, " $"))
	}
	err := p.errorf(id.At, "'$%s' is not known", id.Name)
	if near, ok := spec.Nearest(id.Name, slices.Values(variables)); ok {
		return err.WithMeant("$%s", near)
	}
	return err.WithHint("there are $%s", strings.Join(variables, " $"))
}

// everyArg returns the value of $arg*, which has been read.
func (p *parser) everyArg(at spec.Span) (spec.Expr, error) {
	switch {
	case p.depth > 0 || at.Start > 0 && p.text[at.Start-1] == '=':
		return nil, p.errorf(at, "'$arg*' stands for several arguments").WithHint("name one of them: $arg1")
	case p.allArgs():
		return nil, p.errorf(at, "a second '$arg*'")
	}
	return &spec.AllArgs{At: at}, p.atEntry(at)
}

// mostNumber bounds the N of $argN. BTF describes functions of far fewer
// arguments.
const mostNumber = 255

// numbered returns the value of $argN, which has been read.
func (p *parser) numbered(id spec.Ident, number string) (spec.Expr, error) {
	n, err := strconv.ParseUint(number, 10, 16)
	switch {
	case number == "":
		return nil, p.errorf(id.At, "$arg without a number").WithHint("the first argument is $arg1, all of them are $arg*")
	case strings.Trim(number, "0") == "":
		return nil, p.errorf(id.At, "arguments are counted from 1").WithHint("the first argument is $arg1")
	case err != nil || n > mostNumber:
		return nil, p.errorf(id.At, "$%s is out of range", id.Name).WithHint("arguments are $arg1 to $arg%d", mostNumber)
	}
	id.Name = "arg" + strconv.FormatUint(n, 10)
	if err := p.atEntry(id.At); err != nil {
		return nil, err
	}
	return p.members(&spec.Builtin{Name: id})
}

// atEntry refuses an argument of the function if the place is neither the entry of
// the function nor its return.
func (p *parser) atEntry(at spec.Span) error {
	if p.trace.Line.Offset == 0 {
		return nil
	}
	return p.errorf(at, "arguments are known where a function begins, not after it").
		WithHint("name the register that has the value here, or leave out '+%d'", p.trace.Line.Offset)
}

// result returns the value of $retval, which has been read.
func (p *parser) result(id spec.Ident) (spec.Expr, error) {
	switch line := p.trace.Line; {
	case line.Kind == spec.Tracepoint:
		return nil, p.errorf(id.At, "a tracepoint returns nothing")
	case !line.Return && line.Kind != spec.Fprobe:
		return nil, p.errorf(id.At, "a function has returned nothing where it begins").
			WithHint("write r instead of p, or '%%return' after the place")
	}
	return p.members(&spec.Builtin{Name: id})
}

// mostStack is the kernel's limit for the N of $stackN: the number of words in a
// stack on x86-64.
const mostStack = 2048

// stack returns the value of $stack or $stackN, which has been read.
func (p *parser) stack(at spec.Span, number string) (spec.Expr, error) {
	n, err := strconv.ParseUint(number, 10, 16)
	switch {
	case p.trace.Tracepoint:
		return nil, p.errorf(at, "a tracepoint has no stack of its own").WithHint("name its arguments: $arg1")
	case number == "":
		return p.members(&spec.StackPointer{At: at})
	case err != nil || n > mostStack:
		return nil, p.errorf(at, "%s is out of range", p.word(at)).WithHint("the words of the stack are $stack0 to $stack%d", mostStack)
	}
	return p.members(&spec.StackSlot{N: n, At: at})
}
