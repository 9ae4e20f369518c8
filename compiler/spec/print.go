package spec

import (
	"slices"
	"strconv"
	"strings"
)

// ops has the operators as they are written.
var ops = [...]string{Eq: "==", Ne: "!=", Lt: "<", Le: "<=", Gt: ">", Ge: ">=", Mask: "&", Glob: "~", IsErr: "is-err"}

// String returns o as it is written in a spec.
func (o Op) String() string {
	if int(o) >= len(ops) || o == 0 {
		return "Op(" + strconv.Itoa(int(o)) + ")"
	}
	return ops[o]
}

// String returns t in canonical form, which parses to t again.
func (t *Trace) String() string {
	if t.Line != nil {
		return t.probeLine()
	}
	if t.Values {
		text := t.listText()
		if t.Cond != nil {
			text += " if " + t.Cond.String()
		}
		return text
	}
	text := t.point()
	if t.Ending == nil {
		return text
	}
	text += " => " + t.Ending.point() + " on " + within(t.Key, shifting)
	if key := within(t.Ending.Key, shifting); key != within(t.Key, shifting) {
		text += " == " + key
	}
	return text
}

// point returns the target of t with its list and its condition.
func (t *Trace) point() string {
	text := t.Target()
	if t.Items != nil {
		text += "(" + t.listText() + ")"
	}
	if t.Cond != nil {
		text += " if " + t.Cond.String()
	}
	return text
}

// Target returns the function, tracepoint or iterator that t traces, with its module, such as
// "ext4:ext4_*".
func (t *Trace) Target() string {
	switch {
	case t.Values:
		return t.Items[0].Value.String()
	case t.Tracepoint:
		return "tp:" + t.Func.Name
	case t.Iterator:
		return "iter:" + t.Func.Name
	case t.Module.Name != "":
		return t.Module.Name + ":" + t.Func.Name
	default:
		return t.Func.Name
	}
}

// String returns i in canonical form: "skb->len:x > 100", "len=+8(%di):u32".
func (i *Item) String() string {
	least := bitOr
	if i.Pred != nil {
		least = shifting
	}
	text := within(i.Value, least)
	if i.Name.Name != "" {
		text = i.Name.Name + "=" + text
	}
	switch {
	case i.Type != nil:
		text += ":" + i.Type.String()
	case i.Format.Name != "":
		text += ":" + i.Format.Name
	}
	if i.Pred != nil {
		text += " " + i.predicate()
	}
	return text
}

// predicate returns the predicate in canonical form. In the filter of a
// kprobe_events line strings have no escapes.
func (i *Item) predicate() string {
	_, filter := i.Value.(*Field)
	switch c := i.Pred.Const; {
	case !filter || c.Kind != String:
		return i.Pred.String()
	case strings.Contains(c.Str, `"`):
		return i.Pred.Op.String() + " '" + c.Str + "'"
	default:
		return i.Pred.Op.String() + ` "` + c.Str + `"`
	}
}

// String returns p in canonical form: "> 100".
func (p *Predicate) String() string {
	if p.Op == IsErr {
		return p.Op.String()
	}
	if p.With != nil {
		return p.Op.String() + " " + within(p.With, shifting)
	}
	return p.Op.String() + " " + p.Const.String()
}

// String returns the name of the argument.
func (a *Arg) String() string { return a.Name.Name }

// String returns "return".
func (r *Return) String() string { return "return" }

// String returns "$" and the name.
func (b *Builtin) String() string { return "$" + b.Name.Name }

// String returns "@" and the name.
func (g *Global) String() string { return "@" + g.Name.Name }

// String returns m in canonical form: "skb->dev->name".
func (m *Member) String() string {
	if m.Dot {
		return operand(m.X) + "." + m.Name.Name
	}
	return operand(m.X) + "->" + m.Name.Name
}

