package render

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// Widths of the bars of a histogram, in columns.
const (
	mostBar  = 40
	leastBar = 10
)

// histogram returns the lines of a histogram, a bar for each bucket:
//
//	[4, 8)            12 |@@@@@@@@@@                              |
func histogram(a *compiler.Aggregate, buckets []runtime.Bucket, width int) (lines []string) {
	most, wide := uint64(1), 0
	bounds := make([]string, len(buckets))
	for i, b := range buckets {
		bounds[i] = boundsText(a, b)
		most, wide = max(most, b.Count), max(wide, columnsOf(bounds[i]))
	}
	digits := len(strconv.FormatUint(most, 10))
	bar := mostBar
	if width > 0 {
		bar = min(mostBar, max(leastBar, width-wide-digits-4))
	}
	for i, b := range buckets {
		n := int(float64(b.Count) / float64(most) * float64(bar))
		if n == 0 && b.Count > 0 {
			n = 1 // what there is must be seen
		}
		lines = append(lines, fmt.Sprintf("%s %*d |%-*s|", aligned(bounds[i], wide, false), digits, b.Count, bar, strings.Repeat("@", n)))
	}
	return lines
}

// boundsText returns the bounds of a bucket. A bound at a bracket belongs to it, one at a
// parenthesis does not.
func boundsText(a *compiler.Aggregate, b runtime.Bucket) string {
	one := runtime.NewInt(1)
	text := func(n runtime.Int) string { return boundText(a, n) }
	switch {
	case a.Kind == compiler.Linear && b.To.Cmp(edge(a, a.Low)) < 0:
		return "(..., " + text(b.To.Add(one)) + ")"
	case a.Kind == compiler.Linear && b.From.Cmp(edge(a, a.High)) >= 0:
		return "[" + text(b.From) + ", ...)"
	case b.From == b.To:
		return "[" + text(b.From) + "]"
	case a.Kind == compiler.Hist && b.To.Float64() < 0:
		return "(" + text(b.From.Add(runtime.NewInt(-1))) + ", " + text(b.To) + "]"
	}
	return "[" + text(b.From) + ", " + text(b.To.Add(one)) + ")"
}

// edge returns a bound of a linear histogram as a number.
func edge(a *compiler.Aggregate, bound uint64) runtime.Int {
	if a.Value != nil && a.Value.Scalar != nil && a.Value.Scalar.Signed {
		return runtime.NewInt(int64(bound))
	}
	return runtime.NewUint(bound)
}

// boundText returns a bound: a time in its unit, a power of two as 64K.
func boundText(a *compiler.Aggregate, n runtime.Int) string {
	switch {
	case a.Unit() == "ns" && a.Kind == compiler.Linear:
		return exactTime(n.Float64())
	case a.Unit() == "ns":
		return timeText(n.Float64())
	case a.Kind == compiler.Linear:
		return n.String()
	}
	if v, ok := n.Uint64(); ok {
		return binaryText(v)
	}
	if v, ok := runtime.NewInt(0).Sub(n).Uint64(); ok {
		return "-" + binaryText(v)
	}
	if n.Cmp(runtime.NewUint(1<<63).Add(runtime.NewUint(1<<63))) == 0 {
		return "16E"
	}
	return n.String()
}

// binaryText returns a number as 64K if it is a multiple of 1024.
func binaryText(n uint64) string {
	unit := 0
	for n >= 1024 && n%1024 == 0 && unit < len(binaryUnits)-1 {
		n /= 1024
		unit++
	}
	return strconv.FormatUint(n, 10) + binaryUnits[unit]
}

var binaryUnits = []string{"", "K", "M", "G", "T", "P", "E"}

// timeText returns a time in ns with three digits and its unit: 1.02us, 65.5ms.
func timeText(ns float64) string {
	unit := 0
	for ; (ns >= 999.5 || ns <= -999.5) && unit < len(timeUnits)-1; unit++ {
		ns /= 1000
	}
	if unit == len(timeUnits)-1 && (ns >= 999.5 || ns <= -999.5) {
		return strconv.FormatFloat(ns, 'f', 0, 64) + timeUnits[unit]
	}
	return strconv.FormatFloat(ns, 'g', 3, 64) + timeUnits[unit]
}

// exactTime returns a time in ns with all its digits and its unit: 1.001ms.
func exactTime(ns float64) string {
	unit, one := 0, 1.0
	for ; math.Abs(ns) >= 1000*one && unit < len(timeUnits)-1; unit++ {
		one *= 1000
	}
	return strconv.FormatFloat(ns/one, 'f', -1, 64) + timeUnits[unit]
}

var timeUnits = []string{"ns", "us", "ms", "s"}
