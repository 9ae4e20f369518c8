package compiler

import "math/bits"

// Each value below 2^StepBits has its own bucket. From there on, the values from each
// power of two to the next are divided into 2^StepBits buckets of equal width, so
// that a bucket is at most a 16th as wide as its lowest value.
const (
	StepBits = 4
	steps    = 1 << StepBits
)

// HistogramBuckets is the number of buckets for 64-bit values.
const HistogramBuckets = steps * (64 - StepBits + 1)

// Bucket returns the bucket of a value. If e is the highest bit set in a value
// of 16 or more, the bucket is (e-3)*16 plus the 4 bits below e. This equals
// (e-4)*16 plus the value shifted right by e-4.
func Bucket(value uint64) int {
	shift := max(bits.Len64(value), StepBits+1) - StepBits - 1
	return shift*steps + int(value>>shift)
}

// BucketEdges returns the lowest and the highest value of a bucket.
func BucketEdges(bucket int) (low, high uint64) {
	if bucket < 2*steps {
		return uint64(bucket), uint64(bucket)
	}
	shift := bucket/steps - 1
	low = uint64(steps+bucket%steps) << shift
	return low, low + 1<<shift - 1
}

// Histogram counts values by bucket, as generated code does.
type Histogram [HistogramBuckets]uint64

// Add counts a value.
func (h *Histogram) Add(value uint64) { h[Bucket(value)]++ }

// Merge adds the counts of another histogram, such as that of another CPU.
func (h *Histogram) Merge(other *Histogram) {
	for i, n := range other {
		h[i] += n
	}
}

// Samples returns the number of values that were counted: none if h is nil.
func (h *Histogram) Samples() uint64 {
	sum := uint64(0)
	if h == nil {
		return sum
	}
	for _, n := range h {
		sum += n
	}
	return sum
}

// Quantile returns the edges of the bucket that holds the smallest value that
// at least permille of a thousand values do not exceed. The median is 500. It
// returns false if there are no values.
func (h *Histogram) Quantile(permille uint64) (low, high uint64, ok bool) {
	samples := h.Samples()
	if samples == 0 {
		return 0, 0, false
	}
	low, high = h.ranked(rankOf(samples, permille))
	return low, high, true
}

// QuantileWith is Quantile for the values of h and those below zero, of which negative counts
// the absolute values. If below is true, so are the edges.
func (h *Histogram) QuantileWith(negative *Histogram, permille uint64) (low, high uint64, below, ok bool) {
	under, above := negative.Samples(), h.Samples()
	if under+above == 0 {
		return 0, 0, false, false
	}
	rank := rankOf(under+above, permille)
	if below = rank <= under; below {
		low, high = negative.ranked(under - rank + 1)
	} else {
		low, high = h.ranked(rank - under)
	}
	return low, high, below, true
}

// ranked returns the edges of the bucket of the value with a rank: 1 is the smallest.
func (h *Histogram) ranked(rank uint64) (low, high uint64) {
	for i, n := range h {
		if rank <= n {
			return BucketEdges(i)
		}
		rank -= n
	}
	return 0, 0
}

// rankOf returns samples*permille/1000 rounded up, and at least 1.
func rankOf(samples, permille uint64) uint64 {
	hi, lo := bits.Mul64(samples, min(permille, 1000))
	rank, rest := bits.Div64(hi, lo, 1000)
	if rest > 0 {
		rank++
	}
	return max(rank, 1)
}
