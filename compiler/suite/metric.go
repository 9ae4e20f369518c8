package suite

import (
	"slices"
	"strconv"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// metricWords has the word for each MetricKind.
var metricWords = []string{Sum: "sum", Calls: "count", Histogram: "histogram", Rows: "table"}

// metric parses a metric.
func (p *parser) metric(l *line) (err error) {
	m := &Metric{From: l.from}
	if m.Name, err = p.newName(l, "metric"); err != nil {
		return err
	}
	p.is(m.Name, "metric")
	l.skip()
	start := l.pos
	if m.Path, err = l.path(metricWords); err != nil {
		return err
	}
	subject := spec.Span{Start: start, End: l.pos}
	w := l.token()
	kind := slices.Index(metricWords, w.text)
	switch {
	case kind < 0:
		return l.behindSpec(w, "a kind of metric", metricWords)
	case len(m.Path) > 1 && MetricKind(kind) != Calls:
		return l.errorf(subject, "'%s' is not for a chain", w.text).WithHint("complete chains can be counted: count")
	}
	m.Kind = MetricKind(kind)
	if err := l.tabled(m, subject, w.text); err != nil {
		return err
	}
	if m.Kind == Sum || m.Kind == Histogram {
		for _, t := range m.Path[0].AnyOf {
			if err := l.oneValue(t, subject, w.text); err != nil {
				return err
			}
		}
	}
	if l.peek().text == "scope" {
		l.token()
		if m.Scope, err = l.scope(); err != nil {
			return err
		}
	}
	p.suite.Metrics = append(p.suite.Metrics, m)
	return l.rest("the metric")
}

// String returns the line of the metric.
func (m *Metric) String() string {
	return "metric " + m.Name + " " + PathText(m.Path) + " " + metricWords[m.Kind] + scopeText(m.Scope)
}

// mostEvidence is the largest number of events that a line may ask to keep.
const mostEvidence = 10_000

// evidence parses a line about the events that are shown with a result.
func (p *parser) evidence(l *line) (err error) {
	e := &Evidence{From: l.from}
	if e.Name, err = p.use(l, false); err != nil {
		return err
	}
	if e.Path, err = l.path([]string{"last"}); err != nil {
		return err
	}
	if a := tabled(e.Path...); a != nil {
		return l.errorf(a.At, "%s() makes a table of the calls, and evidence is the events themselves", a.Name.Name).
			WithHint("write an assertion with it, which has the table beside it, or: metric NAME SPEC table")
	}
	if w := l.token(); w.text != "last" {
		return l.behindSpec(w, "'last'", []string{"last"})
	}
	w := l.peek()
	n, err := l.number("a number after 'last'")
	switch {
	case err != nil:
		return err
	case n < 1 || n > mostEvidence:
		return l.errorf(w.at, "%s events: the limits are 1 and %d", strconv.FormatUint(n, 10), mostEvidence)
	}
	e.Last = int(n)
	p.suite.Evidence = append(p.suite.Evidence, e)
	return l.rest("the number of events")
}

// String returns the line of the evidence.
func (e *Evidence) String() string {
	return "evidence " + e.Name + " " + PathText(e.Path) + " last " + strconv.Itoa(e.Last)
}
