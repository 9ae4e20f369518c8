package spec

import (
	"slices"
	"strings"
)

// Aggregate is Name(X): a number or a histogram of the calls. It is always the whole
// value of an item of the list. If a spec has one, its other items are the key by
// which calls are counted.
type Aggregate struct {
	Name   Ident      // one of [Aggregates]
	X      Expr       // nil for count()
	Bounds []Constant // LO, HI and STEP of lhist(X, LO, HI, STEP)
	At     Span       // from the name to the closing parenthesis
}

// Aggregates lists the names of aggregates.
var Aggregates = []string{"count", "sum", "avg", "min", "max", "hist", "lhist"}

// Span returns the place of the aggregate.
func (a *Aggregate) Span() Span { return a.At }

// String returns a in canonical form: "hist($duration)".
func (a *Aggregate) String() string {
	var parts []string
	if a.X != nil {
		parts = append(parts, a.X.String())
	}
	for _, c := range a.Bounds {
		parts = append(parts, c.String())
	}
	return a.Name.Name + "(" + strings.Join(parts, ", ") + ")"
}

// Aggregates returns the aggregates of a spec in their order, those at the end of a
// span included. If there are none, its calls are events.
func (t *Trace) Aggregates() (all []*Aggregate) {
	for ; t != nil; t = t.Ending {
		for _, item := range t.Items {
			if a, ok := item.Value.(*Aggregate); ok {
				all = append(all, a)
			}
		}
	}
	return all
}

// usage returns an example of how an aggregate is written.
func usage(name string) string {
	switch name {
	case "count":
		return "count()"
	case "lhist":
		return "lhist(count, 0, 4096, 512)"
	default:
		return name + "(count)"
	}
}

// atAggregate reports whether an aggregate begins at tok.
func (p *parser) atAggregate() bool {
	if p.tok.kind != name || !slices.Contains(Aggregates, p.tok.text) {
		return false
	}
	ahead := lookahead{lexer: p.lexer}
	ahead.advance()
	return ahead.tok.is("(")
}

// aggregate parses an aggregate, which is a whole item.
func (p *parser) aggregate() (_ *Item, err error) {
	a := &Aggregate{At: p.tok.at}
	p.number = true
	if a.Name, err = p.ident(); err != nil {
		return nil, err
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	if err := p.advance(); err != nil {
		return nil, err
	}
	if err := p.operands(a); err != nil {
		return nil, err
	}
	if !p.tok.is(")") {
		return nil, p.badInAggregate(a)
	}
	a.At.End = p.tok.at.End
	if err := p.advance(); err != nil {
		return nil, err
	}
	item := &Item{Value: a}
	p.last = item
	switch t := p.tok; {
	case t.is(":"):
		return nil, p.errorf(t.at, "an aggregate has no format")
	case t.operator():
		return nil, p.errorf(t.at, "an aggregate is not compared: it is known when calls have been counted").
			WithHint("a condition is about one call: vfs_read(count()) if return > 0")
	case t.arithmetic() != 0:
		return nil, p.errorf(t.at, "an aggregate is a whole item, not a part of a value").
			WithHint("compute inside of it: sum(count * 2)")
	}
	return item, nil
}

// operands parses what is between the parentheses of an aggregate.
func (p *parser) operands(a *Aggregate) (err error) {
	if a.Name.Name == "count" {
		if !p.tok.is(")") && p.tok.kind != end {
			return p.errorf(p.tok.at, "count() counts calls, and takes no value").WithHint("the sum of a value is sum(...)")
		}
		return nil
	}
	if p.tok.is(")") || p.tok.is(",") {
		return p.errorf(p.tok.at, "a value is missing after '%s('", a.Name.Name).WithHint("write %s", usage(a.Name.Name))
	}
	if a.X, err = p.expression(bitOr); err != nil {
		return err
	}
	if a.Name.Name != "lhist" {
		return nil
	}
	p.last = &Item{Value: a.X}
	for _, bound := range []string{"lower bound", "upper bound", "step"} {
		if !p.tok.is(",") {
			if !p.tok.is(")") {
				return nil // what is wrong is at tok
			}
			return p.errorf(p.tok.at, "the %s of the histogram is missing", bound).
				WithHint("lhist takes a value, a lower bound, an upper bound and a step: %s", usage("lhist"))
		}
		if err := p.advance(); err != nil {
			return err
		}
		c, err := p.constant()
		if err != nil {
			return err
		}
		a.Bounds = append(a.Bounds, c)
	}
	return nil
}

// badInAggregate returns the error for an unexpected token in the parentheses of an
// aggregate.
func (p *parser) badInAggregate(a *Aggregate) error {
	switch t := p.tok; {
	case t.kind == end:
		return p.errorf(t.at, "')' is missing")
	case t.is(",") && a.Name.Name == "hist":
		return p.errorf(t.at, "hist has no bounds: its buckets are powers of two").
			WithHint("buckets of equal width: %s", usage("lhist"))
	case t.is(","):
		return p.errorf(t.at, "%s takes no more than that", a.Name.Name).WithHint("write %s", usage(a.Name.Name))
	case t.is(":"):
		return p.errorf(t.at, "a format inside an aggregate").WithHint("numbers of aggregates have none")
	case t.operator():
		return p.errorf(t.at, "a comparison inside an aggregate").
			WithHint("which calls are counted is written after 'if': vfs_read(count()) if return > 0")
	case t.otherArithmetic():
		return p.noArithmetic("')'")
	default:
		return p.unexpected("')'")
	}
}

// badAggregate returns the error for an aggregate where a value of one call is
// expected.
func (p *parser) badAggregate() error {
	t := p.tok
	if p.of.Values {
		return p.errorf(t.at, "%s() counts calls, and there is none", t.text).WithHint("ksnoop trace counts them: vfs_read(%s)", usage(t.text))
	}
	if p.cond {
		return p.errorf(t.at, "%s() is an aggregate, and a condition is about one call", t.text).
			WithHint("aggregates are items of the list: vfs_read(%s) if return > 0", usage(t.text))
	}
	return p.errorf(t.at, "%s() is a whole item, not a part of a value", t.text).WithHint("compute inside of it: sum(count * 2)")
}
