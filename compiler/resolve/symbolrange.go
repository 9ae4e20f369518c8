package resolve

import (
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// inFunction binds a condition on which function an address is in. Like all conditions
// on the symbol at an address, it becomes one on the ranges that the address is in.
func (b *builder) inFunction(item *spec.Item, v *compiler.Value, negative bool) (compiler.Cond, error) {
	c := item.Pred.Const
	table, err := b.symbolTable(item, v)
	if err != nil {
		return nil, err
	}
	var functions []kallsyms.Symbol
	if c.Kind == spec.Integer {
		if s, _, ok := table.At(c.Abs); ok && s.Text() {
			functions = append(functions, s)
		}
	} else {
		functions = slices.DeleteFunc(table.Lookup(c.Str), func(s kallsyms.Symbol) bool { return !s.Text() })
	}
	if len(functions) == 0 && c.Kind == spec.Integer {
		return nil, b.errorf(c.At, "there is no function at %s", c.Text)
	}
	if len(functions) == 0 {
		return nil, b.noFunction(c, table)
	}
	return inSymbols(item, v, table, functions, negative), nil
}

// noFunction returns the error for a name that is not a function.
func (b *builder) noFunction(c spec.Constant, table *kallsyms.Table) error {
	err := b.errorf(c.At, "there is no function %s in this kernel", spec.Quote(c.Str))
	names := func(yield func(string) bool) {
		for s := range table.Functions() {
			if !yield(s.Name) {
				return
			}
		}
	}
	if near, ok := spec.Nearest(c.Str, names); ok {
		return err.WithMeant("%s", near)
	}
	return err
}

// ofSymbol binds a condition on the text of a symstr: NAME+0xOFFSET/0xSIZE. Only a
// star may stand for the part after the name.
func (b *builder) ofSymbol(item *spec.Item, v *compiler.Value, negative bool) (compiler.Cond, error) {
	c := item.Pred.Const
	table, err := b.symbolTable(item, v)
	if err != nil {
		return nil, err
	}
	name, ok := strings.CutSuffix(c.Str, "*")
	whole := strings.HasSuffix(name, "+")
	name = strings.TrimSuffix(name, "+")
	if item.Pred.Op != spec.Glob || !ok || strings.Contains(name, "+") {
		return nil, b.errorf(c.At, "'%s' is a name with an offset and a size after it, so it is compared with a pattern that ends in '*'", v.Name).
			WithHint(`write '%s ~ "%s+*"'`, item.Value, strings.SplitN(c.Str, "+", 2)[0])
	}
	if !whole {
		name += "*"
	}
	glob, err := newGlob(name)
	if err != nil {
		return nil, err
	}
	var symbols []kallsyms.Symbol
	for s := range table.All() {
		if glob.Matches(s.Name) {
			if shown, _, ok := table.At(s.Addr); ok && shown == s {
				symbols = append(symbols, s)
			}
		}
	}
	if len(symbols) == 0 {
		return nil, b.errorf(c.At, "no symbol of this kernel has a name like %s", spec.Quote(name))
	}
	t := inSymbols(item, v, table, symbols, negative)
	if n := len(t.Pred.Ranges); n > mostRanges {
		return nil, b.errorf(c.At, "symbols with names like %s are in %d places, and %d is the limit", spec.Quote(name), n, mostRanges)
	}
	return t, nil
}

// symbolTable returns the table in which the addresses of a condition on v are
// looked up.
func (b *builder) symbolTable(item *spec.Item, v *compiler.Value) (*kallsyms.Table, error) {
	at := item.Value.Span()
	switch table := b.target.Symbols; {
	case v.Scalar == nil, v.Scalar.Width() != 64:
		return nil, b.errorf(at, "'%s' is %s, not an address of 64 bits", v.Name, describe(v.Type))
	case table == nil:
		return nil, withoutSymbols(b.errorf(at, "what '%s' is in is not known, as there is no symbol table", v.Name))
	case table.Hidden():
		return nil, b.errorf(at, "what '%s' is in is not known: %v", v.Name, table.NeedAddresses()).WithKind(spec.HiddenAddresses)
	default:
		return table, nil
	}
}

// inSymbols returns the condition that an address is in one of the symbols.
func inSymbols(item *spec.Item, v *compiler.Value, table *kallsyms.Table, symbols []kallsyms.Symbol, negative bool) *compiler.Leaf {
	var ranges []compiler.Range
	for _, s := range symbols {
		ranges = append(ranges, compiler.Range{Low: s.Addr, High: table.End(s) - 1})
	}
	return inRanges(item, v, ranges, negative)
}

// inRanges returns the condition that a number is in one of the ranges, or in
// none if the operator is != or negative is set.
func inRanges(item *spec.Item, v *compiler.Value, ranges []compiler.Range, negative bool) *compiler.Leaf {
	return &compiler.Leaf{Value: v, Pred: &compiler.Predicate{
		Text: item.String(), Op: item.Pred.Op, Not: negative != (item.Pred.Op == spec.Ne), Ranges: joinRanges(ranges),
	}}
}

// asksNames reports whether a line needs the symbol at an address, or the end
// of a function.
func asksNames(t *spec.Trace) bool {
	if t.Line.Address != 0 || t.Line.Offset > 0 {
		return true
	}
	return slices.ContainsFunc(t.AllItems(), func(item *spec.Item) bool {
		f, ok := item.Value.(*spec.Field)
		return ok && (f.As.Name == "function" || f.Of != nil && f.Of.Type != nil && f.Of.Type.Name == "symstr")
	})
}
