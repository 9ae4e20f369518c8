package compiler

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBuckets(t *testing.T) {
	require.Equal(t, 976, HistogramBuckets)
	for _, c := range []struct {
		value  uint64
		bucket int
	}{
		{0, 0}, {1, 1}, {15, 15}, {16, 16}, {17, 17}, {31, 31}, {32, 32}, {33, 32}, {34, 33}, {63, 47}, {64, 48},
		{1000, 111}, {1 << 20, 272}, {1<<20 - 1, 271}, {1 << 63, 960}, {math.MaxUint64, 975},
	} {
		require.Equal(t, c.bucket, Bucket(c.value), "%d", c.value)
	}
}

// TestBucketEdges checks that the buckets follow each other without a gap, and
// that none is wider than a 16th of its lowest value.
func TestBucketEdges(t *testing.T) {
	next := uint64(0)
	for i := range HistogramBuckets {
		low, high := BucketEdges(i)
		require.Equal(t, next, low)
		require.Equal(t, i, Bucket(low))
		require.Equal(t, i, Bucket(high))
		require.LessOrEqual(t, high-low, low/16)
		next = high + 1
	}
	require.Zero(t, next) // after the last one: 2^64
}

// TestQuantile compares quantiles with those of the sorted values.
func TestQuantile(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var h, other Histogram
		values := make([]uint64, 1+random.IntN(400))
		for i := range values {
			values[i] = random.Uint64() >> random.IntN(64)
			if i%2 == 0 {
				h.Add(values[i])
			} else {
				other.Add(values[i])
			}
		}
		h.Merge(&other)
		slices.Sort(values)
		require.Equal(t, uint64(len(values)), h.Samples())
		for _, permille := range []uint64{0, 1, 500, 900, 950, 990, 999, 1000} {
			low, high, ok := h.Quantile(permille)
			require.True(t, ok)
			exact := values[max(1, (len(values)*int(permille)+999)/1000)-1]
			require.LessOrEqual(t, low, exact)
			require.GreaterOrEqual(t, high, exact)
		}
	}
}

// TestQuantileWith compares quantiles of values of any sign with those of the sorted values.
func TestQuantileWith(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		var h, negative Histogram
		values := make([]int64, 1+random.IntN(40))
		for i := range values {
			values[i] = int64(random.Uint64()) >> random.IntN(64)
			if values[i] < 0 {
				negative.Add(-uint64(values[i]))
			} else {
				h.Add(uint64(values[i]))
			}
		}
		slices.Sort(values)
		for _, permille := range []uint64{0, 1, 500, 900, 1000} {
			low, high, below, ok := h.QuantileWith(&negative, permille)
			require.True(t, ok)
			exact := values[max(1, (len(values)*int(permille)+999)/1000)-1]
			require.Equal(t, exact < 0, below)
			size := uint64(exact)
			if below {
				size = -size
			}
			require.LessOrEqual(t, low, size)
			require.GreaterOrEqual(t, high, size)
		}
	}
}

func TestQuantileOfNothing(t *testing.T) {
	var h Histogram
	_, _, ok := h.Quantile(500)
	require.False(t, ok)
}

// TestQuantileOfMany checks that counts near 2^64 do not overflow.
func TestQuantileOfMany(t *testing.T) {
	var h Histogram
	h[0], h[100] = math.MaxUint64/1000*990, math.MaxUint64/1000*10
	low, _, _ := h.Quantile(990)
	require.Zero(t, low)
	low, _, _ = h.Quantile(991)
	want, _ := BucketEdges(100)
	require.Equal(t, want, low)
}
