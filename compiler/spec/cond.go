package spec

// condition parses 'if' and what must hold.
func (p *parser) condition(t *Trace) (err error) {
	p.cond = true
	if err := p.advance(); err != nil {
		return err
	}
	t.Cond, err = p.or()
	return err
}

// or parses conditions of which one must hold.
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

// and parses conditions that must all hold.
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

// not parses a test, perhaps negated. As ! binds tighter than a comparison in
// C, there !a == 5 means something nobody wants; here it is refused.
func (p *parser) not() (Cond, error) {
	p.splitNots()
	if !p.tok.not() {
		return p.test()
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
	if item, ok := x.(*Item); ok && item.Pred != nil && !p.prev.is(")") {
		return nil, p.badNot(at, item)
	}
	return &Not{x, at}, nil
}

// splitNots cuts the first of several ! off, which are one token to the lexer.
func (p *parser) splitNots() {
	if t := &p.tok; t.kind == compare && only(t.text, "!") {
		t.text = "!"
		t.at.End = t.at.Start + 1
		p.pos = t.at.End
	}
}

// test parses a test, or a condition in parentheses. Whether a parenthesis
// belongs to a condition or to a value shows behind it: a value alone may go
// on as one.
func (p *parser) test() (Cond, error) {
	if !p.tok.is("(") || p.atCast() {
		return p.item()
	}
	x, err := p.group()
	if err != nil {
		return nil, err
	}
	item, ok := x.(*Item)
	if !ok || item.Pred != nil || item.Format.Name != "" {
		p.last = nil
		return x, nil
	}
	value, err := p.postfix(item.Value)
	if err != nil {
		return nil, err
	}
	return p.itemOf(value)
}

// group parses a condition in parentheses.
func (p *parser) group() (Cond, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
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

// not reports whether t is a !, which the lexer takes for a comparison.
func (t token) not() bool { return t.kind == compare && t.text == "!" }

// operator reports whether t stands between a value and a constant, or means
// to.
func (t token) operator() bool { return t.kind == compare || t.is("&") || t.is("~") }

// word reports whether t is the name text.
func (t token) word(text string) bool { return t.kind == name && t.text == text }
