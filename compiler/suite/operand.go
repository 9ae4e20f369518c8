package suite

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// operands parses the operands of the condition that begins with w.
func (l *line) operands(a *Assert, w word) (err error) {
	c := &a.Condition
	switch c.Kind {
	case AtLeast:
		c.Low, err = l.number("a number after 'at-least'")
	case AtMost:
		c.High, err = l.number("a number after 'at-most'")
	case Exactly:
		c.Low, err = l.number("a number after 'exactly'")
		c.High = c.Low
	case Count:
		c.Low, c.High, err = l.span()
	case Percentile, Max:
		if c.Op, err = l.operator(orders); err == nil {
			c.Limit, err = l.duration("a duration")
		}
	case Difference:
		if c.Op, err = l.operator(comparisons); err == nil {
			c.N, err = l.number("a number")
		}
	case Ratio:
		if c.Op, err = l.operator(comparisons); err == nil {
			c.Ratio, err = l.decimal()
		}
	case Each:
		err = l.each(a)
	}
	if err != nil {
		return err
	}
	return l.decides(c, spec.Span{Start: w.at.Start, End: l.pos})
}

// decides refuses a condition that always holds or never holds.
func (l *line) decides(c *Condition, at spec.Span) error {
	switch op, least, most := c.ends(); {
	case !possible(op, least, most):
		return l.errorf(at, "'%s' can never hold", c)
	case possible(compiler.Opposites[op], least, most):
		return nil
	}
	err := l.errorf(at, "'%s' always holds", c)
	if c.counts() {
		return err.WithHint("what is only reported is a metric: metric NAME SPEC count")
	}
	return err
}

// ends returns the comparison that a condition makes, and how the least and the greatest
// number that there may be compare with that of the condition.
func (c *Condition) ends() (op spec.Op, least, most int) {
	ordered := func(n uint64) (int, int) { return cmp.Compare(0, n), cmp.Compare(math.MaxUint64, n) }
	op, least, most = spec.Eq, -1, 1
	switch {
	case c.Kind == AtLeast:
		op = spec.Ge
		least, most = ordered(c.Low)
	case c.Kind == AtMost, c.Kind == Count && c.Low == 0:
		op = spec.Le
		least, most = ordered(c.High)
	case c.Kind == Difference:
		op = c.Op
		least, most = ordered(c.N)
	case c.Kind == Ratio:
		op, least = c.Op, cmp.Compare(0, c.Ratio.N)
	case c.Kind == Each && c.Row.Aggregate == "count()":
		op, least = c.Op, cmp.Compare(1, c.Row.Bound) // a row has a call
	}
	return op, least, most
}

// number parses a number of calls.
func (l *line) number(what string) (uint64, error) {
	w := l.token()
	n, err := strconv.ParseUint(w.text, 10, 64)
	switch {
	case w.text == "":
		return 0, l.missing(what, w)
	case !isNumber(w.text):
		return 0, l.errorf(w.at, "%s is not a number of calls", spec.Quote(w.text))
	case err != nil:
		return 0, l.errorf(w.at, "%s is out of range", spec.Quote(w.text))
	}
	return n, nil
}

// span parses the range of a count.
func (l *line) span() (low, high uint64, err error) {
	w := l.token()
	first, last, ok := strings.Cut(w.text, "..")
	if ok && isNumber(first) && isNumber(last) {
		low, err = strconv.ParseUint(first, 10, 64)
		if err == nil {
			high, err = strconv.ParseUint(last, 10, 64)
		}
		switch {
		case err != nil:
			return 0, 0, l.errorf(w.at, "%s is out of range", spec.Quote(w.text))
		case low > high:
			return 0, 0, l.errorf(w.at, "no number is from %d to %d", low, high).WithHint("did you mean %d..%d?", high, low)
		}
		return low, high, nil
	}
	err = l.missing("a range after 'count'", w).WithHint("write count 3..5")
	if isNumber(w.text) && l.end() {
		err = l.errorf(w.at, "one number is not a range").WithHint("write exactly %s", w.text)
	}
	return 0, 0, err
}

// decimal parses the number that a ratio is compared with.
func (l *line) decimal() (Decimal, error) {
	w := l.token()
	d, ok := parseDecimal(w.text)
	switch {
	case w.text == "":
		return d, l.missing("a number", w)
	case !ok:
		return d, l.errorf(w.at, "%s is not a ratio", spec.Quote(w.text)).WithHint("write a number such as 2 or 0.95, of at most %d digits", mostDigits)
	}
	return d, nil
}
