package spec

import (
	"cmp"
	"slices"
	"strings"
)

// typos has operators that people write by mistake, with the operators that are
// meant.
var typos = map[string]string{
	"=": "==", "===": "==",
	"!": "!=", "=!": "!=", "<>": "!=", "><": "!=", "!==": "!=",
	"=>": ">=", ">==": ">=",
	"=<": "<=", "<==": "<=",
}

// connectives has words that people write for operators.
var connectives = map[string]string{"and": "&&", "or": "||", "not": "!"}

// connective returns the operator that a word stands for.
func connective(word string) (string, bool) {
	op, ok := connectives[strings.ToLower(word)]
	return op, ok
}

// isErrs has misspellings of is-err.
var isErrs = map[string]bool{"is_err": true, "iserr": true, "is_error": true}

// badOp returns the error for an invalid operator.
func (p *parser) badOp() error {
	err := p.errorf(p.tok.at, "%s is not a comparison", p.tok)
	tilde := strings.HasPrefix(p.text[p.tok.at.End:], "~")
	switch op, typo := typos[p.tok.text]; {
	case p.tok.text == "=" && p.last != nil && isGlobal(p.last.Value):
		return err.WithHint(keyFirst)
	case p.bare && p.tok.arrow():
		return p.badAfterValue()
	case p.tok.text == "=" && tilde:
		return err.WithHint("a string is matched with '~'")
	case p.tok.not() && tilde:
		return err.WithHint(`what does not match is written !(name ~ "eth*")`)
	case typo:
		return err.WithMeant("%s", op)
	case p.tok.text == "<<=" || p.tok.text == ">>=":
		return err.WithHint(noAssignments)
	default:
		return err.WithHint("the comparisons are == != < <= > >= & ~")
	}
}

// badIs returns the error for a misspelling of is-err.
func (p *parser) badIs(at Span) error {
	err := p.errorf(at, "%s is not a comparison", Quote(p.text[at.Start:at.End]))
	return err.WithHint("did you mean 'is-err'? it is written without blanks")
}

// badConstant returns the error for an unexpected token after an operator or a sign.
func (p *parser) badConstant() error {
	t := p.tok
	want := "a constant after " + p.prev.String()
	switch {
	case t.kind == end, t.is(","), t.is(")"), t.is("&&"), t.is("||"), t.word("if"):
		return p.errorf(t.at, "a constant is missing after %s", p.prev)
	case t.kind == compare && slices.Contains(ops[:], p.prev.text+t.text):
		return p.expected(want).WithHint("write '%s%s' without a blank", p.prev.text, t.text)
	case t.kind == compare && t.text == "=":
		return p.expected(want).WithHint(noAssignments)
	case p.prev.is("+") && t.kind == name:
		return p.expected("a number after '+'").WithHint("leave out the '+'")
	case p.prev.is("-") && t.beginsValue():
		return p.expected("a number after '-'").WithHint(noSign)
	case p.prev.is("+"), p.prev.is("-"):
		return p.unexpected("a number after " + p.prev.String())
	case t.is("("):
		return p.expected(want).WithHint("a constant is written without parentheses and casts")
	case t.is("~"):
		return p.expected(want).WithHint("there is no '~' of a number: ~1 is -2")
	case t.is("."):
		return p.expected(want).WithHint("a fraction begins with a digit: 0.5s")
	default:
		return p.unexpected(want)
	}
}

// noSign is the hint for a sign before a value.
const noSign = "a value has no sign; write 0 - count"

// badPattern returns the error for an unexpected token after a ~.
func (p *parser) badPattern() error {
	switch t := p.tok; {
	case t.kind == end, t.is(","), t.is(")"), t.is("&&"), t.is("||"):
		return p.errorf(t.at, "a pattern is missing after '~'").WithHint(`it is a string: name ~ "eth*"`)
	case t.kind == name, t.kind == number:
		p.pos = t.at.Start
		p.skip(isPattern)
		return p.expected("a string after '~'").WithHint(`write "%s"`, p.text[t.at.Start:p.pos])
	default:
		return p.unexpected("a string after '~'").WithHint(`a pattern is a string: name ~ "eth*"`)
	}
}

// badAfterItem returns the error for an unexpected token after an item of the list.
func (p *parser) badAfterItem() error {
	switch t := p.tok; {
	case t.kind == end:
		return p.unclosed()
	case t.is("&&"), t.word("and"):
		return p.expected("',' or ')'").WithHint("separate comparisons with ','; all of them must hold")
	case t.is("||"), t.is("|"), t.word("or"):
		return p.expected("',' or ')'").WithHint("conditions with '||' come after 'if': vfs_read(count) if count > 5 || count == 1")
	case t.word("if"):
		return p.expected("',' or ')'").WithHint("'if' comes after the closing ')'")
	default:
		return p.badAfterTerm("',' or ')'", ", ")
	}
}

// badAfterCond returns the error for an unexpected token after the condition.
func (p *parser) badAfterCond() error {
	if p.tok.is(")") {
		return p.unopened()
	}
	return p.badInCond("'&&', '||' or the end of the spec")
}

// badInGroup returns the error for an unexpected token after a condition in parentheses.
func (p *parser) badInGroup() error {
	if p.tok.kind == end {
		return p.unclosed()
	}
	return p.badInCond("'&&', '||' or ')'")
}

