package spec

import (
	"strconv"
	"strings"
)

// ops are the comparison operators as they are written.
var ops = [...]string{Eq: "==", Ne: "!=", Lt: "<", Le: "<=", Gt: ">", Ge: ">="}

// String returns o as it is written in a spec.
func (o Op) String() string {
	if int(o) >= len(ops) || o == 0 {
		return "Op(" + strconv.Itoa(int(o)) + ")"
	}
	return ops[o]
}

// String returns t in canonical form, which parses to t again.
func (t *Trace) String() string {
	if len(t.Items) == 0 {
		return t.Func.Name
	}
	items := make([]string, len(t.Items))
	for i, item := range t.Items {
		items[i] = item.String()
	}
	return t.Func.Name + "(" + strings.Join(items, ", ") + ")"
}

// String returns i in canonical form: "skb->len > 100".
func (i *Item) String() string {
	if i.Pred == nil {
		return i.Value.String()
	}
	return i.Value.String() + " " + i.Pred.String()
}

// String returns p in canonical form: "> 100".
func (p *Predicate) String() string { return p.Op.String() + " " + p.Const.String() }

// String returns the name of the argument.
func (a *Arg) String() string { return a.Name.Name }

// String returns "return".
func (r *Return) String() string { return "return" }

// String returns m in canonical form: "skb->dev->name".
func (m *Member) String() string { return m.X.String() + "->" + m.Name.Name }

// String returns c without blanks and without a plus sign, in the base that it
// was written in.
func (c Constant) String() string {
	digits := strings.TrimLeft(c.Text, "+- \t\n\v\f\r")
	if digits == "" {
		digits = strconv.FormatUint(c.Abs, 10)
	}
	if c.Neg {
		return "-" + digits
	}
	return digits
}

// Span returns the place of the item with its predicate.
func (i *Item) Span() Span {
	at := i.Value.Span()
	if i.Pred != nil {
		at.End = i.Pred.Span().End
	}
	return at
}

// Span returns the place of the operator and the constant.
func (p *Predicate) Span() Span { return Span{p.OpAt.Start, p.Const.At.End} }

// Span returns the place of the name.
func (a *Arg) Span() Span { return a.Name.At }

// Span returns the place of the word return.
func (r *Return) Span() Span { return r.At }

// Span returns the place of the whole chain, from the argument on.
func (m *Member) Span() Span { return Span{m.X.Span().Start, m.Name.At.End} }
