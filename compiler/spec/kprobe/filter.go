package kprobe

import "github.com/ksnoop/ksnoop/compiler/spec"

// filter parses what stands behind the word if, up to the end of the line.
func (p *parser) filter(at spec.Span) (err error) {
	p.open(at)
	p.blanks()
	if p.trace.Cond, err = p.or(); err != nil {
		return err
	}
	if p.pos < p.end {
		return p.badAfterTest("the end")
	}
	return nil
}

// blanks moves to what follows. All methods for filters leave pos there.
func (p *parser) blanks() { p.run(isBlank) }

// operator moves behind an operator and the blanks that follow it.
func (p *parser) operator(text string) bool {
	ok := p.accept(text)
	if ok {
		p.blanks()
	}
	return ok
}

// or parses tests of which one must hold.
func (p *parser) or() (spec.Cond, error) {
	x, err := p.and()
	for err == nil && p.operator("||") {
		var y spec.Cond
		y, err = p.and()
		x = &spec.Or{X: x, Y: y}
	}
	return x, err
}

// and parses tests that must all hold.
func (p *parser) and() (spec.Cond, error) {
	x, err := p.unary()
	for err == nil && p.operator("&&") {
		var y spec.Cond
		y, err = p.unary()
		x = &spec.And{X: x, Y: y}
	}
	return x, err
}

// unary parses a test, perhaps negated or in parentheses. A parenthesis behind
// a ! is not counted: printing puts one there.
func (p *parser) unary() (spec.Cond, error) {
	not := p.has("!") && !p.has("!=")
	if !not && !p.has("(") {
		return p.test()
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

// group parses tests in parentheses.
func (p *parser) group() (spec.Cond, error) {
	p.operator("(")
	x, err := p.or()
	if err == nil && !p.operator(")") {
		err = p.unclosedTest()
	}
	return x, err
}

// test parses FIELD OP CONSTANT.
func (p *parser) test() (spec.Cond, error) {
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
	return item, p.checkTest(item, field)
}

// ops are the operators, longer ones before those that they begin with.
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

// field parses a name and what it is taken as.
func (p *parser) field() (*spec.Field, error) {
	id := p.run(isWord)
	if id.Name == "" || isDigit(id.Name[0]) {
		p.pos = id.At.Start
		return nil, p.noField()
	}
	f := &spec.Field{Name: id}
	if p.accept(".") {
		f.As = p.run(isWord)
		if f.As.Name != "function" && f.As.Name != "ustring" {
			return nil, p.badAs(f)
		}
	}
	p.blanks()
	if p.allArgs() { // what else the event has is not yet known
		f.Of = p.named(id.Name)
		return f, nil
	}
	f.Of = p.trace.FieldItem(id)
	if f.Of == nil {
		return nil, p.unknownField(id)
	}
	return f, nil
}

// named returns the argument that is given this name; nil: none is.
func (p *parser) named(name string) *spec.Item {
	for _, item := range p.trace.Items {
		if item.Name.Name == name {
			return item
		}
	}
	return nil
}

// unknownField refuses a name that is no field here.
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
