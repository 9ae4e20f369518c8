package suite

import "github.com/ksnoop/ksnoop/compiler/spec"

// Tabled returns the first aggregate of the specs, or nil if calls of none of them
// are counted in a table.
func Tabled(path ...*Spec) *spec.Aggregate {
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
	first := Tabled(specs...)
	if first == nil || a.counts() || a.Kind == Each {
		return nil
	}
	return l.errorf(first.At, "%s() makes a table of the calls, and '%s' is not about their number", first.Name.Name, a.word()).
		WithHint("leave %s out, or make a line of its own: metric NAME SPEC table", first)
}

// tabled refuses a metric that is a table without aggregates, or has aggregates and
// is no table.
func (l *line) tabled(m *Metric, subject spec.Span, word string) error {
	switch first := Tabled(m.Path...); {
	case m.Kind == Rows && first == nil:
		return l.errorf(subject, "'%s' shows aggregates, and this spec has none", word).WithHint("as in vfs_read($comm, count())")
	case m.Kind != Rows && first != nil:
		return l.errorf(first.At, "%s() makes a table of the calls, and '%s' is one number or histogram", first.Name.Name, word).
			WithHint("write 'table' in place of '%s'", word)
	}
	return nil
}
