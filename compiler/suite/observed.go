package suite

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"

	"github.com/ksnoop/ksnoop/compiler"
)

// Observed holds what was counted for an assertion or a metric while the test ran.
type Observed struct {
	Counts
	Other Counts // those of the spec after ~
	// Changed and Unchanged are the numbers of calls whose value changed or did
	// not change, for the conditions of these names.
	Changed, Unchanged uint64
	// Histogram is the histogram of the durations in ns of the matching calls, or
	// for a metric that of the values. It is nil if nothing was measured. Negative is
	// that of the absolute values of negative ones, or nil if there cannot be any.
	Histogram, Negative *compiler.Histogram
	// Maximum is the longest duration in ns of the matching calls.
	Maximum uint64
	Sum     Digits // of a metric
	Rows    int    // of the table of a spec with aggregates
	// Breaking is the number of rows for which the condition Each does not hold, and
	// Rowless the number of matching calls that are in no row.
	Breaking int
	Rowless  uint64
	First    *Value // of the first call that matched; nil if not known
	// Skip is the reason why nothing was observed, or empty: the kernel lacks
	// the function or something that the suite requires.
	Skip string
	// Emulated is true if the CPU is emulated. Durations then give no verdict
	// unless AllowEmulated is true.
	Emulated, AllowEmulated bool
}

// Counts are numbers of calls.
type Counts struct {
	Func    string // the function that was counted; empty for the first of the spec
	Called  uint64 // calls that were seen
	Matched uint64 // seen calls for which the conditions of the spec hold
	// Unreadable is the number of seen calls for which it is not known whether
	// they match, as a value could not be read.
	Unreadable uint64
	// Missed is the number of calls that were not seen. Nothing is known about
	// them.
	Missed uint64
	// Uncounted is true if there may be more unseen calls than Missed.
	Uncounted bool
}

// sure reports whether it is known for each call whether it matches.
func (c *Counts) sure() bool { return c.Missed == 0 && c.Unreadable == 0 && !c.Uncounted }

// most returns the greatest possible number of matching calls if known calls are
// known to match.
func (c *Counts) most(known uint64) uint64 {
	if c.Uncounted {
		return math.MaxUint64
	}
	return add(known, add(c.Missed, c.Unreadable))
}

// add returns a + b, or the greatest uint64 if that overflows.
func add(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry > 0 {
		return math.MaxUint64
	}
	return sum
}

// unsure returns a text that says what is not known about the calls, or "" if all
// is known.
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

// String returns c as it is shown in diagnostics.
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

// Digits are an integer of any size in decimal. Empty, it is 0.
type Digits string

// Value is a number of 64 bits.
type Value struct {
	Bits    uint64
	Signed  bool
	Address bool // shown in hexadecimal
}

// Errno returns the name of the error that v is, as a negative number or as an
// error pointer, or "" if it is neither.
func (v Value) Errno() string {
	if n := -v.Bits; n > 0 && n <= compiler.MaxErrno {
		return compiler.ErrnoName(n)
	}
	return ""
}

// String returns v, an address in hexadecimal, and with the name of the error if it is
// one: "-101 (ENETUNREACH)".
func (v Value) String() string {
	text := number(v.Bits)
	name := v.Errno()
	switch {
	case v.Address && name == "":
		text = fmt.Sprintf("%#x", v.Bits)
	case v.Signed || name != "":
		text = strconv.FormatInt(int64(v.Bits), 10)
	}
	if name != "" {
		text += " (" + name + ")"
	}
	return text
}
