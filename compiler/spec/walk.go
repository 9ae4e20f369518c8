package spec

// AllItems returns the items of the list and those of the condition.
func (t *Trace) AllItems() []*Item {
	items := append([]*Item(nil), t.Items...)
	return appendTests(items, t.Cond)
}

func appendTests(items []*Item, c Cond) []*Item {
	switch c := c.(type) {
	case *And:
		return appendTests(appendTests(items, c.X), c.Y)
	case *Or:
		return appendTests(appendTests(items, c.X), c.Y)
	case *Not:
		return appendTests(items, c.X)
	case *Item:
		return append(items, c)
	}
	return items
}

// Walk calls visit with x and with what x is made of, outermost first.
func Walk(x Expr, visit func(Expr)) {
	visit(x)
	switch x := x.(type) {
	case *Member:
		Walk(x.X, visit)
	case *Index:
		Walk(x.X, visit)
	case *Deref:
		Walk(x.X, visit)
	case *Cast:
		Walk(x.X, visit)
	case *Memory:
		Walk(x.X, visit)
	}
}
