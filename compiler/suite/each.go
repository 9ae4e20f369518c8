package suite

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// RowCondition is an aggregate of each row, and what it is compared with.
type RowCondition struct {
	Aggregate string // in canonical form
	Bound     int64
	InTime    bool // whether Bound is a duration in ns
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
	w.at.End = start + len(strings.TrimRight(w.text, " "))
	w.text = strings.ReplaceAll(w.text, " ", "")
	a.Row = &RowCondition{}
	for _, t := range a.Path[0].AnyOf {
		if a.Row.Aggregate, err = l.numberOf(t, w); err != nil {
			return err
		}
	}
	if a.Op, err = l.operator(allOps, "== != < <= > >="); err != nil {
		return err
	}
	n := l.token()
	if a.Row.Bound, err = strconv.ParseInt(n.text, 10, 64); err == nil {
		return nil
	}
	d, err := l.durationOf(n)
	a.Row.Bound, a.Row.InTime = int64(d), true
	return err
}

// numberOf returns the aggregate of a spec that a word without blanks names. It must
// be a number.
func (l *line) numberOf(t *spec.Trace, w word) (string, error) {
	var names []string
	for _, a := range t.Aggregates() {
		name := a.String()
		if !strings.Contains(a.Name.Name, "hist") {
			names = append(names, name)
		}
		if strings.ReplaceAll(name, " ", "") == w.text {
			w.text = name
		}
	}
	if len(names) == 0 {
		return "", l.errorf(w.at, "'each' is about the rows of a table, and the spec has no number among its aggregates").WithHint("as in vfs_read($comm, count()) each count() < 100")
	}
	if !slices.Contains(names, w.text) {
		return "", l.unknown(w, "an aggregate of the spec that is a number", names)
	}
	return w.text, nil
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
