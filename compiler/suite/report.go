package suite

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"time"
)

// fields returns what was observed as fields for programs. Durations are in ns.
func (a *Assert) fields(o *Observed) []Field {
	fields := []Field{{"condition", a.Condition.String()}, {"spec", PathText(a.Path)}}
	if o.Skip != "" {
		return fields
	}
	fields = append(fields, o.Counts.fields("")...)
	if o.First != nil {
		fields = append(fields, Field{"first", o.First.String()})
	}
	switch {
	case a.Other != nil:
		fields = append(fields, Field{"other_spec", a.Other.String()})
		fields = append(fields, o.Other.fields("other_")...)
	case a.ofValue():
		fields = append(fields, Field{"changed", o.Changed}, Field{"unchanged", o.Unchanged})
	case a.Kind == Each:
		fields = append(fields, Field{"rows", o.Rows}, Field{"breaking", o.Breaking})
	case a.Kind == Max && o.Matched > 0:
		fields = append(fields, Field{"max", o.Maximum})
	case a.Kind == Percentile && o.Histogram != nil:
		low, high, ok := o.Histogram.Quantile(a.Permille)
		fields = append(fields, Field{"samples", o.Histogram.Samples()})
		if ok {
			fields = append(fields, Field{"low", low}, Field{"high", high})
		}
	}
	return fields
}

func (c *Counts) fields(prefix string) []Field {
	fields := []Field{
		{prefix + "called", c.Called}, {prefix + "matched", c.Matched},
		{prefix + "missed", c.Missed}, {prefix + "unreadable", c.Unreadable},
	}
	if c.Uncounted {
		fields = append(fields, Field{prefix + "uncounted", true})
	}
	return fields
}

// Report returns the result of a metric. Its status is Pass unless nothing could
// be observed.
func (m *Metric) Report(o Observed) Result {
	r := Result{Name: m.Name, Line: m.From.Line, Fields: []Field{{"metric", metricWords[m.Kind]}, {"spec", PathText(m.Path)}}}
	if o.Skip != "" {
		r.Status, r.Text = Skip, o.Skip
		return r
	}
	r.Fields = append(r.Fields, o.Counts.fields("")...)
	switch m.Kind {
	case Sum:
		sum := cmp.Or(o.Sum, Digits("0"))
		r.Text = fmt.Sprintf("sum=%s of %d", sum, o.Matched)
		r.Fields = append(r.Fields, Field{"sum", sum})
	case Calls:
		r.Text = fmt.Sprintf("count=%d of %d", o.Matched, o.Called)
	case Histogram:
		r.Text = fmt.Sprintf("values=%d", o.samples())
		if o.samples() > 0 {
			r.Text += " " + o.spread(number)
		}
	case Rows:
		r.Text = fmt.Sprintf("rows=%d count=%d of %d", o.Rows, o.Matched, o.Called)
		r.Fields = append(r.Fields, Field{"rows", o.Rows})
	}
	if unsure := o.unsure(); unsure != "" {
		r.Text += " (" + unsure + ")"
	}
	return r
}

// between returns a text with the edges of a bucket, which show prints.
func between(low, high uint64, show func(uint64) string) string {
	if low == high {
		return show(low)
	}
	return show(low) + ".." + show(high)
}

// duration64 returns a duration of ns nanoseconds in a form for people.
func duration64(ns uint64) string {
	for _, unit := range units[2:] {
		if of := uint64(unit.of); ns >= of {
			return strconv.FormatFloat(float64(ns)/float64(of), 'f', -1, 64) + unit.name
		}
	}
	return number(ns) + "ns"
}

// Exited describes how the command ended.
type Exited struct {
	Status   int // the exit status, or 128 plus the number of the signal that killed it
	Took     time.Duration
	TimedOut bool
	// Unsettled is true if a signal ended the test before the time of settle was over.
	Unsettled bool
}

// Interrupted returns the result of a test without a command that a signal has ended after
// some time, before its own was over.
func Interrupted(after, of time.Duration) Result {
	return Result{
		Name: RunName, Status: Error, Seconds: after.Seconds(),
		Text: fmt.Sprintf("a signal ended the test after %.1fs, and it is to last %s", after.Seconds(), duration(of)),
	}
}

// Judge returns the result of the command.
func (r *Run) Judge(e Exited) Result {
	seconds := e.Took.Seconds()
	res := Result{
		Name: RunName, Line: r.From.Line, Seconds: seconds,
		Text: fmt.Sprintf("status=%d time=%.1fs", e.Status, seconds),
	}
	switch {
	case e.TimedOut:
		res.Status = Timeout
		res.Text = fmt.Sprintf("time=%.1fs, expected timeout %s", seconds, duration(r.Timeout))
	case e.Status != r.Status:
		res.Status = Fail
		res.Text += fmt.Sprintf(", expected status %d", r.Status)
	case e.Unsettled:
		res.Status = Error
		res.Text += ", a signal ended the test before the time of settle was over"
	}
	res.Fields = []Field{{"status", e.Status}, {"seconds", math.Round(seconds*1000) / 1000}}
	return res
}
