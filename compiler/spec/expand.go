package spec

import "slices"

// Expand returns a copy of t in which the arguments of the function, params,
// replace $arg*, and the names in the filter refer to them. If t does not have
// $arg*, it returns t.
func (t *Trace) Expand(params []string) (*Trace, error) {
	all := slices.IndexFunc(t.Items, func(i *Item) bool { _, is := i.Value.(*AllArgs); return is })
	if all < 0 {
		return t, nil
	}
	at := t.Items[all].Value.Span()
	var items []*Item
	for _, name := range params {
		items = append(items, &Item{Value: &Arg{Name: Ident{name, at}}})
	}
	expanded := *t
	expanded.Items = slices.Concat(t.Items[:all], items, t.Items[all+1:])
	if err := expanded.CheckNames(); err != nil {
		return nil, err
	}
	var err error
	expanded.Cond, err = expanded.bindFields(t.Cond)
	return &expanded, err
}

// CheckNames returns an error if two arguments of a line have the same name.
func (t *Trace) CheckNames() error {
	names := t.ItemNames()
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			at := t.Items[i].Span()
			if n := t.Items[i].Name; n.Name != "" {
				at = n.At
			}
			return t.Errorf(at, "a second argument with the name %s", Quote(name)).
				WithHint("give it another one: NAME=%s", t.Items[i].Value)
		}
	}
	return nil
}

// bindFields returns a copy of c in which every field refers to an item of t.
func (t *Trace) bindFields(c Cond) (Cond, error) {
	switch c := c.(type) {
	case *And:
		x, y, err := t.bindBoth(c.X, c.Y)
		return &And{x, y}, err
	case *Or:
		x, y, err := t.bindBoth(c.X, c.Y)
		return &Or{x, y}, err
	case *Not:
		x, err := t.bindFields(c.X)
		return &Not{x, c.At}, err
	case *Item:
		return t.bindField(c)
	}
	return c, nil
}

func (t *Trace) bindBoth(x, y Cond) (Cond, Cond, error) {
	x, err := t.bindFields(x)
	if err != nil {
		return nil, nil, err
	}
	y, err = t.bindFields(y)
	return x, y, err
}

// bindField returns a copy of a predicate whose field refers to an item of t.
func (t *Trace) bindField(item *Item) (Cond, error) {
	field, ok := item.Value.(*Field)
	if !ok || field.Of != nil {
		return item, nil
	}
	bound := *field
	if bound.Of = t.FieldItem(field.Name); bound.Of == nil {
		return nil, t.NoField(field.Name)
	}
	return &Item{Value: &bound, Pred: item.Pred}, nil
}
