package runtime

import (
	"cmp"
	"math/bits"
	"strconv"
)

// Int is a signed integer of 128 bits, which holds the sum of any 2^64 values.
// Package math/big would make the binary larger by a quarter of a megabyte.
type Int struct {
	high int64
	low  uint64
}

// NewInt returns v as an Int.
func NewInt(v int64) Int { return Int{v >> 63, uint64(v)} }

// NewUint returns v as an Int.
func NewUint(v uint64) Int { return Int{0, v} }

// JoinInt returns the number with these halves, see [Int.Halves].
func JoinInt(high int64, low uint64) Int { return Int{high, low} }

// Halves returns the 64 high and the 64 low bits of n.
func (n Int) Halves() (high int64, low uint64) { return n.high, n.low }

// Add returns n+o.
func (n Int) Add(o Int) Int {
	low, carry := bits.Add64(n.low, o.low, 0)
	return Int{n.high + o.high + int64(carry), low}
}

// shifted returns n*2^32.
func (n Int) shifted() Int { return Int{n.high<<32 | int64(n.low>>32), n.low << 32} }

// Cmp returns -1 if n < o, 0 if n == o, and 1 if n > o.
func (n Int) Cmp(o Int) int {
	return cmp.Or(cmp.Compare(n.high, o.high), cmp.Compare(n.low, o.low))
}

// Uint64 returns n as a uint64, and whether n is in its range.
func (n Int) Uint64() (v uint64, ok bool) { return n.low, n.high == 0 }

// Float64 returns the nearest float64 to n, or one next to it.
func (n Int) Float64() float64 {
	high, low, negative := n.abs()
	f := float64(high)*(1<<64) + float64(low)
	if negative {
		return -f
	}
	return f
}

// abs returns the absolute value of n, and whether n is negative.
func (n Int) abs() (high, low uint64, negative bool) {
	high, low, negative = uint64(n.high), n.low, n.high < 0
	if negative {
		var borrow uint64
		low, borrow = bits.Sub64(0, low, 0)
		high, _ = bits.Sub64(0, high, borrow)
	}
	return high, low, negative
}

// String returns n in decimal.
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

// Sub returns n-o.
func (n Int) Sub(o Int) Int {
	low, borrow := bits.Sub64(n.low, o.low, 0)
	return Int{n.high - o.high - int64(borrow), low}
}
