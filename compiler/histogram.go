package compiler

import "math/bits"

// Values below 2^stepBits have a bucket each, and every power of two from there
// on has 2^stepBits of equal width, so that a bucket is at most a 16th of its
// values wide.
const (
	stepBits = 4
	steps    = 1 << stepBits
)

// HistogramBuckets is how many buckets the values of 64 bits fall into.
const HistogramBuckets = steps * (64 - stepBits + 1)

// Bucket returns the bucket of a value. With e for the highest bit that is set
// in it, of a value of 16 or more, that is (e-3)*16 plus the 4 bits below e,
// which is (e-4)*16 plus the value shifted right by e-4.
func Bucket(value uint64) int {
	shift := max(bits.Len64(value), stepBits+1) - stepBits - 1
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

// Histogram counts values by their buckets, as generated code does.
type Histogram [HistogramBuckets]uint64

// Add counts a value.
func (h *Histogram) Add(value uint64) { h[Bucket(value)]++ }

// Merge adds the counts of another histogram: that of another processor.
func (h *Histogram) Merge(other *Histogram) {
	for i, n := range other {
		h[i] += n
	}
}

// Samples returns how many values were counted.
func (h *Histogram) Samples() uint64 {
	sum := uint64(0)
	for _, n := range h {
		sum += n
	}
	return sum
}

// Quantile returns the edges of the bucket that holds the value of that rank,
// which is the smallest value that at least permille of a thousand values do
// not exceed: 500 is the median. Without values it returns false.
func (h *Histogram) Quantile(permille uint64) (low, high uint64, ok bool) {
	samples := h.Samples()
	if samples == 0 {
		return 0, 0, false
	}
	rank := rankOf(samples, permille)
	for i, n := range h {
		if rank <= n {
			low, high = BucketEdges(i)
			return low, high, true
		}
		rank -= n
	}
	return 0, 0, false
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