// badInCond returns the error for an unexpected token after a part of a condition.
func (p *parser) badInCond(want string) error {
	t := p.tok
	switch op, joins := connective(t.text); {
	case joins && op != "!":
		return p.expected(want).WithMeant("%s", op)
	case t.is("|"):
		return p.expected(want).WithMeant("||")
	case t.is(","):
		return p.expected(want).WithMeant("&&")
	case p.afterNot():
		return p.expected(want).WithHint("did you mean '!'? it comes before a condition: !(a == 5)")
	case t.word("if"):
		return p.errorf(t.at, "a second 'if'").WithHint("join the conditions with '&&'")
	case p.last == nil && (t.operator() || t.is(":") || t.is("->") || t.is(".") || t.is("[")):
		return p.errorf(t.at, "%s after a condition", t).
			WithHint("a condition holds or not; only a value can be compared or have members")
	default:
		return p.badAfterTerm(want, " && ")
	}
}

// afterNot reports whether the previous item is the word not.
func (p *parser) afterNot() bool {
	if p.last == nil || p.last.Pred != nil || p.last.Format.Name != "" {
		return false
	}
	arg, ok := p.last.Value.(*Arg)
	return ok && arg.Name.Name == "not"
}

// badAfterTerm returns the error for an unexpected token after an item, where want
// is expected. Join is the separator of items.
func (p *parser) badAfterTerm(want, join string) error {
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
	case tested && t.is("(") && item.Pred.Const.Kind == Name && item.Format.Name == "" && formatHabits.Meaning(item.Pred.Const.Str) == "be":
		return p.expected(want).WithHint("write %s:be %s NUMBER", item.Value, item.Pred.Op)
	case tested && t.is("(") && item.Pred.Const.Kind == Name:
		return p.expected(want).WithHint("%s", cmp.Or(p.functionHint(item.Pred.Const.Str), "there are no functions"))
	case tested && item.Pred.Const.Neg && (t.is("->") || t.is(".") || t.is("[")):
		return p.expected(want).WithHint(noSign)
	case item != nil && !tested && (t.kind == number || t.kind == quoted):
		return p.expected("an operator, " + want)
	case item != nil && !tested && t.kind == name && comparisonHabits.Meaning(t.text) != "":
		return p.expected("an operator, "+want).WithMeant("%s", comparisonHabits.Meaning(t.text))
	case item != nil && !tested && t.kind == name && item.Value.String() == "not":
		return p.expected("an operator, " + want).WithHint("a condition comes after 'if', and '!' negates it: vfs_read(count) if !count")
	case item != nil && !tested && isErrs[strings.ToLower(t.text)]:
		return p.expected("an operator, " + want).WithMeant("is-err")
	case t.is("@") && !tested && item != nil:
		return p.expected(want).WithHint("elements are a range: %s[0..7]", item.Value)
	case t.is(":") && !tested && item != nil:
		return p.expected(want).WithHint("a value has one format")
	case t.is(":"):
		return p.expected(want).WithHint("a format comes after the value: count:x > 5")
	case t.otherArithmetic():
		return p.noArithmetic(want)
	case tested && t.arithmetic() != 0:
		return p.secondOp(join)
	case t.is("(") && item != nil && !tested:
		return p.expected(want).WithHint("%s", cmp.Or(p.functionHint(item.Value.String()), p.noFunction(item.Value.String())))
	case t.kind == name && item != nil:
		return p.expected(want).WithHint("%s", p.wordHint(join))
	default:
		return p.unexpected(want)
	}
}

// wordHint returns a hint for the word at tok, which comes after an item, or "". Join
// is the separator of items.
func (p *parser) wordHint(join string) string {
	switch value := p.last.Value.String(); strings.ToLower(p.tok.text) {
	case "by":
		if !p.cond && !p.of.Values {
			return keyFirst
		}
	case "in", "between":
		return "write " + value + " >= 1" + join + value + " <= 5, or, after 'if', " + value + " == 1 || " + value + " == 5"
	case "as":
		return "a cast comes before the value: (struct sock *)sk"
	case "where", "when", "unless", "filter":
		if !p.cond {
			return "a condition comes after the closing ')': vfs_read(count) if count > 5"
		}
	}
	return ""
}

// secondOp returns the error for an operator after a comparison.
func (p *parser) secondOp(join string) error {
	item := p.last
	err := p.errorf(p.tok.at, "a second comparison of one value")
	if item.Pred.Op == Mask || p.tok.is("&") {
		return err.WithHint("a condition with '&' holds if both have a bit in common; it gives no value to compare")
	}
	return err.WithHint("repeat the value: %s%s%s %s ...", item, join, item.Value, p.tok.text)
}

// badNot returns the error for a ! before a comparison without parentheses.
func (p *parser) badNot(at Span, item *Item) error {
	x := item.Value
	for b, ok := x.(*Binary); ok; b, ok = x.(*Binary) {
		x = b.X
	}
	return p.errorf(at, "in C this '!' belongs to %s alone", Quote(x.String())).
		WithHint("write !(%s)", item)
}

// badPrecedence returns the error for a comparison after values joined by |, which
// binds weaker in C.
func (p *parser) badPrecedence(x *Binary) error {
	return p.errorf(p.tok.at, "in C this %s belongs to %s alone", p.tok, Quote(x.Y.String())).
		WithHint("write (%s) %s ...", x, p.tok.text)
}

// otherArithmetic reports whether t is an operator of C that specs do not have.
func (t token) otherArithmetic() bool {
	return t.kind == punct && strings.Contains("/%^", t.text)
}

func (p *parser) noArithmetic(want string) error {
	return p.expected(want).WithHint(theOperators)
}

// theOperators is the hint for other operators.
const theOperators = "the operators are + - * & | << >>, and x >> 10 is x / 1024"
