package suite

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"

	"github.com/ksnoop/ksnoop/compiler"
)

// Observed is what was counted of an assertion or a metric while the test ran.
type Observed struct {
	Counts
	Other Counts // of the spec behind ~
	// Changed and Unchanged are the calls whose value was compared, for the
	// conditions of these names.
	Changed, Unchanged uint64
	// Histogram is of the durations in ns of the calls that match; of a metric,
	// of the values. nil: nothing was measured.
	Histogram *compiler.Histogram
	// Maximum is the longest duration in ns of the calls that match.
	Maximum uint64
	Sum     Value  // of a metric
	First   *Value // that matched; nil: not known
	// Skip says why there was nothing to observe: the kernel lacks what the
	// suite requires, or the function.
	Skip string
	// Emulated: the CPU is, so that durations mean nothing unless they are
	// allowed to.
	Emulated, AllowEmulated bool
}

// Counts are numbers of calls.
type Counts struct {
	Func    string // that was counted; empty: the first of the spec
	Called  uint64 // that were seen
	Matched uint64 // of those, the ones that the conditions of the spec hold of
	// Unreadable is how many of those that were seen may match or not, as a
	// value could not be read.
	Unreadable uint64
	// Missed is how many there were beyond those that were seen: nothing is
	// known of them.
	Missed uint64
	// Uncounted: there may have been more of them than Missed.
	Uncounted bool
}

// sure says whether it is known of each call if it matches.
func (c *Counts) sure() bool { return c.Missed == 0 && c.Unreadable == 0 && !c.Uncounted }

// most is how many calls may have matched at most, if so many are known to.
func (c *Counts) most(known uint64) uint64 {
	if c.Uncounted {
		return math.MaxUint64
	}
	return add(known, add(c.Missed, c.Unreadable))
}

// add is a sum that does not overflow.
func add(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry > 0 {
		return math.MaxUint64
	}
	return sum
}

// unsure says what is not known, and is empty if all is.
func (c *Counts) unsure() string {
	text := ""
	for _, part := range []struct {
		n    uint64
		what string
	}{{c.Missed, " missed"}, {c.Unreadable, " unreadable"}} {
		if part.n > 0 && text != "" {
			text += ", "
		}
		if part.n > 0 {
			text += number(part.n) + part.what
		}
	}
	if c.Uncounted && text == "" {
		return "misses are not counted"
	}
	return text
}

// String returns c as in a diagnostic.
func (c *Counts) String() string {
	missed := number(c.Missed)
	if c.Uncounted {
		missed += " or more"
	}
	text := fmt.Sprintf("called=%d matched=%d missed=%s", c.Called, c.Matched, missed)
	if c.Unreadable > 0 {
		text += " unreadable=" + number(c.Unreadable)
	}
	return text
}

// Value is a number of 64 bits.
type Value struct {
	Bits   uint64
	Signed bool
}

// Errno is the name of the error that v stands for, as a negative number or as
// an error pointer, or empty.
func (v Value) Errno() string {
	if n := -v.Bits; n > 0 && n <= 4095 {
		return compiler.ErrnoName(n)
	}
	return ""
}

// String returns v with the name of the error that it is: "-101 (ENETUNREACH)".
func (v Value) String() string {
	text := number(v.Bits)
	name := v.Errno()
	if v.Signed || name != "" {
		text = strconv.FormatInt(int64(v.Bits), 10)
	}
	if name != "" {
		text += " (" + name + ")"
	}
	return text
}
