package kprobe

import (
	"strconv"
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// constant parses the constant that the field of a predicate is compared with.
func (p *parser) constant(item *spec.Item) (c spec.Constant, err error) {
	start := p.pos
	field := item.Value.(*spec.Field)
	switch {
	case p.pos == p.end, p.has(")"), p.has("&&"), p.has("||"):
		return c, p.errorf(p.at(0), "a constant is missing after '%s'", item.Pred.Op)
	case p.has(`"`), p.has("'"):
		c, err = p.quoted()
	case p.has("CPUS{"):
		c, err = p.cpus()
	case item.Pred.Op != spec.Glob && (spec.IsDigit(p.text[p.pos]) || p.has("-")):
		c, err = p.integer()
	default:
		c, err = p.bare(field)
	}
	c.At, c.Text = p.from(start), p.text[start:p.pos]
	if err == nil && item.Pred.Op == spec.Glob {
		err = p.checkPattern(c)
	}
	return c, err
}

// quoted parses a string in quotes of either kind, without escapes.
func (p *parser) quoted() (c spec.Constant, err error) {
	quote := p.text[p.pos]
	opening := p.at(1)
	p.pos++
	id := p.run(func(c byte) bool { return c != quote })
	switch {
	case p.pos == p.end:
		return c, p.errorf(opening, "the string has no closing %c", quote)
	case strings.ContainsAny(id.Name, "\t\n\v\f\r"):
		return c, p.errorf(id.At, "a string has no other blanks than ' '")
	case len(id.Name) > longestString:
		return c, p.errorf(id.At, "a string of %d bytes is longer than the limit (%d)", len(id.Name), longestString)
	}
	p.pos++
	return spec.Constant{Kind: spec.String, Str: id.Name}, nil
}

// isBare reports whether c is allowed in a string without quotes.
func isBare(c byte) bool { return !spec.IsBlank(c) && strings.IndexByte(`()&|"'`, c) < 0 }

// bare parses a word without quotes: a string, or the name of a function.
func (p *parser) bare(field *spec.Field) (c spec.Constant, err error) {
	start := p.pos
	id := p.run(isBare)
	switch {
	case id.Name == "":
		return c, p.expected("a constant")
	case field.As.Name == "function" && isDotted(id.Name[0]):
		return spec.Constant{Kind: spec.Name, Str: id.Name}, p.checkFunction(id)
	case !p.takesText(field):
		p.pos = start
		return c, p.noConstant(field)
	case len(id.Name) > longestString:
		return c, p.errorf(id.At, "a string of %d bytes is longer than the limit (%d)", len(id.Name), longestString)
	}
	return spec.Constant{Kind: spec.String, Str: id.Name}, nil
}

// checkFunction refuses a word that is not the name of a function.
func (p *parser) checkFunction(id spec.Ident) error {
	for i := range len(id.Name) {
		if !isDotted(id.Name[i]) {
			return p.errorf(id.At, "%s is not a name of a function", spec.Quote(id.Name))
		}
	}
	return nil
}

// integer parses a number with its sign.
func (p *parser) integer() (c spec.Constant, err error) {
	start := p.pos
	c.Neg = p.accept("-")
	if c.Abs, err = p.number("a number after '-'"); err != nil {
		return c, err
	}
	if c.Neg && c.Abs > 1<<63 {
		at := p.from(start)
		return c, p.errorf(at, "%s is out of range", spec.Quote(p.word(at))).
			WithHint("constants go from -2^63 to 2^64-1")
	}
	c.Neg = c.Neg && c.Abs != 0
	return c, nil
}

// mostCPUs bounds the number of a processor. No kernel has as many.
const mostCPUs = 1 << 16

// cpus parses CPUS{0-3,8}.
func (p *parser) cpus() (c spec.Constant, err error) {
	c.Kind = spec.CPUs
	p.accept("CPUS{")
	for {
		r, err := p.cpuRange()
		if err != nil {
			return c, err
		}
		c.CPUs = append(c.CPUs, r)
		if p.accept("}") {
			return c, nil
		}
		if !p.accept(",") {
			return c, p.expected("',' or '}'")
		}
	}
}

// cpuRange parses N or N-M.
func (p *parser) cpuRange() (r spec.CPURange, err error) {
	start := p.pos
	if r.First, err = p.cpu(); err != nil {
		return r, err
	}
	r.Last = r.First
	if p.accept("-") {
		if r.Last, err = p.cpu(); err != nil {
			return r, err
		}
	}
	if r.Last < r.First {
		return r, p.errorf(p.from(start), "the range %s is backwards", p.word(p.from(start)))
	}
	return r, nil
}

func (p *parser) cpu() (int, error) {
	id := p.run(spec.IsDigit)
	n, err := strconv.ParseUint(id.Name, 10, 32)
	switch {
	case id.Name == "":
		return 0, p.expected("the number of a processor")
	case err != nil || n >= mostCPUs:
		return 0, p.errorf(id.At, "no kernel has a processor %s", id.Name)
	}
	return int(n), nil
}

// checkPattern refuses a constant that cannot follow a ~.
func (p *parser) checkPattern(c spec.Constant) error {
	if c.Kind != spec.String {
		return nil // checkPredicate says what is wrong
	}
	start := c.At.Start
	if c.Text[0] == '"' || c.Text[0] == '\'' {
		start++
	}
	if err := p.checkGlob(c.Str, start); err != nil {
		return err
	}
	if elements, _ := spec.ParseGlob(c.Str); len(elements) > spec.MostGlob {
		return p.errorf(c.At, "a pattern of %d elements is longer than the limit (%d)", len(elements), spec.MostGlob)
	}
	return nil
}
