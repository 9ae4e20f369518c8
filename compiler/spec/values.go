package spec

import (
	"cmp"
	"strings"
)

// ParseValues parses a list of values as it is in the parentheses of a spec. The values
// are read at any moment, without a call, so nothing that belongs to a call can be among
// them. The trace has no function. The error is always an [*Error].
func ParseValues(text string) (*Trace, error) {
	if len(text) > longest {
		return nil, Errorf(text[:longest], Span{longest, longest}, "the values have %d bytes, the limit is %d", len(text), longest)
	}
	p := &parser{lexer: lexer{text: text}, bare: true}
	return p.bareItems(&Trace{Text: text, Values: true}, p.ofNoCall)
}

// ParseItems parses a list of items as it is in the parentheses of a spec. The trace has
// no function. The error is always an [*Error].
func ParseItems(text string) (*Trace, error) {
	if len(text) > longest {
		return nil, Errorf(text[:longest], Span{longest, longest}, "the values have %d bytes, the limit is %d", len(text), longest)
	}
	p := &parser{lexer: lexer{text: text}, bare: true}
	return p.bareItems(&Trace{Text: text}, p.listed)
}

// bareItems adds the items of a list without parentheses, each of which one parses, to t.
func (p *parser) bareItems(t *Trace, one func() (*Item, error)) (*Trace, error) {
	p.of = t
	for {
		if err := p.advance(); err != nil {
			return nil, err
		}
		item, err := one()
		if err != nil {
			return nil, err
		}
		t.Items = append(t.Items, item)
		switch {
		case p.tok.kind == end:
			return t, nil
		case !p.tok.is(","):
			return nil, p.badAfterValue()
		}
	}
}

// ofNoCall parses a value that is read without a call.
func (p *parser) ofNoCall() (*Item, error) {
	if p.tok.kind == end {
		return nil, p.errorf(p.tok.at, "a value is missing").
			WithHint("such as @jiffies_64 with a cast, $task->comm, or *(struct file *)0xffff888012345600")
	}
	if err := p.ofSpec(); err != nil {
		return nil, err
	}
	item, err := p.item()
	if err != nil {
		return nil, err
	}
	if value := item.asValue(); value != nil {
		item.Value, item.Pred = value, nil
	}
	if item.Pred != nil {
		return nil, p.errorf(item.Pred.OpAt, "a comparison, where values are shown").WithHint("leave it out")
	}
	item.Walk(func(e Expr) {
		if err == nil {
			err = p.ofCall(e)
		}
	})
	return item, err
}

// ofSpec returns an error for what begins a spec: a tracepoint or an iterator.
func (p *parser) ofSpec() error {
	shows := "calls"
	switch {
	case p.tok.word("iter"):
		shows = "a row for each object"
	case !p.tok.word("tp"):
		return nil
	}
	ahead := lookahead{lexer: p.lexer}
	if ahead.advance(); !ahead.tok.is(":") {
		return nil
	}
	return p.errorf(p.tok.at, "'%s:' begins a spec, and values are read without one", p.tok.text).
		WithHint("ksnoop '%s:...' shows %s", p.tok.text, shows)
}

// ofCall returns an error for a value that belongs to a call.
func (p *parser) ofCall(e Expr) error {
	without, hint := "values are read without one", "without a call, there are $task $comm $pid $tid $ppid $uid $cgroup $container, of ksnoop itself, and $cpu"
	if p.of.Watch {
		without, hint = "a write is none", "of a write, there are $task $comm $pid $tid $ppid $uid $cgroup, of the process that writes, and $cpu"
	}
	switch e := e.(type) {
	case *Return, *After, *Diff:
		hint = "ksnoop trace shows calls"
	case *Builtin:
		if WithoutCall(e.Name.Name) {
			return nil
		}
	default:
		return nil
	}
	return p.errorf(e.Span(), "'%s' is of a call, and %s", e, without).WithHint("%s", hint)
}

// WithoutCall reports whether a builtin is known at any moment, and not only at a call.
func WithoutCall(builtin string) bool {
	switch builtin {
	case "retval", "duration", "kstack", "ustack":
		return false
	}
	return !strings.HasPrefix(builtin, "arg")
}

// badAfterValue returns the error for an unexpected token after a value.
func (p *parser) badAfterValue() error {
	switch t := p.tok; {
	case (t.is("->") || t.is(".") || t.is("[")) && p.castNumber():
		return p.errorf(t.at, "%s belongs to what the cast is of, which is a number", t).
			WithHint("put the cast in parentheses: ((struct NAME *)0xffff888012345600)->MEMBER")
	case t.word("if"):
		return p.errorf(t.at, "a condition, where values are shown").WithHint("leave it out")
	case t.arrow():
		return p.errorf(t.at, "a span joins two calls, and these are values").WithHint("ksnoop trace shows spans: A => B on KEY")
	case t.is(")"):
		return p.errorf(t.at, "')' without '('")
	case t.is("("):
		return p.unexpected("',' or the end").WithHint("%s", cmp.Or(p.functionHint(p.prev.text), "ksnoop trace shows calls"))
	case t.otherArithmetic():
		return p.noArithmetic("','")
	}
	return p.unexpected("',' or the end")
}

// castNumber reports whether the latest value ends with a number that is cast.
func (p *parser) castNumber() bool {
	if p.last == nil {
		return false
	}
	cast, ok := p.last.Value.(*Cast)
	if !ok {
		return false
	}
	_, ok = cast.X.(*Number)
	return ok
}

// listText returns the items of t as they are written in a list.
func (t *Trace) listText() string {
	items := make([]string, len(t.Items))
	for i, item := range t.Items {
		items[i] = item.String()
	}
	return strings.Join(items, ", ")
}
