package suite

import (
	"cmp"
	"fmt"
	"math/bits"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// balance judges the numbers of matching calls of two specs.
func (a *Assert) balance(o *Observed) verdict {
	text := fmt.Sprintf("%d ~ %d", o.Matched, o.Other.Matched)
	unsure := a.unsure(o)
	switch {
	case unsure == "" && o.Called == 0 && o.Other.Called == 0:
		return a.unreached("not reached")
	case !a.possible(o):
		return verdict{Fail, a.balanceText(o, text) + a.expected()}
	case unsure != "":
		return verdict{Error, unsure + ": " + text + a.expected()}
	case a.Kind == Ratio && o.Matched == 0 && o.Other.Matched == 0:
		return verdict{Error, text + " have no ratio" + a.expected()}
	case (o.Called == 0 || o.Other.Called == 0) && !a.AllowUnreached:
		return verdict{Error, a.unreachedSide(o) + " not reached: " + text + a.expected()}
	default:
		return verdict{Pass, a.balanceText(o, text)}
	}
}

// unsure returns a text that says what is not known about the calls of the two
// specs, or "" if all is known.
func (a *Assert) unsure(o *Observed) string {
	both := Counts{
		Missed:     add(o.Missed, o.Other.Missed),
		Unreadable: add(o.Unreadable, o.Other.Unreadable),
		Uncounted:  o.Uncounted || o.Other.Uncounted,
	}
	return both.unsure()
}

// unreachedSide returns the name of the function that was not called.
func (a *Assert) unreachedSide(o *Observed) string {
	if o.Called == 0 {
		return o.Counts.name(a.Path)
	}
	return o.Other.name([]*Spec{a.Other})
}

// balanceText adds the difference or the ratio of the two numbers to text.
func (a *Assert) balanceText(o *Observed, text string) string {
	l, r := o.Matched, o.Other.Matched
	switch {
	case a.Kind == Difference:
		return fmt.Sprintf("%s, difference %d", text, distance(l, r))
	case r == 0:
		return text
	default:
		return fmt.Sprintf("%s, ratio %.4g", text, float64(l)/float64(r))
	}
}

func distance(a, b uint64) uint64 { return max(a, b) - min(a, b) }

// possible reports whether the condition may hold: it does for some of the possible
// numbers of calls. If no call was missed or unreadable, each number has one possible value.
func (a *Assert) possible(o *Observed) bool {
	l, lMost := o.Matched, o.Counts.most(o.Matched)
	r, rMost := o.Other.Matched, o.Other.most(o.Other.Matched)
	if a.Kind == Difference {
		least, most := uint64(0), max(distance(lMost, r), distance(l, rMost))
		if l > rMost || r > lMost {
			least = min(distance(l, rMost), distance(lMost, r))
		}
		return possible(a.Op, cmp.Compare(least, a.N), cmp.Compare(most, a.N))
	}
	if rMost == 0 && lMost == 0 {
		return true // there is no ratio
	}
	return possible(a.Op, a.Ratio.order(l, rMost), a.Ratio.order(lMost, r))
}

// possible reports whether a comparison holds for some number in a range. least
// and most are the results of comparing its ends with the constant.
func possible(op spec.Op, least, most int) bool {
	switch op {
	case spec.Eq:
		return least <= 0 && most >= 0
	case spec.Ne:
		return least != 0 || most != 0
	case spec.Lt, spec.Le:
		return op.Holds(least)
	default:
		return op.Holds(most)
	}
}

// order compares l / r with d exactly. If r is 0, the ratio is above every d.
func (d Decimal) order(l, r uint64) int {
	if r == 0 {
		return 1
	}
	lHigh, lLow := bits.Mul64(l, d.scale())
	rHigh, rLow := bits.Mul64(r, d.N)
	return cmp.Or(cmp.Compare(lHigh, rHigh), cmp.Compare(lLow, rLow))
}
