package spec

import (
	"slices"
	"strings"
)

// badValue returns the error for an unexpected token where a value is expected.
func (p *parser) badValue() error {
	if hint := p.listHabit(); hint != "" {
		return p.expected("a value").WithHint("%s", hint)
	}
	switch t := p.tok; {
	case t.kind == end, t.is(","), t.is(")"), t.is("&&"), t.is("||"), t.word("if"):
		return p.noValue()
	case p.assigns():
		return p.expected("a value").WithHint(noAssignments)
	case t.kind == compare && slices.Contains(ops[:], t.text), t.is("&"), t.is("~"):
		return p.operatorFirst()
	case t.kind == number, t.kind == quoted:
		return p.constantFirst()
	case t.kind == name:
		return p.typeFirst()
	case t.not() && p.cond:
		return p.expected("a value").WithHint("'!' comes before a condition: !(a == 5)")
	case t.not() && p.of.Values:
		return p.expected("a value").WithHint("leave out the '!'")
	case t.not():
		return p.expected("a value").WithHint("conditions come after 'if': vfs_read(count) if !count")
	case t.is("-"), t.is("+"):
		return p.expected("a value").WithHint(noSign)
	default:
		return p.unexpected("a value")
	}
}

// noValue returns the error for an end or a separator where a value is expected.
func (p *parser) noValue() error {
	t := p.tok
	switch {
	case p.cond && p.prev.is("*"):
		return p.errorf(t.at, "a value is missing after '*'")
	case p.cond:
		return p.errorf(t.at, "a condition is missing after %s", p.prev)
	case t.kind == end && p.bare && p.prev.kind == end:
		return p.errorf(t.at, "a value is missing")
	case t.kind == end && p.bare:
		return p.errorf(t.at, "a value is missing after %s", p.prev)
	case t.kind == end:
		return p.unclosed()
	case p.prev.kind != end && !p.prev.is(",") && (!p.prev.is("(") || p.depth > 0):
		return p.errorf(t.at, "a value is missing after %s", p.prev)
	case t.is(","):
		return p.errorf(t.at, "a value is missing before ','").WithHint("leave out the ','")
	case t.is(")"):
		return p.errorf(t.at, "a value is missing before ')'").WithHint("leave out the ',' before it")
	default:
		return p.errorf(t.at, "a value is missing before %s", t)
	}
}

// operatorFirst returns the error for an operator without a value before it.
func (p *parser) operatorFirst() error {
	err := p.errorf(p.tok.at, "a value is missing before %s", p.tok)
	switch {
	case p.tok.is("&"):
		return err.WithHint("the address of something is not a value")
	case p.tok.is("~"):
		return err.WithHint("'~' compares a string with a pattern; the inverted bits of a value are -1 - count")
	case p.cond && p.last != nil && (p.prev.is("&&") || p.prev.is("||")):
		return err.WithHint("repeat the value: %s %s %s %s ...", p.last, p.prev.text, p.last.Value, p.tok.text)
	default:
		return err
	}
}

// constantFirst returns the error for a constant where a value is expected.
func (p *parser) constantFirst() error {
	err := p.expected("a value")
	if p.of.Values {
		return err.WithHint("an address with a cast is one: *(struct file *)0xffff888012345600")
	}
	if last := p.last; p.cond && last != nil && last.Pred != nil && (p.prev.is("&&") || p.prev.is("||")) {
		return err.WithHint("repeat the value: %s %s %s %s %s", last, p.prev.text, last.Value, last.Pred.Op, p.tok.text)
	}
	return err.WithHint("a constant comes after an operator: count > 5")
}

// typeFirst returns the error for a keyword of C where a value is expected.
func (p *parser) typeFirst() error {
	return p.errorf(p.tok.at, "%s begins a type", p.tok).
		WithHint("an argument is named without its type; a cast has parentheses: (struct sock *)sk")
}

// badInner returns the error for an unexpected token after a value in parentheses.
func (p *parser) badInner() error {
	switch t := p.tok; {
	case t.kind == end:
		return p.errorf(t.at, "')' is missing")
	case t.operator() && p.cond:
		return p.errorf(t.at, "a comparison where a value belongs")
	case t.operator():
		return p.errorf(t.at, "a comparison inside a value").
			WithHint("leave out the parentheses around it, or write it after 'if'")
	case t.is(":"):
		return p.errorf(t.at, "a format inside a value").WithHint("it comes after the parentheses: (a):x")
	case t.otherArithmetic():
		return p.noArithmetic("')'")
	default:
		return p.unexpected("')'")
	}
}

// badMember returns the error for an unexpected token after an arrow or a dot.
func (p *parser) badMember() error {
	if t := p.tok; t.kind == end || t.is(",") || t.is(")") || t.is("&&") || t.is("||") || t.operator() {
		return p.errorf(t.at, "a member is missing after %s", p.prev)
	}
	return p.unexpected("a member after " + p.prev.String())
}

