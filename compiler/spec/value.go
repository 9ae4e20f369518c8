package spec

import (
	"slices"
	"strconv"
	"strings"
)

// value parses a value as C does an expression: * and casts take all that
// follows, with the members behind it.
func (p *parser) value() (Expr, error) {
	switch {
	case p.tok.is("*"):
		return p.deref()
	case p.tok.is("(") && p.atCast():
		return p.cast()
	}
	x, err := p.primary()
	if err != nil {
		return nil, err
	}
	return p.postfix(x)
}

// deref parses a star and the value behind it.
func (p *parser) deref() (Expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	at := p.tok.at
	if err := p.advance(); err != nil {
		return nil, err
	}
	x, err := p.value()
	return &Deref{x, at}, err
}

// primary parses what a value begins with.
func (p *parser) primary() (Expr, error) {
	switch t := p.tok; {
	case t.is("("):
		return p.inner()
	case t.is("$"):
		return p.builtin()
	case t.is("@"):
		return p.global()
	case t.kind != name, t.text == "if", isTypeWord(t.text):
		return nil, p.badValue()
	case t.text == "return":
		return &Return{t.at}, p.advance()
	}
	id, err := p.ident()
	return &Arg{id}, err
}

// inner parses a value in parentheses. They leave no trace in the tree.
func (p *parser) inner() (Expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.tok.is(")") {
		return nil, Errorf(p.text, p.tok.at, "a value is missing after '('")
	}
	x, err := p.value()
	if err != nil {
		return nil, err
	}
	if !p.tok.is(")") {
		return nil, p.badInner()
	}
	return x, p.advance()
}

// builtin parses $NAME.
func (p *parser) builtin() (Expr, error) {
	start := p.tok.at.Start
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.tok.kind != name || !isBuiltin(p.tok.text) {
		return nil, p.badBuiltin(start)
	}
	id, err := p.ident()
	id.At.Start = start
	return &Builtin{id}, err
}

// mostArgs bounds the N of $argN. BTF describes functions of far fewer
// arguments.
const mostArgs = 255

// isBuiltin reports whether name may stand behind a $.
func isBuiltin(name string) bool {
	if digits, ok := strings.CutPrefix(name, "arg"); ok {
		n, err := strconv.ParseUint(digits, 10, 16)
		return err == nil && digits[0] != '0' && n <= mostArgs
	}
	return slices.Contains(Builtins, name)
}

// global parses @SYMBOL.
func (p *parser) global() (Expr, error) {
	start := p.tok.at.Start
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.tok.kind != name {
		return nil, p.badGlobal()
	}
	id, err := p.ident()
	id.At.Start = start
	return &Global{id}, err
}

// postfix parses the members and elements of x.
func (p *parser) postfix(x Expr) (Expr, error) {
	for depth := links(x) + 1; ; depth++ {
		var err error
		switch t := p.tok; {
		case depth > deepest && (t.is("->") || t.is(".") || t.is("[")):
			return nil, Errorf(p.text, t.at, "a value with more than %d members", deepest)
		case t.is("->"), t.is("."):
			x, err = p.member(x)
		case t.is("["):
			x, err = p.index(x)
		default:
			return x, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// links returns how many members and elements x ends with. Those inside
// parentheses count: they are not printed.
func links(x Expr) int {
	for n := 0; ; n++ {
		switch m := x.(type) {
		case *Member:
			x = m.X
		case *Index:
			x = m.X
		default:
			return n
		}
	}
}

// member parses an arrow or a dot and the member of x behind it.
func (p *parser) member(x Expr) (Expr, error) {
	dot := p.tok.is(".")
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.tok.kind != name {
		return nil, p.badMember()
	}
	id, err := p.ident()
	return &Member{X: x, Dot: dot, Name: id}, err
}

// mostElements bounds an index: no array in the kernel has more.
const mostElements = 1 << 31

// index parses brackets and the number between them.
func (p *parser) index(x Expr) (Expr, error) {
	open := p.tok
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.tok.kind != number {
		return nil, p.badIndex()
	}
	n, err := p.integer(p.tok.at.Start, false)
	if err != nil {
		return nil, err
	}
	if n.Abs > mostElements {
		return nil, Errorf(p.text, n.At, "the index %s is out of range", n.Text).
			WithHint("an index goes from 0 to %d (2^31)", mostElements)
	}
	if !p.tok.is("]") {
		return nil, p.unclosedIndex()
	}
	at := Span{open.at.Start, p.tok.at.End}
	return &Index{x, n.Abs, at}, p.advance()
}
