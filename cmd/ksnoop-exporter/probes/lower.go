package probes

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/suite"
)

// lower returns the trace by which a metric is counted. Sums and histograms become
// aggregates: their tables can be read while calls are counted, without making the
// kernel miss any. A histogram gets the sum of its values beside it, which Prometheus
// wants with each histogram.
func lower(kind suite.MetricKind, t *spec.Trace) (*spec.Trace, error) {
	switch {
	case kind == suite.Calls:
		return t, nil
	case t.Line != nil:
		return nil, errors.New("a kprobe_events line can be counted, and not be added up while it is traced: write a spec, as in docs/spec.md")
	}
	lowered := *t
	if kind != suite.Rows {
		item := t.Items[0]
		if f := item.Format.Name; !slices.Contains([]string{"", "x", "d", "u"}, f) {
			return nil, fmt.Errorf("the format %s changes the value, and aggregates have no format: write a cast, as in (u32)%s", f, item.Value)
		}
		name := "sum"
		if kind == suite.Histogram {
			name = "hist"
		}
		lowered.Items = []*spec.Item{{Value: aggregate(name, item.Value)}}
		if item.Pred != nil {
			lowered.Cond = spec.Cond(item)
			if t.Cond != nil {
				lowered.Cond = &spec.And{X: item, Y: t.Cond}
			}
		}
	}
	return withSums(&lowered), nil
}

func aggregate(name string, x spec.Expr) *spec.Aggregate {
	return &spec.Aggregate{Name: spec.Ident{Name: name, At: x.Span()}, X: x, At: x.Span()}
}

// withSums returns a trace with sum(V) behind the other items, for each histogram of
// a value V of which the spec has no sum.
func withSums(t *spec.Trace) *spec.Trace {
	if t == nil {
		return nil
	}
	all := *t
	all.Items = slices.Clone(t.Items)
	all.Ending = withSums(t.Ending)
	has := map[string]bool{}
	for _, a := range t.Aggregates() {
		has[a.String()] = true
	}
	for _, item := range t.Items {
		a, ok := item.Value.(*spec.Aggregate)
		if !ok || !isHistogram(a.Name.Name) {
			continue
		}
		if sum := aggregate("sum", a.X); !has[sum.String()] {
			has[sum.String()] = true
			all.Items = append(all.Items, &spec.Item{Value: sum})
		}
	}
	return &all
}

func isHistogram(name string) bool { return name == "hist" || name == "lhist" }

// neverNegative reports whether the conditions of a trace say that no sum of a value can
// decrease: that the value is not negative at each point of a span where it is added up. At
// the other point, the same text may be another value.
func neverNegative(t *spec.Trace, value string) bool {
	for ; t != nil; t = t.Ending {
		point := *t
		point.Ending = nil
		sums := slices.ContainsFunc(point.Aggregates(), func(a *spec.Aggregate) bool { return a.X != nil && a.X.String() == value })
		holds := slices.ContainsFunc(conjunction(t.Cond, t.Items), func(item *spec.Item) bool { return atLeastZero(item, value) })
		if sums && !holds {
			return false
		}
	}
	return true
}

// conjunction appends the items that must all hold for c to hold.
func conjunction(c spec.Cond, all []*spec.Item) []*spec.Item {
	switch c := c.(type) {
	case *spec.And:
		return conjunction(c.Y, conjunction(c.X, slices.Clone(all)))
	case *spec.Item:
		return append(slices.Clone(all), c)
	}
	return all
}

func atLeastZero(item *spec.Item, value string) bool {
	p := item.Pred
	if p == nil || p.With != nil || item.Value.String() != value || p.Const.Neg {
		return false
	}
	number := p.Const.Kind == spec.Integer || p.Const.Kind == spec.Duration
	return number && (p.Op == spec.Gt || p.Op == spec.Ge || p.Op == spec.Eq)
}