// String returns i in canonical form: "name[0]".
func (i *Index) String() string {
	return operand(i.X) + "[" + strconv.FormatUint(i.N, 10) + "]"
}

// String returns d in canonical form: "*skb->dev".
func (d *Deref) String() string { return "*" + within(d.X, single) }

// String returns c in canonical form: "(struct sock *)sk". A star after the type of an
// array would multiply.
func (c *Cast) String() string {
	text := within(c.X, single)
	if c.Type.Count > 0 && strings.HasPrefix(text, "*") {
		text = "(" + text + ")"
	}
	return "(" + c.Type.String() + ")" + text
}

// String returns t in canonical form: "struct sock *".
func (t TypeName) String() string {
	text := t.Name
	if t.Stars > 0 {
		text += " " + strings.Repeat("*", t.Stars)
	}
	if t.Count > 0 {
		text += "[" + strconv.FormatUint(t.Count, 10) + "]"
	}
	return text
}

// operand returns x as the operand of a member or an index, in parentheses if it
// needs them.
func operand(x Expr) string {
	switch x.(type) {
	case *Deref, *Cast, *Binary:
		return "(" + x.String() + ")"
	default:
		return x.String()
	}
}

// String returns a in canonical form: "a && (b || c)".
func (a *And) String() string {
	var x Cond = a
	var terms []string // in reverse order, as a long condition nests to the left
	for and, ok := a, true; ok; and, ok = x.(*And) {
		terms = append(terms, closed(and.Y, comparison))
		x = and.X
	}
	terms = append(terms, closed(x, conjunction))
	slices.Reverse(terms)
	return strings.Join(terms, " && ")
}

// String returns o in canonical form: "a || b && c".
func (o *Or) String() string {
	var x Cond = o
	var terms []string // in reverse order, as a long condition nests to the left
	for or, ok := o, true; ok; or, ok = x.(*Or) {
		terms = append(terms, closed(or.Y, conjunction))
		x = or.X
	}
	terms = append(terms, x.String())
	slices.Reverse(terms)
	return strings.Join(terms, " || ")
}

// String returns n in canonical form: "!(a == 5)".
func (n *Not) String() string { return "!" + closed(n.X, unary) }

// binding is the precedence of a condition's operator.
type binding int

const (
	disjunction binding = iota // a || b
	conjunction                // a && b
	comparison                 // a == b
	unary                      // !a, a
)

func bindingOf(x Cond) binding {
	switch x := x.(type) {
	case *Or:
		return disjunction
	case *And:
		return conjunction
	case *Item:
		if x.Pred != nil || isBinary(x.Value) {
			return comparison
		}
	}
	return unary
}

// closed returns x in canonical form, in parentheses if it binds weaker than least.
func closed(x Cond, least binding) string {
	if bindingOf(x) < least {
		return "(" + x.String() + ")"
	}
	return x.String()
}

// cpuSet returns a set of processors in canonical form: "CPUS{0-3,8}".
func cpuSet(ranges []CPURange) string {
	parts := make([]string, len(ranges))
	for i, r := range ranges {
		parts[i] = strconv.Itoa(r.First)
		if r.Last > r.First {
			parts[i] += "-" + strconv.Itoa(r.Last)
		}
	}
	return "CPUS{" + strings.Join(parts, ",") + "}"
}

// String returns c without blanks and without a plus sign. Numbers keep the base in
// which they were written.
func (c Constant) String() string {
	text := strings.TrimLeft(c.Text, "+- \t\n\v\f\r")
	switch {
	case c.Kind == CPUs:
		return cpuSet(c.CPUs)
	case c.Kind == String:
		return `"` + escape(c.Str, '"') + `"`
	case c.Kind == Name:
		text = c.Str
	case text != "":
	case c.Kind == Duration:
		text = strconv.FormatUint(c.Abs, 10) + "ns"
	default:
		text = strconv.FormatUint(c.Abs, 10)
	}
	if c.Neg {
		return "-" + text
	}
	return text
}
