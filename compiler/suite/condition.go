package suite

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// Condition is the condition of an assertion.
type Condition struct {
	Kind      Kind
	Low, High uint64 // of AtLeast, AtMost, Exactly and Count: the fewest and the most matching calls
	Op        spec.Op
	N         uint64        // of Difference: the number that Op compares it with
	Ratio     Decimal       // of Ratio
	Permille  uint64        // of Percentile: 990 is p99
	Limit     time.Duration // of Percentile and Max
	Samples   uint64        // of Percentile: with fewer samples there is no verdict
	Row       *RowCondition // of Each
}

// Kind is the kind of a condition.
type Kind uint8

// The kinds.
const (
	Never Kind = iota
	AtLeast
	AtMost
	Exactly
	Count
	Percentile // a percentile of the durations of the calls
	Max
	Changed // the value at return differs from that at entry, at least once
	Unchanged
	Difference // between the numbers of calls of two specs; never negative
	Ratio      // of the number of calls of one spec to that of another
	Each       // the comparison holds for an aggregate of each row of the table
)

// kindWords are the words of the conditions, in the order of the reference.
var kindWords = []string{
	"never", "at-least", "at-most", "exactly", "count", "p50", "p90", "p95", "p99", "p99.9", "max",
	"changed", "unchanged", "difference", "ratio", "each",
}

// kinds has the kind of each of kindWords, and the permille of a percentile. It is not a
// map, because the code that fills one would take a kilobyte or two.
var kinds = [...]struct {
	kind     Kind
	permille uint64
}{
	{Never, 0}, {AtLeast, 0}, {AtMost, 0}, {Exactly, 0}, {Count, 0},
	{Percentile, 500}, {Percentile, 900}, {Percentile, 950}, {Percentile, 990}, {Percentile, 999}, {Max, 0},
	{Changed, 0}, {Unchanged, 0}, {Difference, 0}, {Ratio, 0}, {Each, 0},
}

// conditionOf returns the condition that a word begins.
func conditionOf(word string) (c Condition, ok bool) {
	i := slices.Index(kindWords, word)
	if i < 0 {
		return c, false
	}
	return Condition{Kind: kinds[i].kind, Permille: kinds[i].permille}, true
}

// word returns the first word of the condition.
func (c *Condition) word() string {
	for i, k := range kinds {
		if k.kind == c.Kind && k.permille == c.Permille {
			return kindWords[i]
		}
	}
	return ""
}

// String returns c as it is written in a probe file, such as "at-least 3".
func (c *Condition) String() string {
	switch word := c.word(); c.Kind {
	case AtLeast, Exactly:
		return word + " " + number(c.Low)
	case AtMost:
		return word + " " + number(c.High)
	case Count:
		return word + " " + number(c.Low) + ".." + number(c.High)
	case Percentile, Max:
		return word + " " + c.Op.String() + " " + duration(c.Limit)
	case Difference:
		return word + " " + c.Op.String() + " " + number(c.N)
	case Ratio:
		return word + " " + c.Op.String() + " " + c.Ratio.String()
	case Each:
		return word + " " + c.Row.Aggregate + " " + c.Op.String() + " " + c.Row.bound()
	default:
		return word
	}
}

// ofTwo reports whether the condition compares two specs.
func (c *Condition) ofTwo() bool { return c.Kind == Difference || c.Kind == Ratio }

// counts reports whether the condition is about the number of matching calls.
func (c *Condition) counts() bool { return c.Kind <= Count }

// timed reports whether the condition is about the duration of calls.
func (c *Condition) timed() bool { return c.Kind == Percentile || c.Kind == Max }

// ofValue reports whether the condition is about the value in the list of the spec.
func (c *Condition) ofValue() bool { return c.Kind == Changed || c.Kind == Unchanged }

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// Decimal is the non-negative number N / 10^Digits.
type Decimal struct {
	N      uint64
	Digits int
}

// mostDigits is the largest number of digits, before and after the dot each, for which
// comparisons are exact.
const mostDigits = 9

// parseDecimal parses a number such as 0.95.
func parseDecimal(text string) (d Decimal, ok bool) {
	whole, fraction, dot := strings.Cut(text, ".")
	if !isNumber(whole) || dot && strings.Trim(fraction, digits) != "" || dot && fraction == "" || len(whole) > mostDigits {
		return d, false
	}
	fraction = strings.TrimRight(fraction, "0")
	n, err := strconv.ParseUint(whole+fraction, 10, 64)
	return Decimal{n, len(fraction)}, err == nil && len(fraction) <= mostDigits
}

// String returns d without trailing zeros, such as "0.95".
func (d Decimal) String() string {
	text := number(d.N)
	if d.Digits == 0 {
		return text
	}
	text = strings.Repeat("0", max(0, d.Digits+1-len(text))) + text
	return text[:len(text)-d.Digits] + "." + text[len(text)-d.Digits:]
}

// scale returns 10^Digits.
func (d Decimal) scale() uint64 {
	scale := uint64(1)
	for range d.Digits {
		scale *= 10
	}
	return scale
}

// Measure returns what the compiled program counts for an assertion with a
// condition of this kind.
func (k Kind) Measure() compiler.Measure {
	switch k {
	case Percentile, Max:
		return compiler.Durations
	case Changed, Unchanged:
		return compiler.Changes
	}
	return compiler.Calls
}

// Measure returns what the compiled program counts for a metric of this kind.
func (k MetricKind) Measure() compiler.Measure {
	switch k {
	case Calls:
		return compiler.Calls
	case Rows:
		return compiler.Tables
	}
	return compiler.Values
}
