package spec

import (
	"strconv"
	"strings"
)

// Range is X[First..Last]: elements of the array X, or of the array that X points to,
// the last one included.
type Range struct {
	X           Expr
	First, Last uint64
	At          Span // of the brackets
}

// String returns r in canonical form: "name[0..7]".
func (r *Range) String() string {
	return operand(r.X) + "[" + strconv.FormatUint(r.First, 10) + ".." + strconv.FormatUint(r.Last, 10) + "]"
}

// Span returns the place of the array and the brackets.
func (r *Range) Span() Span { return Span{r.X.Span().Start, r.At.End} }

// atRange reports whether the number at tok is a range: the lexer takes N..M for one
// word.
func (p *parser) atRange() bool { return p.tok.kind == number && strings.Contains(p.tok.text, "..") }

// theRange is the hint for other ways to write a range.
const theRange = "a range has two numbers: name[0..7]"

// bounds parses N..M, with both included.
func (p *parser) bounds() (first, last uint64, err error) {
	whole := p.tok
	from, to, _ := strings.Cut(whole.text, "..")
	if from == "" || to == "" || !IsDigit(to[0]) {
		return 0, 0, p.errorf(whole.at, "%s is not a range", whole).WithHint(theRange)
	}
	for i, part := range []struct {
		text  string
		start int
		to    *uint64
	}{{from, whole.at.Start, &first}, {to, whole.at.End - len(to), &last}} {
		p.tok.text, p.tok.at = part.text, Span{part.start, part.start + len(part.text)}
		at := p.pos
		n, err := p.integer(part.start, false, false)
		if err != nil {
			return 0, 0, err
		}
		if *part.to, err = n.Abs, p.checkIndex(n); err != nil {
			return 0, 0, err
		}
		if i == 0 {
			p.pos = at // integer has read the token after the range
		}
	}
	if last < first {
		return 0, 0, p.errorf(whole.at, "the range %s ends before it begins", whole.text)
	}
	return first, last, nil
}

// checkIndex refuses an index that no array has.
func (p *parser) checkIndex(n Constant) error {
	if n.Abs > mostElements {
		return p.errorf(n.At, "the index %s is out of range", n.Text).
			WithHint("an index goes from 0 to %d (2^31)", mostElements)
	}
	return nil
}
