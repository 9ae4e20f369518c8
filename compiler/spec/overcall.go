package spec

// After is after(X): X as it is when the function returns. The argument that X begins
// with is that of the entry.
type After struct {
	X  Expr
	At Span // from the word to the closing parenthesis
}

// Diff is diff(X): what differs between X at entry and X at return. It is always a
// whole item, and never a part of another value.
type Diff struct {
	X  Expr
	At Span // from the word to the closing parenthesis
}

// Span returns the place of the word and its parentheses.
func (a *After) Span() Span { return a.At }

// Span returns the place of the word and its parentheses.
func (d *Diff) Span() Span { return d.At }

// String returns a in canonical form: "after(stat->size)".
func (a *After) String() string { return "after(" + a.X.String() + ")" }

// String returns d in canonical form: "diff(sk)".
func (d *Diff) String() string { return "diff(" + d.X.String() + ")" }

// OverCalls lists the words before parentheses that say when a value is read.
var OverCalls = []string{"after", "diff"}

// overCall reports whether after( or diff( begins at tok. Without the parenthesis
// it is the name of an argument.
func (p *parser) overCall() bool {
	if !p.tok.word("after") && !p.tok.word("diff") {
		return false
	}
	ahead := lookahead{lexer: p.lexer}
	ahead.advance()
	return ahead.tok.is("(")
}

// readOver parses after(X) or diff(X).
func (p *parser) readOver() (Expr, error) {
	word := p.tok
	if err := p.advance(); err != nil {
		return nil, err
	}
	p.over = true
	x, err := p.inner()
	p.over = false
	if err != nil {
		return nil, err
	}
	at := Span{word.at.Start, p.prev.at.End}
	if inside := firstOver(x); inside != nil {
		return nil, p.badOver(word.text, inside)
	}
	if t := p.tok; t.is("->") || t.is(".") || t.is("[") {
		return nil, p.errorf(t.at, "%s after '%s': members belong inside the parentheses", t, p.text[at.Start:at.End]).
			WithHint("for example %s(file->f_pos)", word.text)
	}
	if word.text == "after" {
		return &After{x, at}, nil
	}
	return &Diff{x, at}, nil
}

// badOver returns the error for after or diff inside of one of them.
func (p *parser) badOver(outer string, inside Expr) error {
	inner := "after"
	if _, ok := inside.(*Diff); ok {
		inner = "diff"
	}
	err := p.errorf(inside.Span(), "'%s' inside of '%s'", inner, outer)
	if outer == "diff" {
		return err.WithHint("diff(V) reads V at entry and at return: leave out the '%s'", inner)
	}
	return err.WithHint("leave out the '%s'", inner)
}

// firstOver returns the first after or diff in x, or nil.
func firstOver(x Expr) (found Expr) {
	Walk(x, func(e Expr) {
		switch e.(type) {
		case *After, *Diff:
			if found == nil {
				found = e
			}
		}
	})
	return found
}

// checkOver refuses a comparison of a diff, and after and diff as parts of values that
// cannot have them.
func (p *parser) checkOver(item *Item) (err error) {
	if d, ok := item.Value.(*Diff); ok && item.Pred != nil {
		return p.errorf(item.Pred.OpAt, "'%s' is what has changed, and cannot be compared", d).
			WithHint("it holds if anything has changed; compare the value at return: after(%s)", d.X)
	}
	item.Walk(func(e Expr) {
		var of Expr
		switch e := e.(type) {
		case *Diff:
			if e != item.Value && err == nil {
				err = p.errorf(e.At, "'%s' is a whole item, and no part of a value", e).WithHint("after(%s) is a value", e.X)
			}
		case *Deref:
			of = e.X
		case *Cast:
			of = e.X
		}
		if a, ok := of.(*After); ok && err == nil {
			err = p.errorf(e.Span(), "'*' and casts belong inside of 'after'").WithHint("for example after(*pos); this is after(%s)", a.X)
		}
	})
	return err
}
