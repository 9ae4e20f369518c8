package suite

import (
	"cmp"
	"fmt"
	"strings"
)

// verdict is the status of a condition and a text about it.
type verdict struct {
	status Status
	text   string
}

// Judge returns the verdict on the condition for what was observed. It passes or
// fails only if it would do so whatever the missed and unreadable calls were.
// Otherwise the status is Error, which means inconclusive.
func (a *Assert) Judge(o Observed) Result {
	v := a.verdict(&o)
	r := Result{Name: a.Name, Status: v.status, Text: v.text, Line: a.From.Line, Fields: a.fields(&o)}
	if v.status == Fail || v.status == Error {
		r.Notes = a.notes(&o)
	}
	return r
}

func (a *Assert) verdict(o *Observed) verdict {
	switch {
	case o.Skip != "":
		return verdict{Skip, o.Skip}
	case o.Emulated && !o.AllowEmulated && a.Timed():
		return verdict{Skip, "an emulated CPU says nothing of durations"}
	}
	switch a.Kind {
	case Percentile:
		return a.percentile(o)
	case Max:
		return a.max(o)
	case Changed, Unchanged:
		return a.changed(o)
	case Difference, Ratio:
		return a.balance(o)
	case Each:
		return a.each(o)
	default:
		return a.count(o)
	}
}

// Timed reports whether a is about durations.
func (a *Assert) Timed() bool {
	timed := a.timed() || a.Kind == Each && strings.Contains(a.Row.Aggregate, "$duration") || a.Other != nil && timesCalls(a.Other)
	for _, s := range a.Path {
		timed = timed || timesCalls(s)
	}
	return timed
}

// expected returns the end of the text of a verdict that is not a pass.
func (a *Assert) expected() string { return ", expected " + a.Condition.String() }

// unreached returns the verdict for a condition that no call contradicts, because
// there was no call that could have.
func (a *Assert) unreached(text string) verdict {
	if a.AllowUnreached {
		return verdict{Pass, text}
	}
	return verdict{Error, text + a.expected()}
}

// limits returns the least and the greatest number of calls that may match.
func (c *Condition) limits() (low, high uint64) {
	const most = ^uint64(0)
	switch c.Kind {
	case AtLeast:
		return c.Low, most
	case Changed:
		return 1, most
	case Never, Unchanged:
		return 0, 0
	default:
		return c.Low, c.High
	}
}

// count judges the number of matching calls.
func (a *Assert) count(o *Observed) verdict {
	text := fmt.Sprintf("matched %d of %d", o.Matched, o.Called)
	if o.Called == 0 {
		text = "not reached"
	}
	return a.within(&o.Counts, o.Matched, o.Called, text)
}

// changed judges the number of calls that changed the value.
func (a *Assert) changed(o *Observed) verdict {
	compared := add(o.Changed, o.Unchanged)
	text := o.reached(compared, "compared in", fmt.Sprintf("changed in %d of %d", o.Changed, compared))
	return a.within(&o.Counts, o.Changed, compared, text)
}

// reached returns a text about n calls. If there are none, the text is that the function
// was not reached, or that what is true of none of its calls.
func (o *Observed) reached(n uint64, what, text string) string {
	switch {
	case n > 0:
		return text
	case o.Called == 0:
		return "not reached"
	}
	return fmt.Sprintf("%s none of %d", what, o.Called)
}

// within judges the number n of the calls that count. The parameter of is the number of
// those that could have counted.
func (a *Assert) within(c *Counts, n, of uint64, text string) verdict {
	low, high := a.limits()
	switch {
	case n > high, c.most(n) < low:
		return verdict{Fail, text + a.expected()}
	case n >= low && high == ^uint64(0): // more of them would not change the verdict
		return verdict{Pass, text}
	case !c.sure():
		return verdict{Error, c.unsure() + ": " + text + a.expected()}
	case of == 0:
		return a.unreached(text)
	default:
		return verdict{Pass, text}
	}
}

// percentile judges a percentile by the bucket that it is in.
func (a *Assert) percentile(o *Observed) verdict {
	samples := uint64(0)
	var low, high uint64
	if o.Histogram != nil {
		samples = o.Histogram.Samples()
		low, high, _ = o.Histogram.Quantile(a.Permille)
	}
	text := o.reached(samples, "measured", fmt.Sprintf("%s=%s of %d", a.word(), between(low, high, duration64), samples))
	limit := uint64(a.Limit)
	below, above := a.Op.Holds(cmp.Compare(low, limit)), a.Op.Holds(cmp.Compare(high, limit))
	switch {
	case !o.sure():
		return verdict{Error, o.unsure() + ": " + text + a.expected()}
	case o.Called == 0 && samples == 0:
		return a.unreached(text)
	case samples < a.Samples:
		return verdict{Error, fmt.Sprintf("%s, expected min-samples %d", text, a.Samples)}
	case below && above:
		return verdict{Pass, text}
	case !below && !above:
		return verdict{Fail, text + a.expected()}
	default:
		return verdict{Error, text + " cannot be told from the limit" + a.expected()}
	}
}

// max judges the longest duration. Missed calls can only make it longer.
func (a *Assert) max(o *Observed) verdict {
	text := o.reached(o.Matched, "measured", fmt.Sprintf("max=%s of %d", duration64(o.Maximum), o.Matched))
	limit := uint64(a.Limit)
	longer := a.Op.Holds(1) // whether the condition asks for a long duration
	met := a.Op.Holds(cmp.Compare(o.Maximum, limit))
	switch {
	case o.Matched > 0 && met && longer:
		return verdict{Pass, text}
	case o.Matched > 0 && !met && !longer:
		return verdict{Fail, text + a.expected()}
	case !o.sure():
		return verdict{Error, o.unsure() + ": " + text + a.expected()}
	case o.Matched == 0:
		return a.unreached(text)
	case met:
		return verdict{Pass, text}
	default:
		return verdict{Fail, text + a.expected()}
	}
}

// quantiles lists the quantiles of a histogram that diagnostics show.
var quantiles = []struct {
	name     string
	permille uint64
}{{"p50", 500}, {"p90", 900}, {"p95", 950}, {"p99", 990}, {"p99.9", 999}}

// notes returns the diagnostics.
func (a *Assert) notes(o *Observed) []string {
	note := func(path []*Spec, c *Counts) string { return c.name(path) + " " + c.String() }
	first := note(a.Path, &o.Counts)
	if o.First != nil {
		first += " first=" + o.First.String()
	}
	notes := []string{first}
	if a.Other != nil {
		notes = append(notes, note([]*Spec{a.Other}, &o.Other))
	}
	if a.timed() && o.samples() > 0 {
		notes = append(notes, o.spread(duration64))
	}
	return notes
}

// samples returns the number of values in the histograms.
func (o *Observed) samples() uint64 { return o.Histogram.Samples() + o.Negative.Samples() }

// spread returns a text with the quantiles of the histograms, whose values show prints.
func (o *Observed) spread(show func(uint64) string) string {
	text := ""
	for i, q := range quantiles {
		if i > 0 {
			text += " "
		}
		text += q.name + "="
		low, high, below, _ := o.Histogram.QuantileWith(o.Negative, q.permille)
		if below {
			low, high = high, low
			text += between(low, high, func(n uint64) string { return "-" + show(n) })
			continue
		}
		text += between(low, high, show)
	}
	return text
}
