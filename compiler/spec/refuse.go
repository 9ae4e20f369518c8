package spec

import (
	"slices"
	"strings"
)

// The bad... methods, here and in the other refuse files, return an error that says
// what is wrong with the current token, at which the parser cannot continue.

// badFunc returns the error for an unexpected token in place of the function's name.
func (p *parser) badFunc(t token) error {
	err := p.errorf(t.at, "expected a function name, not %s", t)
	switch {
	case t.kind == end && t.at.Start > 0 && strings.Contains(p.text, ":"):
		return p.errorf(t.at, "a name is missing after ':'")
	case t.kind == end:
		return p.errorf(t.at, "the spec is empty").WithHint("name a function, for example vfs_read")
	case t.kind == number:
		return p.badNumberPlace(t)
	case t.text == "&":
		return err.WithHint("a function is named by itself, without an operator")
	case t.text == "^":
		return err.WithHint(noExpressions)
	case t.is("$"), t.is("@"), t.is("(") && strings.ContainsAny(p.text, "$@"):
		return err.WithHint("ksnoop print shows values without a call, and ksnoop check --print checks them")
	case t.text == "{":
		return err.WithHint(noPrograms)
	case t.kind == punct && FunctionHabit(p.text) != "": // ./FILE
		return err.WithHint("%s", FunctionHabit(p.text))
	case t.text == "/":
		return err.WithHint(ifAfter)
	case t.kind != name:
		return err
	case t.text == "return":
		return p.errorf(t.at, "the function is missing").
			WithHint("'return' belongs in the parentheses after a function name: vfs_read(return)")
	default:
		return p.errorf(t.at, "%s has a dot too many", t)
	}
}

// secondColon returns the error for a colon after the name. The name may be meant
// to be the part after that colon.
func (p *parser) secondColon(t *Trace) error {
	colon := p.tok.at
	if err := p.first(); err != nil {
		return err
	}
	switch {
	case p.tok.kind != name:
		return p.errorf(colon, "a second ':'")
	case t.Tracepoint:
		return p.errorf(t.Func.At, "a tracepoint is named without its group").WithHint("%s", TracepointHint(p.tok.text))
	default:
		return p.errorf(colon, "a second ':'").WithHint("a spec is one function, perhaps with its module: ext4:ext4_sync_file")
	}
}

// badAfterFunc returns the error for an unexpected token after a function's name.
func (p *parser) badAfterFunc() error {
	const cure = "values belong in parentheses, vfs_read(count > 5), or after 'if': vfs_read if count > 5"
	if err := p.badCommand(); err != nil {
		return err
	}
	switch t := p.tok; {
	case t.is(")"):
		return p.unopened()
	case t.is(","):
		return p.errorf(t.at, "a spec names one function").WithHint("write one spec for each function")
	case t.kind == name && strings.EqualFold(t.text, "if"):
		return p.expected("'('").WithMeant("if")
	case t.kind == name && slices.Contains(commandHabits, p.prev.text):
		return p.expected("'('").WithHint("a function is named by itself: leave out '%s'", p.prev.text)
	case t.is("*"), t.is("?"), t.is("["):
		return p.expected("'('").WithHint("there are no blanks in a name with wildcards")
	case t.text == "/":
		return p.badSlash()
	case t.text == "{":
		return p.badBrace()
	case t.is("|"), t.is("||"):
		return p.expected("'('").WithHint(severalSpecs)
	case t.text == "=":
		return p.expected("'('").WithHint("a spec has no name of its own: leave out '%s='", p.prev.text)
	case t.is("@") && isSourceFile(p.wordAhead()):
		return p.expected("'('").WithHint(sourceLines)
	case t.text == "%", t.is("+"):
		return p.unexpected("'('").WithHint("an offset and %%return are parts of kprobe_events lines: 'p vfs_read+4'")
	case t.word("on"):
		return p.expected("'('").WithHint(keyLast)
	case t.word("by"):
		return p.expected("'('").WithHint(keyFirst)
	case t.is("$"):
		return p.expected("'('").WithHint(cure)
	case t.operator(), t.is("->"), t.is("."), t.kind == name, t.kind == number:
		return p.expected("'('").WithHint(cure)
	default:
		return p.unexpected("'('")
	}
}

// keyLast is the hint for 'on' after the first point of a span, or after what is none.
const keyLast = "'on' belongs to a span: A => B on KEY"

// badAfterList returns the error for an unexpected token after the closing parenthesis.
func (p *parser) badAfterList() error {
	t := p.tok
	err := p.errorf(t.at, "%s after the closing ')'", t)
	switch _, joins := connective(t.text); {
	case t.is(")"):
		return p.unopened()
	case joins, t.is("&&"), t.is("||"), t.kind == name && strings.EqualFold(t.text, "if"),
		slices.Contains([]string{"where", "when", "filter"}, t.text):
		return err.WithHint("a condition begins with 'if': vfs_read(count) if count > 5")
	case t.text == "unless":
		return err.WithHint("a condition begins with 'if', and '!' negates it: vfs_read(count) if !count")
	case t.is(","), t.text == ";":
		return err.WithHint("write one spec for each function, each in quotes of its own")
	case t.text == "{":
		return err.WithHint(noPrograms)
	case t.word("on"):
		return err.WithHint(keyLast)
	case t.word("by"):
		return err.WithHint(keyFirst)
	default:
		return err.WithHint("only 'if' and a condition may follow the list of values")
	}
}

func (p *parser) unopened() error {
	return p.errorf(p.tok.at, "')' without a '(' before it")
}

func (p *parser) unclosed() error {
	err := p.errorf(p.tok.at, "')' is missing")
	if p.cond {
		return err
	}
	return err.WithHint("close the list of values with ')'")
}

// expected returns the error for an unexpected token, where what names the expected one.
// It is not inlined, because many places call it, and seldom.
//
//go:noinline
func (p *parser) expected(what string) *Error {
	return p.errorf(p.tok.at, "expected %s, not %s", what, p.tok)
}

// puncts is the punctuation of the language, and the signs.
var puncts = strings.Fields("( ) [ ] , : . -> * $ @ & ~ && || - + |")

// unexpected returns the error for a token that is at the wrong place, or that the
// language does not have.
func (p *parser) unexpected(want string) *Error {
	if p.tok.kind != punct || slices.Contains(puncts, p.tok.text) {
		return p.expected(want)
	}
	err := p.errorf(p.tok.at, "%s is not part of the spec language", p.tok)
	switch p.tok.text {
	case ";":
		return err.WithHint("separate values with ',', and quote each function with its values")
	case "|":
		return err.WithMeant("||")
	case "%", "/", "^":
		return err.WithHint(theOperators)
	case "?":
		if p.prev.at.End < p.tok.at.Start {
			return err.WithHint("there is no '?:'; a condition comes after 'if', as in vfs_read(count) if count > 5")
		}
		return err.WithHint("wildcards belong in the function's name, or in a string after '~'")
	default:
		return err
	}
}
