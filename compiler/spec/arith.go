package spec

// Binary is X Op Y: two values joined by an operator of C.
type Binary struct {
	Op   Operator
	X, Y Expr
	OpAt Span
}

// Number is a number among the values that a [Binary] joins. Its constant is an
// Integer.
type Number struct {
	Const Constant
}

// Operator is an operator of C between two values.
type Operator uint8

// The operators.
const (
	BitOr Operator = iota + 1
	BitAnd
	Shl
	Shr
	Add
	Sub
	Mul
)

// operators has the operators as they are written.
var operators = [...]string{BitOr: "|", BitAnd: "&", Shl: "<<", Shr: ">>", Add: "+", Sub: "-", Mul: "*"}

// precedence is how tightly an operator binds. Comparisons bind tighter than the
// operators below shifting.
type precedence int

const (
	bitOr precedence = iota + 1
	bitAnd
	shifting // binds tighter than a comparison, as do all that follow
	adding
	multiplying
	single // a value without an operator
)

// precedence returns how tightly o binds.
func (o Operator) precedence() precedence {
	return [...]precedence{BitOr: bitOr, BitAnd: bitAnd, Shl: shifting, Shr: shifting, Add: adding, Sub: adding, Mul: multiplying}[o]
}

// String returns o as it is written in a spec.
func (o Operator) String() string { return operators[o] }

// arithmetic returns the operator that t is, or 0.
func (t token) arithmetic() Operator {
	if t.kind == punct || t.kind == compare {
		for o := BitOr; o <= Mul; o++ {
			if t.text == operators[o] {
				return o
			}
		}
	}
	return 0
}

// binds reports whether t is an operator that binds at least as tightly as least.
func (t token) binds(least precedence) bool {
	o := t.arithmetic()
	return o != 0 && o.precedence() >= least
}

// mostOperators bounds the operators of a spec, and the recursion over its values.
const mostOperators = 64

// expression parses values joined by operators that bind at least as tightly as
// least. A number may be among them, but not alone.
func (p *parser) expression(least precedence) (Expr, error) {
	x, err := p.leading(least)
	if err != nil {
		return nil, err
	}
	return p.joined(x, least)
}

// joined parses the operators after x that bind at least as tightly as least, and
// what they join x with.
func (p *parser) joined(x Expr, least precedence) (Expr, error) {
	for p.tok.binds(least) {
		op, at := p.tok.arithmetic(), p.tok.at
		if p.operators++; p.operators > mostOperators {
			return nil, p.errorf(at, "more than %d operators", mostOperators)
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
		y, err := p.operand()
		if err == nil {
			y, err = p.joined(y, op.precedence()+1)
		}
		if err != nil {
			return nil, err
		}
		x = &Binary{op, x, y, at}
	}
	return x, nil
}

// leading parses the value that an expression begins with.
func (p *parser) leading(least precedence) (Expr, error) {
	if p.numberJoined(least) {
		return p.operand()
	}
	return p.value()
}

// numberJoined reports whether the number at tok, which may have a sign, is
// followed by an operator that binds at least as tightly as least.
func (p *parser) numberJoined(least precedence) bool {
	ahead := lookahead{lexer: p.lexer, tok: p.tok}
	if ahead.tok.is("-") {
		ahead.advance()
	}
	if !ahead.tok.numeric() {
		return false
	}
	ahead.advance()
	return ahead.tok.binds(least)
}

// numeric reports whether t is a number that values can be joined with.
func (t token) numeric() bool {
	return t.kind == number && !isDuration(t.text) || t.kind == quoted && t.text[0] == '\''
}

// operand parses a value or a number.
func (p *parser) operand() (Expr, error) {
	start, neg := p.tok.at.Start, false
	if p.tok.is("-") {
		ahead := lookahead{lexer: p.lexer}
		if ahead.advance(); ahead.tok.kind == number {
			neg = true
			if err := p.advance(); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case p.tok.kind == number:
		c, err := p.integer(start, neg, false)
		return &Number{c}, err
	case p.tok.numeric():
		c, err := p.char()
		return &Number{c}, err
	}
	return p.value()
}

// comparand parses what a value is compared with: a constant, or another value.
func (p *parser) comparand(pred *Predicate) (err error) {
	if !p.valueFollows() {
		pred.Const, err = p.constant()
		return err
	}
	x, err := p.expression(shifting)
	if err != nil {
		return err
	}
	if arg, ok := x.(*Arg); ok { // the parentheses around it mean nothing
		pred.Const = Constant{Kind: Name, Str: arg.Name.Name, Text: arg.Name.Name, At: arg.Name.At}
		return nil
	}
	pred.With = x
	return nil
}

// valueFollows reports whether a value begins at tok, and not a constant. A name
// alone may be either; the kernel's types tell which.
func (p *parser) valueFollows() bool {
	t := p.tok
	switch {
	case t.is("("):
		return !p.constantInside()
	case t.word("return"), t.is("$"), t.is("@"), t.is("*"), p.overCall():
		return true
	case t.kind == name && t.text != "if" && !isTypeWord(t.text):
		ahead := lookahead{lexer: p.lexer}
		ahead.advance()
		return ahead.tok.is("->") || ahead.tok.is(".") || ahead.tok.is("[") || ahead.tok.binds(shifting)
	}
	return p.numberJoined(shifting)
}

// constantInside reports whether the parenthesis at tok has a constant alone, or a
// word that may be the type of one.
func (p *parser) constantInside() bool {
	ahead := lookahead{lexer: p.lexer}
	ahead.advance()
	first := ahead.tok
	ahead.advance()
	closed := ahead.tok.is(")")
	ahead.advance()
	return closed && (first.numeric() || first.kind == quoted || first.kind == name && (ahead.tok.numeric() || ahead.tok.kind == quoted))
}

// asValue returns what a predicate for common bits means if it is part of a value: X & Y.
// It returns nil for other predicates.
func (i *Item) asValue() Expr {
	if i.Pred == nil || i.Pred.Op != Mask || i.Format.Name != "" {
		return nil
	}
	c := i.Pred.Const
	y := i.Pred.With
	switch {
	case y != nil:
	case c.Kind == Integer:
		y = &Number{c}
	case c.Kind == Name && !c.Neg:
		y = &Arg{Ident{c.Str, c.At}}
	default:
		return nil
	}
	return &Binary{BitAnd, i.Value, y, i.Pred.OpAt}
}

// continues reports whether t continues a value in parentheses.
func (t token) continues() bool {
	return t.operator() || t.arithmetic() != 0 || t.is(":") || t.is("->") || t.is(".") || t.is("[") || t.word("is")
}

// Span returns the place of both values and the operator.
func (b *Binary) Span() Span { return Span{b.X.Span().Start, b.Y.Span().End} }

// Span returns the place of the number.
func (n *Number) Span() Span { return n.Const.At }

// String returns b in canonical form: "a + b * 2", "(a & 3) | b".
func (b *Binary) String() string {
	own := b.Op.precedence()
	return within(b.X, own) + " " + b.Op.String() + " " + within(b.Y, own+1)
}

// String returns the number as it was written, without blanks.
func (n *Number) String() string { return n.Const.String() }

// within returns x in canonical form, in parentheses if it binds weaker than least.
// An & always has them, as it would be a predicate without, and so has a | after a
// number, which would be a constant.
func within(x Expr, least precedence) string {
	b, ok := x.(*Binary)
	if !ok {
		return x.String()
	}
	_, number := b.X.(*Number)
	if b.Op == BitAnd || b.Op == BitOr && number || b.Op.precedence() < least {
		return "(" + b.String() + ")"
	}
	return b.String()
}
