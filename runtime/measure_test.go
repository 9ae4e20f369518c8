package runtime

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
)

// newMeasured returns a measurement of values of a type, as two CPUs have counted it:
// each value on one of them.
func newMeasured(t *testing.T, signed bool, values ...uint64) *Measured {
	probe := &compiler.Probe{Measure: compiler.Values, Measured: &compiler.Value{Scalar: &compiler.Scalar{Size: 8, Signed: signed}}}
	m := &Measured{
		EventType: &compiler.EventType{Probe: probe}, Histogram: new(compiler.Histogram),
		Counters: compiler.Counters{Matched: uint64(len(values))},
	}
	if signed {
		m.Negative = new(compiler.Histogram)
	}
	for cpu := range 2 {
		require.NoError(t, m.addSamples(keptOn(cpu, signed, values)))
	}
	return m
}

// keptOn returns the map elements of a CPU whose programs have counted every second
// value.
func keptOn(cpu int, signed bool, values []uint64) io.Reader {
	var s compiler.Samples
	var positive, negative compiler.Histogram
	for i, v := range values {
		if i%2 != cpu {
			continue
		}
		ordered := v
		if signed {
			s.Low += uint64(int64(int32(v)))
			s.High += uint64((int64(v)>>31 + 1) >> 1)
			ordered ^= 1 << 63
		} else {
			s.Low += v & math.MaxUint32
			s.High += v >> 32
		}
		if signed && int64(v) < 0 {
			negative.Add(-v)
		} else {
			positive.Add(v)
		}
		e := &s.Extremes[i/2%len(s.Extremes)] // interrupts use the other elements
		e.Most, e.NotLeast = max(e.Most, ordered), max(e.NotLeast, ^ordered)
	}
	var b bytes.Buffer
	for _, part := range []any{&s, &positive, &negative} {
		if err := binary.Write(&b, binary.NativeEndian, part); err != nil {
			panic(err)
		}
	}
	return &b
}

func TestMeasuredSamples(t *testing.T) {
	const minus = math.MaxUint64 // -1
	for _, tc := range []struct {
		signed         bool
		values         []uint64
		sum, low, high string
	}{
		{false, []uint64{5}, "5", "5", "5"},
		{false, []uint64{0}, "0", "0", "0"},
		{false, []uint64{math.MaxUint64, math.MaxUint64, 1}, "36893488147419103231", "1", "18446744073709551615"},
		{true, []uint64{0, 0}, "0", "0", "0"},
		{true, []uint64{minus, minus - 1, minus}, "-4", "-2", "-1"},
		{true, []uint64{minus, 5, 1 << 63, 7, 1 << 63}, "-18446744073709551605", "-9223372036854775808", "7"},
		{true, []uint64{math.MaxInt64, math.MaxInt64}, "18446744073709551614", "9223372036854775807", "9223372036854775807"},
	} {
		m := newMeasured(t, tc.signed, tc.values...)
		require.Equal(t, []string{tc.sum, tc.low, tc.high}, []string{m.Sum.String(), m.Min.String(), m.Max.String()})
		require.Equal(t, uint64(len(tc.values)), m.Samples())
	}
	none := newMeasured(t, true)
	require.Zero(t, none.Samples())
	require.Nil(t, none.Min)
	require.Nil(t, none.Max)
}

// TestMeasuredMerge covers two functions of a glob, of which one returns an unsigned
// number.
func TestMeasuredMerge(t *testing.T) {
	const minus = math.MaxUint64
	for _, swapped := range []bool{false, true} {
		a, b := newMeasured(t, true, 3, minus), newMeasured(t, false, minus, 2)
		a.First, b.First = &First{Time: 20}, &First{Time: 10}
		a.Filtered, b.Faulted = 4, 1
		if swapped {
			a, b = b, a
		}
		b.Merge(a)
		require.Equal(t, "18446744073709551619", b.Sum.String())
		require.Equal(t, []string{"-1", "18446744073709551615"}, []string{b.Min.String(), b.Max.String()})
		require.Equal(t, uint64(4), b.Samples())
		require.Equal(t, uint64(1), b.Negative.Samples())
		require.Equal(t, uint64(8), b.Called())
		require.Equal(t, uint64(1), b.Faulted)
		require.EqualValues(t, 10, b.First.Time)
		require.Equal(t, uint64(2), a.Samples(), "what is added stays as it is")
	}
	calls := &Measured{Counters: compiler.Counters{Matched: 1}, Changed: 1}
	calls.Merge(&Measured{Counters: compiler.Counters{Matched: 2}, Changed: 1, Unchanged: 1})
	require.Equal(t, &Measured{Counters: compiler.Counters{Matched: 3}, Changed: 2, Unchanged: 1}, calls)
}
