package kprobe

import (
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// longestString is the largest number of bytes in a string constant.
const longestString = 255

// memoryAt parses @ADDRESS or @SYMBOL[+-N].
func (p *parser) memoryAt() (spec.Expr, error) {
	start := p.pos
	p.pos++
	a := &spec.Address{At: spec.Span{Start: p.pos}}
	var err error
	switch id := p.run(isDotted); {
	case id.Name == "" && p.has("+"):
		return nil, p.errorf(p.at(p.end-p.pos), "an offset in a file").WithHint("name a variable of the kernel: @jiffies")
	case id.Name == "":
		return nil, p.expected("a variable or an address after '@'")
	case spec.IsDigit(id.Name[0]):
		if a.N, err = spec.ParseUint(id.Name); err != nil {
			return nil, p.badNumber(id, err)
		}
	default:
		a.Symbol = id
		if a.Off, err = p.symbolOffset(); err != nil {
			return nil, err
		}
	}
	a.At = p.from(a.At.Start)
	return p.members(&spec.Memory{X: a, At: p.from(start)})
}

// symbolOffset parses the optional offset after a symbol: +N or -N.
func (p *parser) symbolOffset() (int64, error) {
	start := p.pos
	neg := p.has("-") && !p.has("->")
	if neg || p.has("+") {
		p.pos++
		return p.signed(start, neg, "a number after '"+p.text[start:p.pos]+"'")
	}
	return 0, nil
}

// memory parses +-[u]N(VALUE).
func (p *parser) memory() (spec.Expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	start := p.pos
	m := &spec.Memory{}
	p.pos++
	sign := p.text[start:p.pos]
	m.User = p.accept("u")
	var err error
	if m.Off, err = p.signed(p.pos, sign == "-", "an offset after '"+p.text[start:p.pos]+"'"); err != nil {
		return nil, err
	}
	if !p.accept("(") {
		return nil, p.noParenthesis(p.from(start))
	}
	if m.X, err = p.value(); err != nil {
		return nil, err
	}
	if err := p.checkAddress(m.X); err != nil {
		return nil, err
	}
	if !p.accept(")") {
		return nil, p.unclosed()
	}
	m.At = p.from(start)
	return p.members(m)
}

func (p *parser) noParenthesis(offset spec.Span) error {
	err := p.expected("'(' after the offset")
	if p.pos == p.end {
		return err.WithHint("write %s(%%di), or \\%s for the number", p.word(offset), p.word(offset))
	}
	return err.WithHint("what the offset is added to is in parentheses: %s(%%di)", p.word(offset))
}

// checkAddress refuses a value that cannot be an address.
func (p *parser) checkAddress(x spec.Expr) error {
	if spec.FetchesText(x) {
		return p.errorf(x.Span(), "%s is a string, not an address", spec.Quote(x.String()))
	}
	return nil
}

func (p *parser) unclosed() error {
	at, what := p.token()
	switch {
	case p.pos == p.end:
		return p.errorf(at, "')' is missing")
	case p.has(":"):
		return p.errorf(at, "a type inside a value").WithHint("it comes after the last ')'")
	case p.has("+"), p.has("-"), p.has("*"):
		return p.errorf(at, "there is no arithmetic").WithHint("an offset comes before '(': +8(%%di)")
	default:
		return p.errorf(at, "expected ')', not %s", what)
	}
}

// immediate parses \INTEGER or \"STRING".
func (p *parser) immediate() (spec.Expr, error) {
	start := p.pos
	p.pos++
	if p.has(`"`) {
		return p.immediateString(start)
	}
	c := spec.Constant{Neg: p.has("-")}
	signed := c.Neg || p.has("+")
	if signed {
		p.pos++
	}
	var err error
	if c.Abs, err = p.number(`a number or a string after '\'`); err != nil {
		return nil, err
	}
	if signed && c.Abs > 1<<63-1 && !(c.Neg && c.Abs == 1<<63) {
		at := spec.Span{Start: start + 1, End: p.pos}
		return nil, p.errorf(at, "%s is out of range", spec.Quote(p.word(at))).
			WithHint("numbers with a sign go from -2^63 to 2^63-1")
	}
	c.At, c.Text = p.from(start), p.text[start+1:p.pos]
	c.Neg = c.Neg && c.Abs != 0
	return &spec.Immediate{Const: c}, nil
}

// immediateString parses a string, which has no escapes.
func (p *parser) immediateString(start int) (spec.Expr, error) {
	p.pos++
	id := p.run(func(c byte) bool { return c != '"' })
	switch {
	case !p.accept(`"`):
		return nil, p.errorf(spec.Span{Start: start, End: start + 2}, "the string has no closing \"")
	case strings.ContainsAny(id.Name, "\t\n\v\f\r"):
		return nil, p.errorf(id.At, "a string has no other blanks than ' '")
	case len(id.Name) > longestString:
		return nil, p.errorf(id.At, "a string of %d bytes is longer than the limit (%d)", len(id.Name), longestString)
	}
	c := spec.Constant{Kind: spec.String, Text: p.text[start+1 : p.pos], Str: id.Name, At: p.from(start)}
	return &spec.Immediate{Const: c}, nil
}
