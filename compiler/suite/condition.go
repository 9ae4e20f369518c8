package suite

import (
	"strconv"
	"strings"
	"time"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// Condition is what an assertion expects.
type Condition struct {
	Kind      Kind
	Low, High uint64 // of AtLeast, AtMost, Exactly and Count: the fewest and the most calls that match
	Op        spec.Op
	N         uint64        // of Difference: what Op compares it with
	Ratio     Decimal       // of Ratio
	Permille  uint64        // of Percentile: 990 is p99
	Limit     time.Duration // of Percentile and Max
	Samples   uint64        // of Percentile: fewer give no verdict
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
	Percentile // of the durations of the calls
	Max
	Changed // the value at return differs from that at entry, at least once
	Unchanged
	Difference // by how much the calls of two specs differ in number
	Ratio      // of the calls of two specs
)

// kindWords are the words of the conditions, in the order of the reference.
var kindWords = []string{
	"never", "at-least", "at-most", "exactly", "count", "p50", "p90", "p95", "p99", "p99.9", "max",
	"changed", "unchanged", "difference", "ratio",
}

// kinds is what the words mean.
var kinds = map[string]Condition{
	"never": {Kind: Never}, "at-least": {Kind: AtLeast}, "at-most": {Kind: AtMost}, "exactly": {Kind: Exactly}, "count": {Kind: Count},
	"p50": {Kind: Percentile, Permille: 500}, "p90": {Kind: Percentile, Permille: 900}, "p95": {Kind: Percentile, Permille: 950},
	"p99": {Kind: Percentile, Permille: 990}, "p99.9": {Kind: Percentile, Permille: 999}, "max": {Kind: Max},
	"changed": {Kind: Changed}, "unchanged": {Kind: Unchanged}, "difference": {Kind: Difference}, "ratio": {Kind: Ratio},
}

// word is the word that the condition begins with.
func (c *Condition) word() string {
	for word, k := range kinds {
		if k.Kind == c.Kind && k.Permille == c.Permille {
			return word
		}
	}
	return ""
}

// String returns c as it is written in a probe file: "at-least 3".
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
	default:
		return word
	}
}

// ofTwo says whether the condition compares two specs.
func (c *Condition) ofTwo() bool { return c.Kind == Difference || c.Kind == Ratio }

// counts says whether the condition is about how many calls match.
func (c *Condition) counts() bool { return c.Kind <= Count }

// timed says whether the condition is about how long calls take.
func (c *Condition) timed() bool { return c.Kind == Percentile || c.Kind == Max }

// ofValue says whether the condition is about one value of the list.
func (c *Condition) ofValue() bool { return c.Kind == Changed || c.Kind == Unchanged }

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// Decimal is a number that is not negative: N / 10^Digits.
type Decimal struct {
	N      uint64
	Digits int
}

// mostDigits bounds a decimal, so that comparisons are exact.
const mostDigits = 9

// parseDecimal reads a number such as 0.95.
func parseDecimal(text string) (d Decimal, ok bool) {
	whole, fraction, dot := strings.Cut(text, ".")
	if !isNumber(whole) || dot && strings.Trim(fraction, digits) != "" || dot && fraction == "" || len(whole) > mostDigits {
		return d, false
	}
	fraction = strings.TrimRight(fraction, "0")
	n, err := strconv.ParseUint(whole+fraction, 10, 64)
	return Decimal{n, len(fraction)}, err == nil && len(fraction) <= mostDigits
}

// String returns d without zeros at the end: "0.95".
func (d Decimal) String() string {
	text := number(d.N)
	if d.Digits == 0 {
		return text
	}
	text = strings.Repeat("0", max(0, d.Digits+1-len(text))) + text
	return text[:len(text)-d.Digits] + "." + text[len(text)-d.Digits:]
}

// scale is 10^Digits.
func (d Decimal) scale() uint64 {
	scale := uint64(1)
	for range d.Digits {
		scale *= 10
	}
	return scale
}
