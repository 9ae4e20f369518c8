package spec

// Span returns the place of the item with its name, format and predicate.
func (i *Item) Span() Span {
	at := i.Value.Span()
	switch {
	case i.Type != nil:
		at.End = i.Type.At.End
	case i.Format.Name != "":
		at.End = i.Format.At.End
	}
	if i.Name.Name != "" {
		at.Start = i.Name.At.Start
	}
	if i.Pred != nil {
		at.End = i.Pred.Span().End
	}
	return at
}

// Span returns the place of the operator and of what the value is compared with.
func (p *Predicate) Span() Span {
	if p.With != nil {
		return Span{p.OpAt.Start, p.With.Span().End}
	}
	return Span{p.OpAt.Start, max(p.OpAt.End, p.Const.At.End)}
}

// Span returns the place of the name.
func (a *Arg) Span() Span { return a.Name.At }

// Span returns the place of the word return.
func (r *Return) Span() Span { return r.At }

// Span returns the place of the name with the $.
func (b *Builtin) Span() Span { return b.Name.At }

// Span returns the place of the name with the @.
func (g *Global) Span() Span { return g.Name.At }

// Span returns the place of the whole value, from the argument on.
func (m *Member) Span() Span { return Span{m.X.Span().Start, m.Name.At.End} }

// Span returns the place of the whole value, from the argument on.
func (i *Index) Span() Span { return Span{i.X.Span().Start, i.At.End} }

// Span returns the place of the star and the value.
func (d *Deref) Span() Span { return Span{d.At.Start, d.X.Span().End} }

// Span returns the place of the type and the value.
func (c *Cast) Span() Span { return Span{c.At.Start, c.X.Span().End} }

// Span returns the place of both conditions.
func (a *And) Span() Span { return Span{a.X.Span().Start, a.Y.Span().End} }

// Span returns the place of both conditions.
func (o *Or) Span() Span { return Span{o.X.Span().Start, o.Y.Span().End} }

// Span returns the place of the ! and the condition.
func (n *Not) Span() Span { return Span{n.At.Start, n.X.Span().End} }
