package suite

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// RowCondition is an aggregate of each row, and what it is compared with.
type RowCondition struct {
	Aggregate string // in canonical form
	Bound     int64
	InTime    bool       // whether Bound is a duration in ns
	Item      *spec.Item // the whole comparison
}

// each parses a condition on each row of a table: an aggregate of the spec, a
// comparison and a number or a duration.
func (l *line) each(a *Assert) (err error) {
	l.skip()
	start := l.pos
	for depth := 0; l.pos < len(l.text) && (depth > 0 || !isOperator(l.text[l.pos])); l.pos++ {
		switch l.text[l.pos] {
		case '(':
			depth++
		case ')':
			depth--
		}
	}
	w := l.since(start)
	w.text = strings.TrimSpace(w.text)
	w.at.End = start + len(w.text)
	w.text = canonical(w.text)
	var of *spec.Aggregate
	for _, t := range a.Path[0].AnyOf {
		if of, err = l.numberOf(t, w); err != nil {
			return err
		}
	}
	a.Row = &RowCondition{Aggregate: w.text}
	if a.Op, err = l.operator(comparisons); err != nil {
		return err
	}
	c, err := l.bound(a.Row)
	a.Row.Item = &spec.Item{Value: of, Pred: &spec.Predicate{Op: a.Op, Const: c}}
	return err
}

// canonical returns an aggregate as spec prints it, or text if it is none.
func canonical(text string) string {
	t, err := spec.Parse("f(" + text + ")")
	if err != nil || len(t.Items) != 1 {
		return text
	}
	return t.Items[0].Value.String()
}

// bound parses what an aggregate is compared with.
func (l *line) bound(r *RowCondition) (c spec.Constant, err error) {
	n := l.token()
	c = spec.Constant{Kind: spec.Integer, Text: n.text, At: n.at}
	switch number := isNumber(strings.TrimPrefix(n.text, "-")); {
	case n.text == "":
		return c, l.missing("a number or a duration", n)
	case number:
		if r.Bound, err = strconv.ParseInt(n.text, 10, 64); err != nil {
			return c, l.errorf(n.at, "%s is out of range", spec.Quote(n.text)).WithHint("numbers go from %d to %d here", math.MinInt64, math.MaxInt64)
		}
	default:
		d, err := l.durationOf(n)
		if err != nil {
			return c, err
		}
		if !strings.Contains(r.Aggregate, "$duration") {
			return c, l.errorf(n.at, "'%s' is not a duration", r.Aggregate).WithHint("durations are compared with $duration, as in max($duration) < %s", n.text)
		}
		r.Bound, r.InTime, c.Kind = int64(d), true, spec.Duration
	}
	c.Neg, c.Abs = r.Bound < 0, uint64(max(r.Bound, -r.Bound))
	return c, nil
}

// numberOf returns the aggregate of a spec that a word names. It must be a number.
func (l *line) numberOf(t *spec.Trace, w word) (*spec.Aggregate, error) {
	var names []string
	for _, a := range t.Aggregates() {
		if name := a.String(); !strings.Contains(a.Name.Name, "hist") {
			if name == w.text {
				return a, nil
			}
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, l.errorf(w.at, "'each' is about the rows of a table, and the spec has no number among its aggregates").WithHint("as in vfs_read($comm, count()) each count() < 100")
	}
	return nil, l.unknown(w, "an aggregate of the spec that is a number", names)
}

// bound returns what an aggregate is compared with, as it is written.
func (c *RowCondition) bound() string {
	if c.InTime {
		return duration(time.Duration(c.Bound))
	}
	return strconv.FormatInt(c.Bound, 10)
}

// lasting reports whether a row for which the condition does not hold stays so,
// whatever other calls are counted in it.
func (c *Condition) lasting() bool {
	upper, lower := c.Op == spec.Lt || c.Op == spec.Le, c.Op == spec.Gt || c.Op == spec.Ge
	switch name, _, _ := strings.Cut(c.Row.Aggregate, "("); name {
	case "count", "max":
		return upper
	case "min":
		return lower
	}
	return false
}

// each judges the rows of a table.
func (a *Assert) each(o *Observed) verdict {
	text := fmt.Sprintf("%d of %d rows do not hold", o.Breaking, o.Rows)
	switch {
	case o.Called == 0:
		text = "not reached"
	case o.Rows == 0:
		text = fmt.Sprintf("matched none of %d", o.Called)
	case o.Breaking == 0:
		text = fmt.Sprintf("rows=%d matched %d of %d", o.Rows, o.Matched, o.Called)
	}
	unsure := o.unsure()
	if o.Rowless > 0 {
		unsure = strings.TrimPrefix(fmt.Sprintf("%s, %d in no row", unsure, o.Rowless), ", ")
	}
	switch {
	case o.Breaking > 0 && (unsure == "" || a.lasting()):
		return verdict{Fail, text + a.expected()}
	case unsure != "":
		return verdict{Error, unsure + ": " + text + a.expected()}
	case o.Rows == 0:
		return a.unreached(text)
	default:
		return verdict{Pass, text}
	}
}
