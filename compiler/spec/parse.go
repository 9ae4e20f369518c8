package spec

import "slices"

const (
	longest = 64 << 10 // bytes in a spec
	deepest = 64       // members in a value
)

// Parse parses a spec. Its error is always an [*Error].
func Parse(text string) (*Trace, error) {
	if len(text) > longest {
		return nil, Errorf(text[:longest], Span{longest, longest},
			"the spec has %d bytes, the limit is %d", len(text), longest)
	}
	p := &parser{lexer: lexer{text: text}}
	t := &Trace{Text: text}
	if err := p.trace(t); err != nil {
		return nil, err
	}
	return t, nil
}

// parser is a recursive descent parser with one token of lookahead. Each
// method is called with tok at the first token of what it parses and leaves
// tok behind the last.
type parser struct {
	lexer
	tok token
}

// advance moves to the next token.
func (p *parser) advance() (err error) {
	p.tok, err = p.next()
	return err
}

// trace parses a whole spec: a function and perhaps a list.
func (p *parser) trace(t *Trace) (err error) {
	if t.Func, err = p.funcName(); err != nil {
		return err
	}
	if p.tok.kind == end {
		return nil
	}
	if !p.tok.is("(") {
		return p.badAfterFunc()
	}
	if t.Items, err = p.list(); err != nil {
		return err
	}
	if p.tok.kind != end {
		return p.badAfterList()
	}
	return nil
}

// funcName parses the function's name. It is the first token, and the only
// one that may have dots in it.
func (p *parser) funcName() (id Ident, err error) {
	if p.tok, err = p.lexer.function(); err != nil {
		return id, err
	}
	if p.tok.kind != name || p.tok.text == "return" || !suffixed(p.tok.text) {
		return id, p.badFunc()
	}
	return p.ident()
}

// ident parses a name, which tok is known to be.
func (p *parser) ident() (Ident, error) {
	id := Ident{p.tok.text, p.tok.at}
	return id, p.advance()
}

// list parses the items and the parentheses around them.
func (p *parser) list() ([]*Item, error) {
	open := p.tok
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.tok.is(")") {
		return nil, p.emptyList(open)
	}
	var items []*Item
	for {
		item, err := p.item()
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		switch {
		case p.tok.is(")"):
			return items, p.advance()
		case !p.tok.is(","):
			return nil, p.badAfterItem(item)
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
}

// item parses a value and perhaps a comparison.
func (p *parser) item() (*Item, error) {
	value, err := p.value()
	if err != nil || p.tok.kind != compare {
		return &Item{Value: value}, err
	}
	pred, err := p.predicate()
	return &Item{Value: value, Pred: pred}, err
}

// value parses an argument or return, and members of it.
func (p *parser) value() (x Expr, err error) {
	if p.tok.kind != name {
		return nil, p.badValue()
	}
	id, err := p.ident()
	x = &Arg{id}
	if id.Name == "return" {
		x = &Return{id.At}
	}
	for depth := 1; err == nil && p.tok.is("->"); depth++ {
		if depth > deepest {
			return nil, Errorf(p.text, p.tok.at, "a value with more than %d members", deepest)
		}
		x, err = p.member(x)
	}
	return x, err
}

// member parses an arrow and the member of x behind it.
func (p *parser) member(x Expr) (Expr, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.tok.kind != name {
		return nil, p.badMember()
	}
	id, err := p.ident()
	return &Member{x, id}, err
}

// predicate parses an operator and a constant.
func (p *parser) predicate() (*Predicate, error) {
	op := slices.Index(ops[:], p.tok.text)
	if op < 0 {
		return nil, p.badOp()
	}
	pred := &Predicate{Op: Op(op), OpAt: p.tok.at}
	before := p.tok
	err := p.advance()
	if err == nil {
		pred.Const, err = p.constant(before)
	}
	return pred, err
}

// suffixed reports whether a dotted name is one with suffixes: no part of it
// is empty.
func suffixed(name string) bool {
	dot := true
	for _, c := range []byte(name) {
		if c == '.' && dot {
			return false
		}
		dot = c == '.'
	}
	return !dot
}
