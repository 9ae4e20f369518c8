package spec

import (
	"slices"
	"strings"
)

// typos are operators that people write for others, and that the first ksnoop
// took for others or for nothing.
var typos = map[string]string{
	"=": "==", "===": "==",
	"!": "!=", "=!": "!=", "<>": "!=", "><": "!=", "!==": "!=",
	"=>": ">=", ">==": ">=",
	"=<": "<=", "<==": "<=",
}

// connectives are words for operators.
var connectives = map[string]string{"and": "&&", "or": "||", "not": "!"}

// connective returns the operator that a word stands for.
func connective(word string) (string, bool) {
	op, ok := connectives[strings.ToLower(word)]
	return op, ok
}

// isErrs are words for is-err.
var isErrs = map[string]bool{"is_err": true, "iserr": true, "is_error": true}

// badOp refuses an operator.
func (p *parser) badOp() error {
	err := Errorf(p.text, p.tok.at, "%s is not a comparison", p.tok)
	tilde := strings.HasPrefix(p.text[p.tok.at.End:], "~")
	switch op, typo := typos[p.tok.text]; {
	case p.tok.text == "=" && tilde:
		return err.WithHint("a string is matched with '~'")
	case p.tok.not() && tilde:
		return err.WithHint(`what does not match is written !(name ~ "eth*")`)
	case typo:
		return err.WithHint("did you mean '%s'?", op)
	default:
		return err.WithHint("the comparisons are == != < <= > >= & ~")
	}
}

// badIs refuses a word that begins with is.
func (p *parser) badIs(at Span) error {
	err := Errorf(p.text, at, "%s is not a comparison", Quote(p.text[at.Start:at.End]))
	return err.WithHint("did you mean 'is-err'? it is written without blanks")
}

// badConstant refuses what stands behind an operator or a sign.
func (p *parser) badConstant() error {
	t := p.tok
	want := "a constant after " + p.prev.String()
	switch {
	case t.kind == end, t.is(","), t.is(")"), t.is("&&"), t.is("||"), t.word("if"):
		return Errorf(p.text, t.at, "a constant is missing after %s", p.prev)
	case t.kind == compare && slices.Contains(ops[:], p.prev.text+t.text):
		return p.expected(want).WithHint("write '%s%s' without a blank", p.prev.text, t.text)
	case t.kind == compare && t.text == "=":
		return p.expected(want).WithHint("there are no assignments")
	case p.prev.is("+") && t.kind == name:
		return p.expected("a number after '+'").WithHint("leave out the '+'")
	case p.prev.is("+"), p.prev.is("-"):
		return p.unexpected("a number after " + p.prev.String())
	case t.is("("):
		return p.expected(want).WithHint("a constant stands without parentheses and casts")
	case t.is("."):
		return p.expected(want).WithHint("a fraction begins with a digit: 0.5s")
	case t.beginsValue():
		return p.expected(want).WithHint("a value is compared with a constant, not with another value")
	default:
		return p.unexpected(want)
	}
}

// badPattern refuses what stands behind a ~.
func (p *parser) badPattern() error {
	switch t := p.tok; {
	case t.kind == end, t.is(","), t.is(")"), t.is("&&"), t.is("||"):
		return Errorf(p.text, t.at, "a pattern is missing after '~'").WithHint(`it is a string: name ~ "eth*"`)
	case t.kind == name, t.kind == number:
		p.pos = t.at.Start
		p.skip(isPattern)
		return p.expected("a string after '~'").WithHint(`write "%s"`, p.text[t.at.Start:p.pos])
	default:
		return p.unexpected("a string after '~'").WithHint(`a pattern is a string: name ~ "eth*"`)
	}
}

// badAfterItem refuses what stands behind an item of the list.
func (p *parser) badAfterItem() error {
	switch t := p.tok; {
	case t.kind == end:
		return p.unclosed()
	case t.is("&&"), t.word("and"):
		return p.expected("',' or ')'").WithHint("separate comparisons with ','; all of them must hold")
	case t.is("||"), t.is("|"), t.word("or"):
		return p.expected("',' or ')'").WithHint("conditions with '||' stand behind 'if': vfs_read(count) if count > 5 || count == 1")
	case t.word("if"):
		return p.expected("',' or ')'").WithHint("'if' stands behind the closing ')'")
	default:
		return p.badAfterTest("',' or ')'", ", ")
	}
}

