package runtime

import (
	"cmp"
	"math/bits"
	"strconv"
)

// Int is a whole number of 128 bits, in which the sum of any 2^64 values fits.
// Package math/big would make the binary larger by a quarter of a megabyte.
type Int struct {
	high int64
	low  uint64
}

// NewInt is a number with a sign.
func NewInt(v int64) Int { return Int{v >> 63, uint64(v)} }

// NewUint is a number without a sign.
func NewUint(v uint64) Int { return Int{0, v} }

// Add is n+o.
func (n Int) Add(o Int) Int {
	low, carry := bits.Add64(n.low, o.low, 0)
	return Int{n.high + o.high + int64(carry), low}
}

// shifted is n*2^32.
func (n Int) shifted() Int { return Int{n.high<<32 | int64(n.low>>32), n.low << 32} }

// Cmp is -1, 0 or 1 if n is less than o, the same, or greater.
func (n Int) Cmp(o Int) int {
	return cmp.Or(cmp.Compare(n.high, o.high), cmp.Compare(n.low, o.low))
}

// Uint64 is the number, if it is one from 0 to 2^64-1.
func (n Int) Uint64() (v uint64, ok bool) { return n.low, n.high == 0 }

// Float64 is the nearest number of that kind, or one beside it.
func (n Int) Float64() float64 {
	high, low, negative := n.abs()
	f := float64(high)*(1<<64) + float64(low)
	if negative {
		return -f
	}
	return f
}

// abs is the number without its sign.
func (n Int) abs() (high, low uint64, negative bool) {
	high, low, negative = uint64(n.high), n.low, n.high < 0
	if negative {
		var borrow uint64
		low, borrow = bits.Sub64(0, low, 0)
		high, _ = bits.Sub64(0, high, borrow)
	}
	return high, low, negative
}

// String writes the number in decimal.
func (n Int) String() string {
	high, low, negative := n.abs()
	digits := ""
	for high > 0 {
		var rest uint64
		high, rest = high/10, high%10
		low, rest = bits.Div64(rest, low, 10)
		digits = strconv.Itoa(int(rest)) + digits
	}
	if low > 0 || digits == "" {
		digits = strconv.FormatUint(low, 10) + digits
	}
	if negative {
		return "-" + digits
	}
	return digits
}
