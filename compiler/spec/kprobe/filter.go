package kprobe

import "github.com/ksnoop/ksnoop/compiler/spec"

// filter parses the filter after the word if, up to the end of the line.
func (p *parser) filter(at spec.Span) (err error) {
	p.open(at)
	p.blanks()
	if p.trace.Cond, err = p.or(); err != nil {
		return err
	}
	if p.pos < p.end {
		return p.badAfterTerm("the end")
	}
	return nil
}

// blanks skips blanks. All methods for filters return with pos after the blanks
// that follow what they parsed.
func (p *parser) blanks() { p.run(spec.IsBlank) }

// operator moves past an operator and the blanks after it. It returns false if
// another token follows.
func (p *parser) operator(text string) bool {
	ok := p.accept(text)
	if ok {
		p.blanks()
	}
	return ok
}

// or parses predicates joined by ||.
func (p *parser) or() (spec.Cond, error) {
	x, err := p.and()
	for err == nil && p.operator("||") {
		var y spec.Cond
		y, err = p.and()
		x = &spec.Or{X: x, Y: y}
	}
	return x, err
}

// and parses predicates joined by &&.
func (p *parser) and() (spec.Cond, error) {
	x, err := p.unary()
	for err == nil && p.operator("&&") {
		var y spec.Cond
		y, err = p.unary()
		x = &spec.And{X: x, Y: y}
	}
	return x, err
}

// unary parses a predicate, which may be negated or in parentheses. A parenthesis after a
// ! does not count for the limit of nesting because printing adds one there.
func (p *parser) unary() (spec.Cond, error) {
	not := p.has("!") && !p.has("!=")
	if !not && !p.has("(") {
		return p.term()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	if !not {
		return p.group()
	}
	at := p.at(1)
	p.operator("!")
	inner := p.unary
	if p.has("(") {
		inner = p.group
	}
	x, err := inner()
	return &spec.Not{X: x, At: at}, err
}

// group parses predicates in parentheses.
func (p *parser) group() (spec.Cond, error) {
	p.operator("(")
	x, err := p.or()
	if err == nil && !p.operator(")") {
		err = p.unclosedGroup()
	}
	return x, err
}

// term parses FIELD OP CONSTANT.
func (p *parser) term() (spec.Cond, error) {
	field, err := p.field()
	if err != nil {
		return nil, err
	}
	item := &spec.Item{Value: field, Pred: &spec.Predicate{}}
	start := p.pos
	if item.Pred.Op, err = p.compare(field); err != nil {
		return nil, err
	}
	item.Pred.OpAt = p.from(start)
	p.blanks()
	if err := p.checkOp(item.Pred, field); err != nil {
		return nil, err
	}
	if item.Pred.Const, err = p.constant(item); err != nil {
		return nil, err
	}
	p.blanks()
	return item, p.checkPredicate(item, field)
}

// ops lists the operators. An operator comes before its own prefixes.
var ops = []spec.Op{spec.Eq, spec.Ne, spec.Le, spec.Ge, spec.Lt, spec.Gt, spec.Mask, spec.Glob}

// compare parses an operator.
func (p *parser) compare(field *spec.Field) (spec.Op, error) {
	if p.has("&&") {
		return 0, p.noOp(field)
	}
	for _, op := range ops {
		if p.accept(op.String()) {
			return op, nil
		}
	}
	return 0, p.noOp(field)
}

// field parses a name and its suffix .function or .ustring.
func (p *parser) field() (*spec.Field, error) {
	id := p.run(spec.IsWord)
	if id.Name == "" || spec.IsDigit(id.Name[0]) {
		p.pos = id.At.Start
		return nil, p.noField()
	}
	f := &spec.Field{Name: id}
	if p.accept(".") {
		f.As = p.run(spec.IsWord)
		if f.As.Name != "function" && f.As.Name != "ustring" {
			return nil, p.badAs(f)
		}
	}
	p.blanks()
	if p.allArgs() { // the names of the other arguments are not yet known
		f.Of = p.named(id.Name)
		return f, nil
	}
	f.Of = p.trace.FieldItem(id)
	if f.Of == nil {
		return nil, p.unknownField(id)
	}
	return f, nil
}

// named returns the argument called name, or nil.
func (p *parser) named(name string) *spec.Item {
	for _, item := range p.trace.Items {
		if item.Name.Name == name {
			return item
		}
	}
	return nil
}

// unknownField returns the error for a name that is not a field of this event.
func (p *parser) unknownField(id spec.Ident) error {
	switch id.Name {
	case "common_type", "common_flags", "common_preempt_count", "common_tgid", "stacktrace", "STACKTRACE":
		return p.errorf(id.At, "'%s' is not recorded", id.Name)
	case "__probe_ip", "__probe_func":
		return p.errorf(id.At, "'%s' is the same in all events of a probe", id.Name)
	case "__probe_ret_ip":
		return p.errorf(id.At, "'%s' is a field of return probes", id.Name)
	}
	return p.trace.NoField(id)
}