// badAfterCond refuses what stands behind the condition.
func (p *parser) badAfterCond() error {
	if p.tok.is(")") {
		return p.unopened()
	}
	return p.badInCond("'&&', '||' or the end of the spec")
}

// badInGroup refuses what stands behind a condition in parentheses.
func (p *parser) badInGroup() error {
	if p.tok.kind == end {
		return p.unclosed()
	}
	return p.badInCond("'&&', '||' or ')'")
}

// badInCond refuses what stands behind a part of a condition.
func (p *parser) badInCond(want string) error {
	t := p.tok
	switch op, joins := connective(t.text); {
	case joins && op != "!":
		return p.expected(want).WithHint("did you mean '%s'?", op)
	case t.is("|"):
		return p.expected(want).WithHint("did you mean '||'?")
	case t.is(","):
		return p.expected(want).WithHint("did you mean '&&'?")
	case p.afterNot():
		return p.expected(want).WithHint("did you mean '!'? it stands before a condition: !(a == 5)")
	case t.word("if"):
		return Errorf(p.text, t.at, "a second 'if'").WithHint("join the conditions with '&&'")
	case p.last == nil && (t.operator() || t.is(":") || t.is("->") || t.is(".") || t.is("[")):
		return Errorf(p.text, t.at, "%s after a condition", t).
			WithHint("a condition holds or not; only a value can be compared or have members")
	default:
		return p.badAfterTest(want, " && ")
	}
}

// afterNot reports whether the item before is the word not.
func (p *parser) afterNot() bool {
	if p.last == nil || p.last.Pred != nil || p.last.Format.Name != "" {
		return false
	}
	arg, ok := p.last.Value.(*Arg)
	return ok && arg.Name.Name == "not"
}

// badAfterTest refuses what stands behind an item, where want belongs. Items
// are separated by join.
func (p *parser) badAfterTest(want, join string) error {
	t := p.tok
	item := p.last
	tested := item != nil && item.Pred != nil
	ofNumber := tested && item.Pred.Op != IsErr && item.Pred.Const.Kind == Integer
	switch {
	case tested && t.operator():
		return p.secondOp(join)
	case ofNumber && t.kind == number:
		return p.expected(want).WithHint("there are no blanks in a number")
	case ofNumber && units[t.text] != 0:
		return p.expected(want).WithHint("there is no blank before a unit: %s%s", item.Pred.Const, t.text)
	case tested && (t.is("->") || t.is(".") || t.is("[") || t.is("(")) && item.Pred.Const.Kind == Name:
		return p.expected(want).WithHint("a value is compared with a constant, not with another value")
	case item != nil && !tested && (t.kind == number || t.kind == quoted):
		return p.expected("an operator, " + want)
	case item != nil && !tested && isErrs[strings.ToLower(t.text)]:
		return p.expected("an operator, " + want).WithHint("did you mean 'is-err'?")
	case t.is(":") && !tested && item != nil:
		return p.expected(want).WithHint("a value has one format")
	case t.is(":"):
		return p.expected(want).WithHint("a format stands behind the value: count:x > 5")
	case t.arithmetic():
		return p.noArithmetic(want)
	default:
		return p.unexpected(want)
	}
}

// secondOp refuses an operator behind a comparison.
func (p *parser) secondOp(join string) error {
	item := p.last
	err := Errorf(p.text, p.tok.at, "a second comparison of one value")
	if item.Pred.Op == Mask || p.tok.is("&") {
		return err.WithHint("a test with '&' holds if both have a bit in common; it gives no value to compare")
	}
	return err.WithHint("repeat the value: %s%s%s %s ...", item, join, item.Value, p.tok.text)
}

// badNot refuses a ! before a comparison without parentheses.
func (p *parser) badNot(at Span, item *Item) error {
	return Errorf(p.text, at, "in C this '!' belongs to %s alone", Quote(item.Value.String())).
		WithHint("write !(%s)", item)
}

// arithmetic reports whether t is an operator that computes.
func (t token) arithmetic() bool {
	return t.kind == punct && strings.Contains("+-*/%^", t.text)
}

func (p *parser) noArithmetic(want string) error {
	err := p.expected(want)
	if p.tok.is("-") {
		return err.WithHint("there is no arithmetic; a member is reached with '->'")
	}
	return err.WithHint("there is no arithmetic")
}
