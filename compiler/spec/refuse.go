package spec

import "slices"

// Each function here says what is wrong with the current token, where the
// parser cannot go on.

// badFunc refuses what stands in the place of the function's name.
func (p *parser) badFunc() error {
	switch t := p.tok; {
	case t.kind == end:
		return Errorf(p.text, t.at, "the spec is empty").WithHint("name a function, for example vfs_read")
	case t.kind == number:
		return Errorf(p.text, t.at, "a function name cannot begin with a digit")
	case t.kind != name:
		return p.expected("a function name")
	case t.text == "return":
		return Errorf(p.text, t.at, "the function is missing").
			WithHint("'return' belongs in the parentheses after a function name: vfs_read(return)")
	default:
		return Errorf(p.text, t.at, "%s has a dot too many", quote(t.text))
	}
}

// badAfterFunc refuses what stands behind a function's name.
func (p *parser) badAfterFunc() error {
	switch t := p.tok; {
	case t.is(")"):
		return p.unopened()
	case t.is(","):
		return Errorf(p.text, t.at, "a spec names one function").WithHint("write one spec for each function")
	case t.text == "if":
		return p.unsupported()
	case t.kind == compare, t.is("->"), t.kind == name:
		return p.expected("'('").WithHint("values belong in parentheses, for example vfs_read(count > 5)")
	default:
		return p.unexpected("'('")
	}
}

// emptyList refuses a list without items.
func (p *parser) emptyList(open token) error {
	return Errorf(p.text, Span{open.at.Start, p.tok.at.End}, "the list of values is empty").
		WithHint("leave out the parentheses to record every argument and the return value, or name values inside them")
}

// badValue refuses what stands at the beginning of an item.
func (p *parser) badValue() error {
	switch t := p.tok; {
	case t.is(","):
		return Errorf(p.text, t.at, "a value is missing before ','").WithHint("leave out the ','")
	case t.is(")"):
		return Errorf(p.text, t.at, "a value is missing before ')'").WithHint("leave out the ',' before it")
	case t.kind == end:
		return p.unclosed()
	case t.is("("):
		return p.nested()
	case slices.Contains(ops[:], t.text) && t.kind == compare:
		return Errorf(p.text, t.at, "a value is missing before %s", t)
	case t.kind == number:
		return p.expected("an argument or 'return'").WithHint("a constant stands behind an operator: count > 5")
	default:
		return p.unexpected("an argument or 'return'")
	}
}

// badMember refuses what stands behind an arrow.
func (p *parser) badMember() error {
	if p.tok.kind == end || p.tok.is(",") || p.tok.is(")") {
		return Errorf(p.text, p.tok.at, "a member is missing after '->'")
	}
	return p.unexpected("a member after '->'")
}

// typos are operators that people write for others, and that the first ksnoop
// took for others or for nothing.
var typos = map[string]string{
	"=": "==", "===": "==",
	"!": "!=", "=!": "!=", "<>": "!=", "><": "!=", "!==": "!=",
	"=>": ">=", ">==": ">=",
	"=<": "<=", "<==": "<=",
}

// badOp refuses an operator.
func (p *parser) badOp() error {
	err := Errorf(p.text, p.tok.at, "%s is not a comparison", p.tok)
	if op, ok := typos[p.tok.text]; ok {
		return err.WithHint("did you mean '%s'?", op)
	}
	return err.WithHint("the comparisons are == != < <= > >=")
}

// words are names that stand for numbers in C.
var words = map[string]string{"NULL": "0", "false": "0", "true": "1"}

// badConstant refuses what stands behind the operator or sign before.
func (p *parser) badConstant(before token) error {
	if p.tok.kind == end || p.tok.is(",") || p.tok.is(")") {
		return Errorf(p.text, p.tok.at, "a number is missing after %s", before)
	}
	want := "a number after " + before.String()
	if p.tok.kind == compare && slices.Contains(ops[:], before.text+p.tok.text) {
		return p.expected(want).WithHint("write '%s%s' without a blank", before.text, p.tok.text)
	}
	if p.tok.kind != name {
		return p.unexpected(want)
	}
	if n, ok := words[p.tok.text]; ok {
		return p.expected(want).WithHint("write %s", n)
	}
	return p.expected(want).WithHint("constants are integers: 10, -1, 0xff or, in octal, 0644")
}

// badAfterItem refuses what stands behind an item.
func (p *parser) badAfterItem(item *Item) error {
	switch t := p.tok; {
	case t.kind == end:
		return p.unclosed()
	case t.is("("):
		return p.nested()
	case t.kind == compare && item.Pred != nil:
		return Errorf(p.text, t.at, "a second comparison of one value").
			WithHint("repeat the value: %s, %s %s ...", item, item.Value, t.text)
	case t.kind == number && item.Pred != nil:
		return p.expected("',' or ')'").WithHint("there are no blanks in a number")
	case t.kind == number:
		return p.expected("an operator, ',' or ')'")
	case t.is("-"), t.is("+"):
		return p.expected("',' or ')'").WithHint("there is no arithmetic; a member is reached with '->'")
	default:
		return p.unexpected("',' or ')'")
	}
}

// badAfterList refuses what stands behind the closing parenthesis.
func (p *parser) badAfterList() error {
	switch {
	case p.tok.is(")"):
		return p.unopened()
	case p.tok.text == "if":
		return p.unsupported()
	default:
		return Errorf(p.text, p.tok.at, "%s after the closing ')'", p.tok).
			WithHint("a spec ends with its list of values")
	}
}

func (p *parser) unopened() error {
	return Errorf(p.text, p.tok.at, "')' without a '(' before it")
}

func (p *parser) unclosed() error {
	return Errorf(p.text, p.tok.at, "')' is missing").WithHint("close the list of values with ')'")
}

func (p *parser) nested() error {
	return Errorf(p.text, p.tok.at, "'(' inside the list of values").WithHint("leave out the inner parentheses")
}

func (p *parser) expected(what string) *Error {
	return Errorf(p.text, p.tok.at, "expected %s, not %s", what, p.tok)
}

// unexpected refuses the token: as out of place, or as no part of the language.
func (p *parser) unexpected(want string) error {
	if p.tok.kind == punct && !slices.Contains([]string{"(", ")", ",", "->", "-", "+"}, p.tok.text) {
		return p.unsupported()
	}
	return p.expected(want)
}

// cures say what to write in place of what is not in the language.
var cures = map[string]string{
	".":  "a member of what a pointer points to is reached with '->'",
	"&&": "separate comparisons with ','; all of them must hold",
	"if": "compare inside the parentheses: vfs_read(count > 5)",
	";":  "separate values with ',', and quote each function with its values",
	`"`:  "constants are integers",
	"'":  "constants are integers",
}

func (p *parser) unsupported() error {
	err := Errorf(p.text, p.tok.at, "%s is not part of the spec language", p.tok)
	if cure, ok := cures[p.tok.text]; ok {
		return err.WithHint("%s", cure)
	}
	return err
}
