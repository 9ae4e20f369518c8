package spec

// condition parses 'if' and the condition after it.
func (p *parser) condition(t *Trace) (err error) {
	p.cond = true
	if err := p.advance(); err != nil {
		return err
	}
	t.Cond, err = p.or()
	return err
}

// ParseCondition parses a condition alone, with the if that it begins with. The trace
// has nothing else. The error is always an [*Error].
func ParseCondition(text string) (*Trace, error) {
	if len(text) > longest {
		return nil, Errorf(text[:longest], Span{longest, longest}, "the condition has %d bytes, the limit is %d", len(text), longest)
	}
	t := &Trace{Text: text}
	p := &parser{lexer: lexer{text: text}, of: t}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if !p.tok.word("if") {
		return nil, Errorf(text, p.tok.at, "a condition begins with if: as in 'if count > 4k'")
	}
	if err := p.condition(t); err != nil {
		return nil, err
	}
	if p.tok.kind != end {
		return nil, p.badAfterCond()
	}
	return t, nil
}

// or parses conditions joined by ||.
func (p *parser) or() (Cond, error) {
	x, err := p.and()
	for err == nil && p.tok.is("||") {
		if err := p.advance(); err != nil {
			return nil, err
		}
		var y Cond
		y, err = p.and()
		x = &Or{x, y}
	}
	return x, err
}

// and parses conditions joined by &&.
func (p *parser) and() (Cond, error) {
	x, err := p.not()
	for err == nil && p.tok.is("&&") {
		if err := p.advance(); err != nil {
			return nil, err
		}
		var y Cond
		y, err = p.not()
		x = &And{x, y}
	}
	return x, err
}

// not parses a term, which may be negated. It refuses !a == 5, which is surely not
// meant as in C: there the ! binds tighter than the comparison.
func (p *parser) not() (Cond, error) {
	p.splitNots()
	if !p.tok.not() {
		return p.term()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	at := p.tok.at
	if err := p.advance(); err != nil {
		return nil, err
	}
	x, err := p.not()
	if err != nil {
		return nil, err
	}
	if item, ok := x.(*Item); ok && (item.Pred != nil || isBinary(item.Value)) && !p.grouped {
		return nil, p.badNot(at, item)
	}
	return &Not{x, at}, nil
}

// splitNots splits the first ! off a token of several, since the lexer makes one
// token of them.
func (p *parser) splitNots() {
	if t := &p.tok; t.kind == compare && only(t.text, "!") {
		t.text = "!"
		t.at.End = t.at.Start + 1
		p.pos = t.at.End
	}
}

// term parses a predicate, or a condition in parentheses. Parentheses around a value
// alone are part of a value, which may continue after them.
func (p *parser) term() (Cond, error) {
	if !p.tok.is("(") || p.atCast() {
		return p.item()
	}
	x, err := p.group()
	if err != nil {
		return nil, err
	}
	after := p.tok.at.Start
	value := valueOf(x, p.tok.continues())
	if value == nil {
		p.last, p.grouped = nil, true
		return x, nil
	}
	if value, err = p.postfix(value); err != nil {
		return nil, err
	}
	item, err := p.itemOf(value)
	p.grouped = p.tok.at.Start == after
	return item, err
}

// valueOf returns the value that a condition in parentheses is, or nil if it is not a
// value. A predicate for common bits is a value if more of a value follows.
func valueOf(x Cond, continues bool) Expr {
	item, ok := x.(*Item)
	switch {
	case !ok || item.Format.Name != "":
		return nil
	case item.Pred == nil:
		return item.Value
	case continues:
		return item.asValue()
	}
	return nil
}

func isBinary(x Expr) bool {
	_, ok := x.(*Binary)
	return ok
}

// group parses a condition in parentheses.
func (p *parser) group() (Cond, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	p.open++
	defer func() { p.open-- }()
	if err := p.advance(); err != nil {
		return nil, err
	}
	x, err := p.or()
	if err != nil {
		return nil, err
	}
	if !p.tok.is(")") {
		return nil, p.badInGroup()
	}
	return x, p.advance()
}

// not reports whether t is a !, which has the kind compare.
func (t token) not() bool { return t.kind == compare && t.text == "!" }

// operator reports whether t is an operator between a value and a constant, valid
// or not.
func (t token) operator() bool { return t.kind == compare || t.is("&") || t.is("~") }

// word reports whether t is the name text.
func (t token) word(text string) bool { return t.kind == name && t.text == text }
