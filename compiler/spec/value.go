package spec

import (
	"slices"
	"strconv"
	"strings"
)

// value parses a value as C parses an expression: * and casts apply to the whole
// value after them, with its members.
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

// deref parses a star and the value after it.
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

// primary parses the beginning of a value, up to its members and indices.
func (p *parser) primary() (Expr, error) {
	switch t := p.tok; {
	case t.is("("):
		return p.inner()
	case t.is("$"):
		return p.builtin()
	case t.is("@"):
		return p.global()
	case p.overCall():
		return p.readOver()
	case t.kind != name, t.text == "if", isTypeWord(t.text):
		return nil, p.badValue()
	case t.text == "return":
		return &Return{t.at}, p.advance()
	case p.atAggregate():
		return nil, p.badAggregate()
	}
	id, err := p.ident()
	return &Arg{id}, err
}

// inner parses a value in parentheses. The tree does not have the parentheses.
func (p *parser) inner() (Expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.tok.is(")") {
		return nil, p.errorf(p.tok.at, "a value is missing after '('")
	}
	x, err := p.expression(bitOr)
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

// isBuiltin reports whether name is the name of a builtin.
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

// postfix parses the members and indices after x.
func (p *parser) postfix(x Expr) (Expr, error) {
	for depth := links(x) + 1; ; depth++ {
		var err error
		switch t := p.tok; {
		case depth > deepest && (t.is("->") || t.is(".") || t.is("[")):
			return nil, p.errorf(t.at, "a value with more than %d members", deepest)
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

// links returns the number of members and indices at the end of x. Those inside
// parentheses count too, since the tree does not have the parentheses.
func links(x Expr) int {
	for n := 0; ; n++ {
		switch m := x.(type) {
		case *Member:
			x = m.X
		case *Index:
			x = m.X
		case *Range:
			x = m.X
		default:
			return n
		}
	}
}

// member parses an arrow or a dot and the member of x after it.
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

// mostElements bounds an index. No array in the kernel has more elements.
const mostElements = 1 << 31

// index parses brackets and the number in them.
func (p *parser) index(x Expr) (Expr, error) {
	open := p.tok
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.tok.kind != number {
		return nil, p.badIndex(x)
	}
	ranged := p.atRange()
	first, last, err := p.indices(ranged)
	if err != nil {
		return nil, err
	}
	if !p.tok.is("]") {
		return nil, p.unclosedIndex()
	}
	at := Span{open.at.Start, p.tok.at.End}
	if ranged {
		return &Range{x, first, last, at}, p.advance()
	}
	return &Index{x, first, at}, p.advance()
}

// indices parses what is in the brackets: a number, or a range.
func (p *parser) indices(ranged bool) (first, last uint64, err error) {
	if ranged {
		return p.bounds()
	}
	n, err := p.integer(p.tok.at.Start, false, false)
	if err == nil {
		err = p.checkIndex(n)
	}
	return n.Abs, n.Abs, err
}
