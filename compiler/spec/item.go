package spec

import (
	"slices"
	"strings"
)

// list parses the items and the parentheses around them. If there are no items,
// only the call is recorded, and Items is empty but not nil.
func (p *parser) list(t *Trace) error {
	if err := p.advance(); err != nil {
		return err
	}
	if p.tok.is(")") {
		t.Items = []*Item{}
		return p.advance()
	}
	for {
		item, err := p.listed()
		if err != nil {
			return err
		}
		t.Items = append(t.Items, item)
		switch {
		case p.tok.is(")"):
			return p.advance()
		case !p.tok.is(","):
			return p.badAfterItem()
		}
		if err := p.advance(); err != nil {
			return err
		}
	}
}

// listed parses an item of the list.
func (p *parser) listed() (*Item, error) {
	if p.atAggregate() {
		return p.aggregate()
	}
	return p.item()
}

// item parses a value, which may have a format and a predicate.
func (p *parser) item() (*Item, error) {
	p.number = false
	value, err := p.leading(shifting)
	if err != nil {
		return nil, err
	}
	p.grouped = false
	return p.itemOf(value)
}

// itemOf parses the rest of an item: the operators after its first value, its
// format and its predicate.
func (p *parser) itemOf(value Expr) (item *Item, err error) {
	least := shifting
	if value, err = p.joined(value, shifting); err == nil && p.tok.is("|") {
		least = bitOr
		value, err = p.joined(value, bitOr)
	}
	if err != nil {
		return nil, err
	}
	item = &Item{Value: value}
	p.last = item
	if least == bitOr && p.tok.operator() {
		return nil, p.badPrecedence(value.(*Binary))
	}
	if p.tok.is(":") {
		if item.Format, err = p.format(); err != nil {
			return nil, err
		}
	}
	switch {
	case p.tok.arrow() && p.cond && p.open == 0: // the condition of a beginning ends here
	case p.tok.operator():
		item.Pred, err = p.predicate()
	case p.tok.word("is"):
		item.Pred, err = p.isErr()
	}
	if err == nil {
		err = p.checkOver(item)
	}
	return item, err
}

// isErr parses the operator is-err, which is written without blanks.
func (p *parser) isErr() (*Predicate, error) {
	at := p.tok.at
	p.pos = at.End
	p.skip(func(c byte) bool { return IsWord(c) || c == '-' })
	if at.End = p.pos; p.text[at.Start:at.End] != ops[IsErr] {
		return nil, p.badIs(at)
	}
	return &Predicate{Op: IsErr, OpAt: at}, p.advance()
}

// format parses a colon and the format after it.
func (p *parser) format() (id Ident, err error) {
	if err := p.advance(); err != nil {
		return id, err
	}
	if p.tok.kind != name || !slices.Contains(Formats, p.tok.text) {
		return id, p.badFormat()
	}
	return p.ident()
}

// badFormat returns the error for an invalid format after a colon.
func (p *parser) badFormat() error {
	all := "the formats are " + strings.Join(Formats, " ")
	switch t := p.tok; {
	case t.kind == end, t.is(","), t.is(")"), t.operator():
		return p.errorf(t.at, "a format is missing after ':'").WithHint("%s", all)
	case t.kind != name:
		return p.expected("a format after ':'").WithHint("%s", all)
	default:
		err := p.errorf(t.at, "%s is not a format", t)
		if word := formatHabits.Meaning(t.text); word != "" {
			return err.WithMeant("%s", word)
		}
		if slices.Contains(Aggregates, t.text) {
			return err.WithHint("it is an aggregate: write %s(VALUE)", t.text)
		}
		if near, ok := Nearest(t.text, slices.Values(Formats)); ok {
			return err.WithMeant("%s", near)
		}
		return err.WithHint("%s", all)
	}
}

// predicate parses an operator, and the constant or value after it.
func (p *parser) predicate() (*Predicate, error) {
	op := slices.Index(ops[:], p.tok.text)
	if op < 0 {
		return nil, p.badOp()
	}
	pred := &Predicate{Op: Op(op), OpAt: p.tok.at}
	p.number = true
	err := p.advance()
	switch {
	case err != nil:
	case pred.Op == Glob:
		pred.Const, err = p.pattern()
	default:
		err = p.comparand(pred)
	}
	return pred, err
}
