package spec

import (
	"slices"
	"strings"
)

// list parses the items and the parentheses around them.
func (p *parser) list(t *Trace) error {
	open := p.tok
	if err := p.advance(); err != nil {
		return err
	}
	switch {
	case p.tok.is(")") && p.part:
		t.Items = []*Item{}
		return p.advance()
	case p.tok.is(")"):
		return p.emptyList(open)
	}
	for {
		item, err := p.item()
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

// item parses a value, perhaps with a format and a predicate.
func (p *parser) item() (*Item, error) {
	value, err := p.value()
	if err != nil {
		return nil, err
	}
	return p.itemOf(value)
}

// itemOf parses what may stand behind the value of an item.
func (p *parser) itemOf(value Expr) (item *Item, err error) {
	item = &Item{Value: value}
	p.last = item
	if p.tok.is(":") {
		if item.Format, err = p.format(); err != nil {
			return nil, err
		}
	}
	switch {
	case p.tok.operator():
		item.Pred, err = p.predicate()
	case p.tok.word("is"):
		item.Pred, err = p.isErr()
	}
	return item, err
}

// isErr parses the words of [IsErr], which stand without blanks.
func (p *parser) isErr() (*Predicate, error) {
	at := p.tok.at
	p.pos = at.End
	p.skip(func(c byte) bool { return isWord(c) || c == '-' })
	if at.End = p.pos; p.text[at.Start:at.End] != ops[IsErr] {
		return nil, p.badIs(at)
	}
	return &Predicate{Op: IsErr, OpAt: at}, p.advance()
}

// format parses a colon and the format behind it.
func (p *parser) format() (id Ident, err error) {
	if err := p.advance(); err != nil {
		return id, err
	}
	if p.tok.kind != name || !slices.Contains(Formats, p.tok.text) {
		return id, p.badFormat()
	}
	return p.ident()
}

// badFormat refuses what stands behind the colon of a format.
func (p *parser) badFormat() error {
	all := "the formats are " + strings.Join(Formats, " ")
	switch t := p.tok; {
	case t.kind == end, t.is(","), t.is(")"), t.operator():
		return Errorf(p.text, t.at, "a format is missing after ':'").WithHint("%s", all)
	case t.kind != name:
		return p.expected("a format after ':'").WithHint("%s", all)
	default:
		err := Errorf(p.text, t.at, "%s is not a format", t)
		if near, ok := Nearest(t.text, slices.Values(Formats)); ok {
			return err.WithHint("did you mean '%s'?", near)
		}
		return err.WithHint("%s", all)
	}
}

// predicate parses an operator and a constant.
func (p *parser) predicate() (*Predicate, error) {
	op := slices.Index(ops[:], p.tok.text)
	if op < 0 {
		return nil, p.badOp()
	}
	pred := &Predicate{Op: Op(op), OpAt: p.tok.at}
	err := p.advance()
	switch {
	case err != nil:
	case pred.Op == Glob:
		pred.Const, err = p.pattern()
	default:
		pred.Const, err = p.constant()
	}
	return pred, err
}
