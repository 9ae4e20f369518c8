package suite

import "github.com/ksnoop/ksnoop/compiler/spec"

// fits refuses a condition that does not fit the spec of the assertion.
func (l *line) fits(a *Assert, subject spec.Span) error {
	word := a.word()
	switch {
	case a.ofTwo() && a.Other == nil:
		return l.errorf(subject, "'%s' compares two specs, and this is one", word).WithHint("write SPEC ~ SPEC %s", &a.Condition)
	case !a.ofTwo() && a.Other != nil:
		return l.errorf(subject, "'%s' is about one spec, and these are two", word).WithHint("two are compared with 'difference' or 'ratio'")
	case len(a.Path) > 1 && !a.counts():
		return l.errorf(subject, "'%s' is not for a chain", word).
			WithHint("complete chains can be counted: never, at-least, at-most, exactly, count")
	}
	if err := l.tableFits(a); err != nil {
		return err
	}
	for _, t := range a.Path[0].AnyOf {
		var err error
		switch {
		case !a.timed() && !a.ofValue():
		case t.Ending != nil:
			err = l.ofSpan(subject, word)
		case a.timed():
			err = l.takesTime(t, subject, word)
		default:
			err = l.changes(t, subject, word)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ofSpan returns the error for a span of which more is asked than how many there are.
func (l *line) ofSpan(at spec.Span, word string) error {
	return l.errorf(at, "'%s' measures calls, and spans are counted", word).
		WithHint("tables measure them: metric NAME A() => B(hist($duration)) on KEY table")
}

// takesTime refuses a spec whose events have no duration.
func (l *line) takesTime(t *spec.Trace, at spec.Span, word string) error {
	switch {
	case t.Tracepoint:
		return l.errorf(at, "'%s' is about durations, and a tracepoint takes no time", word)
	case t.Line != nil && !t.Line.Return:
		return l.errorf(at, "'%s' is about durations, and this line is only about the beginning of a call", word).
			WithHint("a line with r is about the return as well")
	}
	return nil
}

// changes refuses a spec that does not have one value both at entry and at return.
func (l *line) changes(t *spec.Trace, at spec.Span, word string) error {
	switch {
	case t.Line != nil, t.Tracepoint:
		return l.errorf(at, "'%s' compares a value at entry and at return, and this has one of them", word).
			WithHint("write a spec: FUNCTION(VALUE)")
	case len(t.Items) != 1:
		return l.errorf(at, "'%s' is about one value, and this spec has %s", word, values(t)).
			WithHint("write FUNCTION(VALUE); conditions come after 'if'")
	}
	item := t.Items[0]
	late := false
	spec.Walk(item.Value, func(x spec.Expr) {
		switch x := x.(type) {
		case *spec.Return:
			late = true
		case *spec.Builtin:
			late = late || x.Name.Name == "retval" || x.Name.Name == "duration"
		}
	})
	if late {
		return l.errorf(item.Span(), "'%s' has no value at entry, so that it could change", item.Value)
	}
	return nil
}

// oneValue refuses a spec that does not have exactly one value, for a metric of
// values.
func (l *line) oneValue(t *spec.Trace, at spec.Span, word string) error {
	if len(t.Items) == 1 {
		if _, all := t.Items[0].Value.(*spec.AllArgs); !all {
			return nil
		}
	}
	if t.Ending != nil {
		return l.ofSpan(at, word)
	}
	err := l.errorf(at, "'%s' is of one value, and this spec has %s", word, values(t))
	if t.Line == nil && t.Items != nil && len(t.Items) == 0 && !t.Tracepoint {
		return err.WithHint("of durations, write %s($duration)", t.Target())
	}
	return err.WithHint("write FUNCTION(VALUE); conditions come after 'if'")
}

// values returns a text with the number of values that a spec has.
func values(t *spec.Trace) string {
	switch n := len(t.Items); {
	case n == 0 && t.Line == nil && t.Items == nil:
		return "all of the function"
	case n == 1 && t.Line != nil:
		return "all of the function"
	case n == 0:
		return "none"
	default:
		return number(uint64(n))
	}
}

// timesCalls reports whether a spec uses the duration of calls.
func timesCalls(s *Spec) bool {
	timed := false
	for _, t := range s.AnyOf {
		items := t.AllItems()
		if t.Ending != nil {
			items = append(items, t.Ending.AllItems()...)
		}
		for _, item := range items {
			item.Walk(func(x spec.Expr) {
				b, ok := x.(*spec.Builtin)
				timed = timed || ok && b.Name.Name == "duration" && item.Pred != nil
			})
		}
	}
	return timed
}

// tabled returns the first aggregate of the specs, or nil if calls of none of them
// are counted in a table.
func tabled(path ...*Spec) *spec.Aggregate {
	for _, s := range path {
		for _, t := range s.AnyOf {
			if all := t.Aggregates(); len(all) > 0 {
				return all[0]
			}
		}
	}
	return nil
}

// tableFits refuses aggregates in an assertion that is not about the number of calls.
// The others have the table beside their verdict.
func (l *line) tableFits(a *Assert) error {
	specs := a.Path
	if a.Other != nil {
		specs = []*Spec{a.Path[0], a.Other}
	}
	first := tabled(specs...)
	if first == nil || a.counts() || a.Kind == Each {
		return nil
	}
	return l.errorf(first.At, "%s() makes a table of the calls, and '%s' is not about their number", first.Name.Name, a.word()).
		WithHint("leave %s out, or make a line of its own: metric NAME SPEC table", first)
}

// tabled refuses a metric that is a table without aggregates, or has aggregates and
// is not a table.
func (l *line) tabled(m *Metric, subject spec.Span, word string) error {
	switch first := tabled(m.Path...); {
	case m.Kind == Rows && first == nil:
		return l.errorf(subject, "'%s' shows aggregates, and this spec has none", word).WithHint("as in vfs_read($comm, count())")
	case m.Kind != Rows && first != nil:
		return l.errorf(first.At, "%s() makes a table of the calls, and '%s' is one number or histogram", first.Name.Name, word).
			WithHint("write 'table' in place of '%s'", word)
	}
	return nil
}
