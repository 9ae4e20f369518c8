package spec

// span parses the arrow after the beginning of a span, the point where it ends, and
// the key. tok is at the arrow.
func (p *parser) span(t *Trace) error {
	arrow, compared := p.tok.at, p.cond && p.last != nil && p.last.Pred == nil
	p.cond, p.last = false, nil
	t.Ending, p.ending = &Trace{Text: t.Text}, true
	ahead := lookahead{lexer: p.lexer}
	switch ahead.advance(); {
	case ahead.tok.kind == end:
		return p.errorf(Span{arrow.End, arrow.End}, "a function is missing after '=>'")
	case compared && ahead.tok.kind != name:
		return p.errorf(arrow, "'=>' is not a comparison").WithMeant(">=")
	}
	refuse, err := p.point(t.Ending)
	switch {
	case err != nil:
		return err
	case p.tok.arrow():
		return p.errorf(p.tok.at, "a span has two points, and this is a third").
			WithHint("write a span for each pair: A => B on KEY")
	case p.tok.word("on"):
		return p.keys(t)
	case p.tok.kind != end && !p.part:
		return refuse()
	}
	missing := p.errorf(p.tok.at, "a span needs 'on' and a key").
		WithHint("the key is a value that both points have: tp:block_rq_issue() => tp:block_rq_complete() on rq")
	if compared && t.Ending.Items == nil {
		return missing.WithHint("the key is a value that both points have; a comparison is written '>='")
	}
	return missing
}

// keys parses 'on' and the key of both points, or the key of each.
func (p *parser) keys(t *Trace) (err error) {
	p.of, p.ending, p.cond, p.number, p.bare = t, false, false, true, true
	if err := p.advance(); err != nil {
		return err
	}
	if t.Key, err = p.key(); err != nil {
		return err
	}
	t.Ending.Key = t.Key
	if p.tok.kind == compare && p.tok.text == "==" {
		if err := p.advance(); err != nil {
			return err
		}
		p.of = t.Ending
		if t.Ending.Key, err = p.key(); err != nil {
			return err
		}
	}
	if p.tok.kind != end && !p.part {
		return p.badAfterKey()
	}
	return nil
}

// key parses one key.
func (p *parser) key() (Expr, error) {
	if p.tok.kind == end {
		return nil, p.errorf(p.tok.at, "a key is missing after %s", p.prev)
	}
	return p.expression(shifting)
}

// badAfterKey returns the error for an unexpected token after the key.
func (p *parser) badAfterKey() error {
	err := p.errorf(p.tok.at, "%s after the key", p.tok)
	switch t := p.tok; {
	case t.word("if"):
		return err.WithHint("a condition comes before 'on', behind the point that it is about")
	case t.is(","), t.is("&&"):
		return err.WithHint("there is one key; join two numbers to one: ($cpu << 8 | nr)")
	case t.kind == compare:
		return err.WithHint("the keys of both points are compared with '=='")
	case t.is("|"), t.is("&"):
		return err.WithHint("put this into parentheses: on (a | b)")
	}
	return err
}

// arrow reports whether t is the => that joins the points of a span.
func (t token) arrow() bool { return t.kind == compare && t.text == "=>" }