// badIndex returns the error for an unexpected token after a bracket.
func (p *parser) badIndex(x Expr) error {
	switch t := p.tok; {
	case isGlobal(x) && t.kind == name:
		return p.expected("a number after '['").WithHint(keyFirst)
	case t.kind == end, t.is("]"):
		return p.errorf(t.at, "a number is missing after '['")
	case t.is("-"):
		return p.expected("a number after '['").WithHint("an index goes from 0 to %d (2^31)", mostElements)
	case t.is(":"), t.is("."):
		return p.expected("a number after '['").WithHint(theRange)
	default:
		return p.unexpected("a number after '['").WithHint("an index is constant: name[0]")
	}
}

func (p *parser) unclosedIndex() error {
	switch t := p.tok; {
	case t.kind == end, t.is(","), t.is(")"), t.operator():
		return p.errorf(t.at, "']' is missing")
	case t.is(":"), t.is("."), t.is("-"):
		return p.expected("']'").WithHint(theRange)
	case t.arithmetic() != 0, t.otherArithmetic():
		return p.expected("']'").WithHint("an index is constant: name[0]")
	default:
		return p.unexpected("']'")
	}
}

// badBuiltin returns the error for an unexpected token after the $ at start.
func (p *parser) badBuiltin(start int) error {
	t := p.tok
	at := Span{start, t.at.End}
	switch {
	case t.kind != name && t.kind != number:
		return p.errorf(t.at, "a name is missing after '$'").WithHint("%s", p.listBuiltins())
	case !p.has("arg"): // what follows is about arguments
	case t.text == "arg":
		return p.errorf(at, "$arg without a number").WithHint("the first argument is $arg1")
	case t.text == "arg0":
		return p.errorf(at, "arguments are counted from 1").WithHint("the first argument is $arg1")
	case strings.HasPrefix(t.text, "arg") && only(t.text[3:], decimal):
		return p.errorf(at, "$%s is out of range", t.text).WithHint("arguments are $arg1 to $arg%d", mostArgs)
	}
	err := p.errorf(at, "'$%s' is not known", t.text)
	if hint := p.builtinHabit(t.text); hint != "" {
		return err.WithHint("%s", hint)
	}
	if near, ok := Nearest(t.text, slices.Values(p.builtins())); ok {
		if near == "arg" {
			near = "arg1"
		}
		return err.WithMeant("$%s", near)
	}
	return err.WithHint("%s", p.listBuiltins())
}

// listBuiltins returns the builtins that can be at the current place, for a hint.
func (p *parser) listBuiltins() string {
	list := "$" + strings.Join(p.builtins(), " $") + " "
	return "there are " + strings.TrimSpace(strings.Replace(list, "$arg ", "$arg1 $arg2 ... ", 1))
}

// badGlobal returns the error for an unexpected token after an @.
func (p *parser) badGlobal() error {
	if p.tok.kind == number {
		return p.expected("the name of a variable after '@'").WithHint("an address has no type; name the variable: @jiffies")
	}
	err := p.errorf(p.tok.at, "the name of a variable is missing after '@'")
	if p.tok.is("[") || p.tok.text == "=" {
		return err.WithHint(keyFirst)
	}
	return err
}

// badType returns the error for the end of a type that is incomplete.
func (p *parser) badType(words []string) error {
	if len(words) > 0 {
		return p.errorf(p.tok.at, "a name is missing after '%s'", words[0])
	}
	return p.errorf(p.tok.at, "a type is missing after %s", p.prev)
}

// badTypeWord returns the error for an unexpected word after the words of a type.
func (p *parser) badTypeWord(words []string) error {
	if len(words) == 1 && slices.Contains(tags, words[0]) {
		return p.errorf(p.tok.at, "a name is missing after '%s'", words[0])
	}
	return p.errorf(p.tok.at, "%s after the type '%s'", p.tok, strings.Join(words, " "))
}

// badAfterType returns the error for an unexpected token after the type of a cast.
func (p *parser) badAfterType() error {
	switch t := p.tok; {
	case t.kind == end, t.is(","):
		return p.errorf(t.at, "')' is missing after the type")
	case t.is("["), t.is("("):
		return p.expected("')' after the type").WithHint("the type of a cast is a name, perhaps with '*' after it")
	default:
		return p.unexpected("')' after the type")
	}
}

// nothingToCast returns the error for a cast without a value.
func (p *parser) nothingToCast(at Span) error {
	err := p.errorf(p.tok.at, "a value is missing after the cast %s", Quote(p.text[at.Start:at.End]))
	if p.tok.kind == number || p.tok.kind == quoted {
		return err.WithHint("a constant has no type of its own; it comes after an operator: count > 5")
	}
	return err
}
