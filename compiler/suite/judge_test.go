package suite

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
)

// assertion parses an assert line, given without the word assert and the name.
func assertion(t *testing.T, text string) *Assert {
	s, err := Parse("f", body+"assert a "+text)
	require.NoError(t, err)
	return s.Asserts[1]
}

func counted(called, matched, missed uint64) Observed {
	return Observed{Counts: Counts{Called: called, Matched: matched, Missed: missed}}
}

func compared(changed, unchanged, missed uint64) Observed {
	o := counted(changed+unchanged, changed+unchanged, missed)
	o.Changed, o.Unchanged = changed, unchanged
	return o
}

// rowed returns calls in a table with this number of rows.
func rowed(rows, breaking int, missed, rowless uint64) Observed {
	o := counted(uint64(8*rows), uint64(6*rows), missed)
	o.Rows, o.Breaking, o.Rowless = rows, breaking, rowless
	return o
}

// took returns calls with these durations in ns.
func took(missed uint64, ns ...uint64) Observed {
	o := counted(uint64(len(ns)), uint64(len(ns)), missed)
	o.Histogram = new(compiler.Histogram)
	for _, n := range ns {
		o.Histogram.Add(n)
		o.Maximum = max(o.Maximum, n)
	}
	return o
}

// two returns calls of two functions, all of which match.
func two(left, right, missedLeft, missedRight uint64) Observed {
	o := counted(left, left, missedLeft)
	o.Other = Counts{Called: right, Matched: right, Missed: missedRight}
	return o
}

func TestJudge(t *testing.T) {
	unreadable := Observed{Counts: Counts{Called: 9, Matched: 0, Unreadable: 2}}
	uncounted := Observed{Counts: Counts{Called: 9, Matched: 3, Uncounted: true}}
	none := Observed{}
	lost := counted(0, 0, 5)
	for _, test := range []struct {
		text string
		o    Observed
		want Status
		says string
	}{
		{"f() never", counted(312, 0, 0), Pass, "matched 0 of 312"},
		{"f() never", counted(312, 2, 0), Fail, "matched 2 of 312, expected never"},
		{"f() never", counted(312, 2, 7), Fail, "matched 2 of 312, expected never"},
		{"f() never", counted(312, 0, 7), Error, "7 missed: matched 0 of 312, expected never"},
		{"f() never", none, Error, "not reached, expected never"},
		{"f() never", lost, Error, "5 missed: not reached, expected never"},
		{"f() never", unreadable, Error, "2 unreadable: matched 0 of 9, expected never"},
		{"f() never allow-unreached", none, Pass, "not reached"},
		{"f() never allow-unreached", lost, Error, "5 missed: not reached, expected never"},
		{"f() never", uncounted, Fail, "matched 3 of 9, expected never"},
		{"g() never", Observed{Counts: Counts{Called: 9, Uncounted: true}}, Error, "misses are not counted: matched 0 of 9, expected never"},
		{"f() never", Observed{Counts: Counts{Called: 9, Missed: 1, Unreadable: 2, Uncounted: true}}, Error,
			"1 missed, 2 unreadable: matched 0 of 9, expected never"},

		{"f() at-least 3", counted(9, 3, 0), Pass, "matched 3 of 9"},
		{"f() at-least 3", counted(9, 3, 7), Pass, "matched 3 of 9"},
		{"f() at-least 3", uncounted, Pass, "matched 3 of 9"},
		{"f() at-least 4", uncounted, Error, "misses are not counted: matched 3 of 9, expected at-least 4"},
		{"f() at-least 3", counted(9, 2, 0), Fail, "matched 2 of 9, expected at-least 3"},
		{"f() at-least 3", counted(9, 2, 1), Error, "1 missed: matched 2 of 9, expected at-least 3"},
		{"f() at-least 9", counted(9, 2, 1), Fail, "matched 2 of 9, expected at-least 9"},
		{"f() at-least 1", none, Fail, "not reached, expected at-least 1"},
		{"f() at-least 1", lost, Error, "5 missed: not reached, expected at-least 1"},
		{"f() at-least 6", lost, Fail, "not reached, expected at-least 6"},

		{"f() at-most 3", counted(9, 3, 0), Pass, "matched 3 of 9"},
		{"f() at-most 3", counted(9, 4, 0), Fail, "matched 4 of 9, expected at-most 3"},
		{"f() at-most 3", counted(9, 4, 1), Fail, "matched 4 of 9, expected at-most 3"},
		{"f() at-most 3", counted(9, 3, 1), Error, "1 missed: matched 3 of 9, expected at-most 3"},
		{"f() at-most 3", counted(9, 1, 1), Error, "1 missed: matched 1 of 9, expected at-most 3"},
		{"f() at-most 3", none, Error, "not reached, expected at-most 3"},
		{"f() at-most 3 allow-unreached", none, Pass, "not reached"},

		{"f() exactly 3", counted(9, 3, 0), Pass, "matched 3 of 9"},
		{"f() exactly 3", counted(9, 2, 0), Fail, "matched 2 of 9, expected exactly 3"},
		{"f() exactly 3", counted(9, 3, 1), Error, "1 missed: matched 3 of 9, expected exactly 3"},
		{"f() exactly 3", counted(9, 2, 1), Error, "1 missed: matched 2 of 9, expected exactly 3"},
		{"f() exactly 3", counted(9, 4, 1), Fail, "matched 4 of 9, expected exactly 3"},
		{"f() exactly 3", counted(9, 1, 1), Fail, "matched 1 of 9, expected exactly 3"},
		{"f() exactly 3", none, Fail, "not reached, expected exactly 3"},
		{"f() exactly 0", none, Error, "not reached, expected exactly 0"},
		{"f() exactly 0 allow-unreached", none, Pass, "not reached"},

		{"f() count 3..5", counted(9, 5, 0), Pass, "matched 5 of 9"},
		{"f() count 3..5", counted(9, 6, 0), Fail, "matched 6 of 9, expected count 3..5"},
		{"f() count 3..5", counted(9, 6, 1), Fail, "matched 6 of 9, expected count 3..5"},
		{"f() count 3..5", counted(9, 3, 1), Error, "1 missed: matched 3 of 9, expected count 3..5"},
		{"f() count 3..5", counted(9, 1, 1), Fail, "matched 1 of 9, expected count 3..5"},
		{"f() count 3..5", none, Fail, "not reached, expected count 3..5"},
		{"f() count 0..5", none, Error, "not reached, expected count 0..5"},
		{"f() count 0..5 allow-unreached", none, Pass, "not reached"},

		{"f(x) changed", compared(2, 3, 0), Pass, "changed in 2 of 5"},
		{"f(x) changed", compared(2, 3, 1), Pass, "changed in 2 of 5"},
		{"f(x) changed", compared(0, 3, 0), Fail, "changed in 0 of 3, expected changed"},
		{"f(x) changed", compared(0, 3, 1), Error, "1 missed: changed in 0 of 3, expected changed"},
		{"f(x) changed", none, Fail, "not reached, expected changed"},
		{"f(x) unchanged", compared(0, 3, 0), Pass, "changed in 0 of 3"},
		{"f(x) unchanged", compared(1, 3, 0), Fail, "changed in 1 of 4, expected unchanged"},
		{"f(x) unchanged", compared(1, 3, 1), Fail, "changed in 1 of 4, expected unchanged"},
		{"f(x) unchanged", compared(0, 3, 1), Error, "1 missed: changed in 0 of 3, expected unchanged"},
		{"f(x) unchanged", none, Error, "not reached, expected unchanged"},
		{"f(x) unchanged", counted(7, 0, 0), Error, "compared in none of 7, expected unchanged"},
		{"f(x) unchanged allow-unreached", none, Pass, "not reached"},
		{"f(x) unchanged", Observed{Counts: Counts{Called: 3, Matched: 2, Unreadable: 1}, Unchanged: 2}, Error,
			"1 unreadable: changed in 0 of 2, expected unchanged"},

		{"f() p50 < 100ns min-samples 3", took(0, 10, 90, 500), Pass, "p50=88ns..91ns of 3"},
		{"f() p50 < 80ns min-samples 3", took(0, 10, 90, 500), Fail, "p50=88ns..91ns of 3, expected p50 < 80ns"},
		{"f() p50 < 90ns min-samples 3", took(0, 10, 90, 500), Error, "p50=88ns..91ns of 3 cannot be told from the limit, expected p50 < 90ns"},
		{"f() p50 < 91ns min-samples 3", took(0, 10, 90, 500), Error, "p50=88ns..91ns of 3 cannot be told from the limit, expected p50 < 91ns"},
		{"f() p50 <= 91ns min-samples 3", took(0, 10, 90, 500), Pass, "p50=88ns..91ns of 3"},
		{"f() p50 < 88ns min-samples 3", took(0, 10, 90, 500), Fail, "p50=88ns..91ns of 3, expected p50 < 88ns"},
		{"f() p50 <= 88ns min-samples 3", took(0, 10, 90, 500), Error, "p50=88ns..91ns of 3 cannot be told from the limit, expected p50 <= 88ns"},
		{"f() p50 > 88ns min-samples 3", took(0, 10, 90, 500), Error, "p50=88ns..91ns of 3 cannot be told from the limit, expected p50 > 88ns"},
		{"f() p50 >= 88ns min-samples 3", took(0, 10, 90, 500), Pass, "p50=88ns..91ns of 3"},
		{"f() p50 >= 92ns min-samples 3", took(0, 10, 90, 500), Fail, "p50=88ns..91ns of 3, expected p50 >= 92ns"},
		{"f() p99 < 16ns min-samples 3", took(0, 1, 2, 15), Pass, "p99=15ns of 3"},
		{"f() p99 < 1us min-samples 3", took(1, 10, 90, 500), Error, "1 missed: p99=496ns..511ns of 3, expected p99 < 1us"},
		{"f() p99 < 1ns min-samples 3", took(1, 10, 90, 500), Error, "1 missed: p99=496ns..511ns of 3, expected p99 < 1ns"},
		{"f() p99 < 1us min-samples 4", took(0, 10, 90, 500), Error, "p99=496ns..511ns of 3, expected min-samples 4"},
		{"f() p99 < 1us min-samples 1", none, Error, "not reached, expected p99 < 1us"},
		{"f() p99 < 1us min-samples 1 allow-unreached", none, Pass, "not reached"},
		{"f() p99 < 1us min-samples 1 allow-unreached", lost, Error, "5 missed: not reached, expected p99 < 1us"},
		{"f() p99 < 1us min-samples 1 allow-unreached", counted(4, 0, 0), Error, "measured none of 4, expected min-samples 1"},

		{"f() max < 600ns", took(0, 10, 500), Pass, "max=500ns of 2"},
		{"f() max < 500ns", took(0, 10, 500), Fail, "max=500ns of 2, expected max < 500ns"},
		{"f() max <= 500ns", took(0, 10, 500), Pass, "max=500ns of 2"},
		{"f() max < 500ns", took(3, 10, 500), Fail, "max=500ns of 2, expected max < 500ns"},
		{"f() max < 600ns", took(3, 10, 500), Error, "3 missed: max=500ns of 2, expected max < 600ns"},
		{"f() max > 400ns", took(3, 10, 500), Pass, "max=500ns of 2"},
		{"f() max > 500ns", took(0, 10, 500), Fail, "max=500ns of 2, expected max > 500ns"},
		{"f() max > 500ns", took(3, 10, 500), Error, "3 missed: max=500ns of 2, expected max > 500ns"},
		{"f() max < 1h", none, Error, "not reached, expected max < 1h"},
		{"f() max < 1h", counted(4, 0, 0), Error, "measured none of 4, expected max < 1h"},
		{"f() max > 1us", none, Error, "not reached, expected max > 1us"},
		{"f() max < 1h allow-unreached", none, Pass, "not reached"},
		{"f() max < 1h allow-unreached", lost, Error, "5 missed: not reached, expected max < 1h"},

		{"f() ~ g() difference <= 10", two(55, 50, 0, 0), Pass, "55 ~ 50, difference 5"},
		{"f() ~ g() difference <= 10", two(50, 55, 0, 0), Pass, "50 ~ 55, difference 5"},
		{"f() ~ g() difference <= 10", two(50, 65, 0, 0), Fail, "50 ~ 65, difference 15, expected difference <= 10"},
		{"f() ~ g() difference <= 10", two(50, 65, 4, 0), Fail, "50 ~ 65, difference 15, expected difference <= 10"},
		{"f() ~ g() difference <= 10", two(50, 65, 5, 0), Error, "5 missed: 50 ~ 65, expected difference <= 10"},
		{"f() ~ g() difference <= 10", two(50, 65, 0, 5), Fail, "50 ~ 65, difference 15, expected difference <= 10"},
		{"f() ~ g() difference <= 10", two(50, 50, 0, 1), Error, "1 missed: 50 ~ 50, expected difference <= 10"},
		{"f() ~ g() difference == 3", two(50, 60, 2, 2), Fail, "50 ~ 60, difference 10, expected difference == 3"},
		{"f() ~ g() difference == 3", two(50, 60, 7, 2), Error, "9 missed: 50 ~ 60, expected difference == 3"},
		{"f() ~ g() difference != 10", two(50, 60, 0, 0), Fail, "50 ~ 60, difference 10, expected difference != 10"},
		{"f() ~ g() difference != 10", two(50, 60, 1, 0), Error, "1 missed: 50 ~ 60, expected difference != 10"},
		{"f() ~ g() difference > 10", two(50, 60, 0, 0), Fail, "50 ~ 60, difference 10, expected difference > 10"},
		{"f() ~ g() difference <= 10", none, Error, "not reached, expected difference <= 10"},
		{"f() ~ g() difference > 10 allow-unreached", none, Pass, "not reached"},
		{"f() ~ g() difference <= 10", two(5, 0, 0, 0), Error, "g not reached: 5 ~ 0, expected difference <= 10"},
		{"f() ~ g() difference <= 10", two(0, 5, 0, 0), Error, "f not reached: 0 ~ 5, expected difference <= 10"},
		{"f() ~ g() difference <= 10 allow-unreached", two(5, 0, 0, 0), Pass, "5 ~ 0, difference 5"},
		{"f() ~ g() difference <= 10", two(15, 0, 0, 0), Fail, "15 ~ 0, difference 15, expected difference <= 10"},

		{"f(x, count()) each count() <= 9", rowed(5, 0, 0, 0), Pass, "rows=5 matched 30 of 40"},
		{"f(x, count()) each count() <= 9", rowed(5, 2, 0, 0), Fail, "2 of 5 rows do not hold, expected each count() <= 9"},
		{"f(x, count()) each count() <= 9", rowed(5, 2, 1, 3), Fail, "2 of 5 rows do not hold, expected each count() <= 9"},
		{"f(x, count()) each count() <= 9", rowed(5, 0, 1, 0), Error, "1 missed: rows=5 matched 30 of 40, expected each count() <= 9"},
		{"f(x, count()) each count() <= 9", rowed(5, 0, 0, 3), Error, "3 in no row: rows=5 matched 30 of 40, expected each count() <= 9"},
		{"f(x, count()) each count() > 9", rowed(5, 2, 0, 0), Fail, "2 of 5 rows do not hold, expected each count() > 9"},
		{"f(x, count()) each count() > 9", rowed(5, 2, 1, 3), Error, "1 missed, 3 in no row: 2 of 5 rows do not hold, expected each count() > 9"},
		{"f(x, min(y)) each min(y) >= -5", rowed(5, 2, 1, 0), Fail, "2 of 5 rows do not hold, expected each min(y) >= -5"},
		{"f(x, sum(y)) each sum(y) < 5", rowed(5, 2, 1, 0), Error, "1 missed: 2 of 5 rows do not hold, expected each sum(y) < 5"},
		{"f(x, count()) each count() < 9", Observed{}, Error, "not reached, expected each count() < 9"},
		{"f(x, count()) each count() < 9", counted(7, 0, 0), Error, "matched none of 7, expected each count() < 9"},
		{"f(x, count()) each count() < 9 allow-unreached", counted(7, 0, 0), Pass, "matched none of 7"},
		{"f() ~ g() ratio >= 0.9", two(90, 100, 0, 0), Pass, "90 ~ 100, ratio 0.9"},
		{"f() ~ g() ratio > 0.9", two(90, 100, 0, 0), Fail, "90 ~ 100, ratio 0.9, expected ratio > 0.9"},
		{"f() ~ g() ratio >= 0.9", two(89, 100, 1, 0), Error, "1 missed: 89 ~ 100, expected ratio >= 0.9"},
		{"f() ~ g() ratio >= 0.9", two(88, 100, 1, 9), Fail, "88 ~ 100, ratio 0.88, expected ratio >= 0.9"},
		{"f() ~ g() ratio <= 2", two(5, 0, 0, 0), Fail, "5 ~ 0, expected ratio <= 2"},
		{"f() ~ g() ratio <= 2", two(5, 0, 0, 3), Error, "3 missed: 5 ~ 0, expected ratio <= 2"},
		{"f() ~ g() ratio == 1", two(math.MaxUint64, math.MaxUint64-1, 0, 0), Fail,
			"18446744073709551615 ~ 18446744073709551614, ratio 1, expected ratio == 1"},
		{"f() ~ g() ratio <= 2", none, Error, "not reached, expected ratio <= 2"},
		{"f() ~ g() ratio <= 2 allow-unreached", none, Pass, "not reached"},
		{"f() ~ g() ratio <= 2", Observed{Counts: Counts{Called: 3}, Other: Counts{Called: 4}}, Error, "0 ~ 0 have no ratio, expected ratio <= 2"},

		{"f() never", Observed{Skip: "there is no function f"}, Skip, "there is no function f"},
		{"f() max < 1ms", Observed{Emulated: true}, Skip, "an emulated CPU says nothing of durations"},
		{"f($duration > 1ms) never", Observed{Emulated: true}, Skip, "an emulated CPU says nothing of durations"},
		{"f() if $duration > 1ms never", Observed{Emulated: true, AllowEmulated: true, Counts: Counts{Called: 3}}, Pass, "matched 0 of 3"},
		{"f($duration) never", Observed{Emulated: true, Counts: Counts{Called: 3}}, Pass, "matched 0 of 3"},
		{"f() ~ g() if $duration > 1ms difference <= 1", Observed{Emulated: true}, Skip, "an emulated CPU says nothing of durations"},
	} {
		r := assertion(t, test.text).Judge(test.o)
		require.Equal(t, test.says, r.Text, test.text)
		require.Equal(t, test.want.String(), r.Status.String(), "%s: %s", test.text, r.Text)
		require.Equal(t, "a", r.Name)
		require.Equal(t, 4, r.Line)
		require.Equal(t, r.Status == Fail || r.Status == Error, len(r.Notes) > 0)
	}
}

func TestNotes(t *testing.T) {
	a := assertion(t, "any-of {f g}(return < 0) ~ h() difference <= 1")
	o := two(5, 9, 0, 2)
	o.Func, o.Unreadable, o.Other.Uncounted = "g", 3, true
	o.First = &Value{Bits: ^uint64(110), Signed: true}
	require.Equal(t, []string{
		"g called=5 matched=5 missed=0 unreadable=3 first=-111 (ECONNREFUSED)",
		"h called=9 matched=9 missed=2 or more",
	}, a.Judge(o).Notes)
	require.Equal(t, []Field{
		{"condition", "difference <= 1"}, {"spec", "any-of {f g}(return < 0)"},
		{"called", uint64(5)}, {"matched", uint64(5)}, {"missed", uint64(0)}, {"unreadable", uint64(3)},
		{"first", "-111 (ECONNREFUSED)"}, {"other_spec", "h()"},
		{"other_called", uint64(9)}, {"other_matched", uint64(9)}, {"other_missed", uint64(2)}, {"other_unreadable", uint64(0)}, {"other_uncounted", true},
	}, a.Judge(o).Fields)

	o.First = &Value{Bits: 0xffff_8880_0000_0010, Address: true}
	require.Contains(t, a.Judge(o).Notes[0], " first=0xffff888000000010")
	o.First.Bits = ^uint64(1) // an error pointer
	require.Contains(t, a.Judge(o).Notes[0], " first=-2 (ENOENT)")

	require.Equal(t, []Field{
		{"condition", "p99 < 1us"}, {"spec", "f()"}, {"called", uint64(3)}, {"matched", uint64(3)}, {"missed", uint64(0)}, {"unreadable", uint64(0)},
		{"samples", uint64(3)}, {"low", uint64(496)}, {"high", uint64(511)},
	}, assertion(t, "f() p99 < 1us min-samples 1").Judge(took(0, 1, 2, 500)).Fields)
}

func TestValue(t *testing.T) {
	for _, test := range []struct {
		v    Value
		want string
	}{
		{Value{Bits: 5}, "5"},
		{Value{Bits: math.MaxUint64, Signed: true}, "-1 (EPERM)"},
		{Value{Bits: math.MaxUint64}, "-1 (EPERM)"},
		{Value{Bits: 1 << 63}, "9223372036854775808"},
		{Value{Bits: 1 << 63, Signed: true}, "-9223372036854775808"},
		{Value{Bits: ^uint64(4094), Signed: true}, "-4095"},
		{Value{Signed: true}, "0"},
		{Value{Bits: 0xffff_8880_0000_0010, Address: true}, "0xffff888000000010"},
	} {
		require.Equal(t, test.want, test.v.String())
	}
}

func TestMetricReport(t *testing.T) {
	var h, negative compiler.Histogram
	for i := range uint64(100) {
		h.Add(i)
		negative.Add(i + 1)
	}
	for _, test := range []struct {
		text string
		o    Observed
		want string
	}{
		{"f(size) sum", Observed{Counts: Counts{Called: 9, Matched: 4}, Sum: "4096"}, "sum=4096 of 4"},
		{"f(size) sum", Observed{Counts: Counts{Called: 9, Matched: 4, Missed: 2}, Sum: "-11"}, "sum=-11 of 4 (2 missed)"},
		{"f() count", Observed{Counts: Counts{Called: 9, Matched: 4}}, "count=4 of 9"},
		{"f(size) histogram", Observed{Counts: Counts{Called: 100, Matched: 100}, Histogram: &h}, "values=100 p50=48..49 p90=88..91 p95=92..95 p99=96..99 p99.9=96..99"},
		{"f(size) histogram", Observed{}, "values=0"},
		{"f(size) histogram", Observed{Counts: Counts{Matched: 3, Unreadable: 3}, Histogram: new(compiler.Histogram)}, "values=0 (3 unreadable)"},
		{"f(size) histogram", Observed{Histogram: &h, Negative: &negative}, "values=200 p50=-1 p90=76..79 p95=88..91 p99=96..99 p99.9=96..99"},
		{"f(size) histogram", Observed{Histogram: new(compiler.Histogram), Negative: &negative}, "values=100 p50=-51..-50 p90=-11 p95=-6 p99=-2 p99.9=-1"},
		{"f(size) sum", Observed{}, "sum=0 of 0"},
		{"f(size, count()) table", Observed{Counts: Counts{Called: 9, Matched: 7}, Rows: 3}, "rows=3 count=7 of 9"},
	} {
		s, err := Parse("f", body+"metric m "+test.text)
		require.NoError(t, err)
		r := s.Metrics[0].Report(test.o)
		require.Equal(t, Pass, r.Status)
		require.Equal(t, test.want, r.Text)
		require.Equal(t, Result{Name: "m", Status: Skip, Text: "no", Line: 4, Fields: r.Fields[:2]}, s.Metrics[0].Report(Observed{Skip: "no"}))
	}
}

func TestRunJudge(t *testing.T) {
	run := &Run{Timeout: 2 * time.Minute, Status: 3}
	for _, test := range []struct {
		e    Exited
		want Status
		text string
	}{
		{Exited{Status: 3, Took: 41234 * time.Millisecond}, Pass, "status=3 time=41.2s"},
		{Exited{Status: 0, Took: time.Second}, Fail, "status=0 time=1.0s, expected status 3"},
		{Exited{Status: 3, Took: time.Second, Unsettled: true}, Error, "status=3 time=1.0s, a signal ended the test before the time of settle was over"},
		{Exited{Status: 137, Took: 2 * time.Minute, TimedOut: true}, Timeout, "time=120.0s, expected timeout 2m"},
	} {
		r := run.Judge(test.e)
		require.Equal(t, RunName, r.Name)
		require.Equal(t, test.want, r.Status)
		require.Equal(t, test.text, r.Text)
		require.Equal(t, test.e.Took.Seconds(), r.Seconds)
	}
}

func TestExpectFailure(t *testing.T) {
	for status, want := range map[Status]Result{
		Fail:    {Status: XFailed, Text: "slow: text"},
		Pass:    {Status: Fail, Text: "passed, but was expected to fail: slow"},
		Error:   {Status: Error, Text: "text"},
		Skip:    {Status: Skip, Text: "text"},
		Timeout: {Status: Timeout, Text: "text"},
	} {
		require.Equal(t, want, Result{Status: status, Text: "text"}.ExpectFailure("slow"))
	}
}

func TestExitStatus(t *testing.T) {
	for _, test := range []struct {
		run            Status
		others         string
		want, failSkip int
	}{
		{Pass, "", 0, 0},
		{Pass, "pass pass", 0, 0},
		{Pass, "pass skip xfail", 0, 1},
		{Pass, "pass fail", 1, 1},
		{Pass, "error pass", 1, 1},
		{Pass, "skip", 4, 1},
		{Skip, "skip skip", 4, 1},
		{Skip, "", 0, 1},
		{Pass, "skip xfail", 0, 1},
		{Fail, "pass", 1, 1},
		{Fail, "skip", 1, 1},
		{Timeout, "pass fail error", 124, 124},
	} {
		results := []Result{{Name: RunName, Status: test.run}}
		for i, word := range strings.Fields(test.others) {
			for s, name := range statusWords {
				if name == word {
					results = append(results, Result{Name: fmt.Sprint(i), Status: Status(s)})
				}
			}
		}
		require.Equal(t, test.want, ExitStatus(results, false), test)
		require.Equal(t, test.failSkip, ExitStatus(results, true), test)
	}
}

// truth reports whether a condition holds for calls none of which was missed. It
// follows the definition and does not use the code of the judge.
func truth(a *Assert, left, right []uint64, changed int) bool {
	n, m := len(left), len(right)
	switch a.Kind {
	case Never:
		return n == 0
	case AtLeast:
		return uint64(n) >= a.Low
	case AtMost:
		return uint64(n) <= a.High
	case Exactly, Count:
		return uint64(n) >= a.Low && uint64(n) <= a.High
	case Changed:
		return changed > 0
	case Unchanged:
		return changed == 0
	case Difference:
		return a.Op.Holds(cmp.Compare(uint64(max(n-m, m-n)), a.N))
	case Ratio:
		// The test uses only halves.
		return m > 0 && a.Op.Holds(2*n-m*int(2*a.Ratio.N/a.Ratio.scale())) || m == 0 && n > 0 && a.Op.Holds(1)
	case Max:
		longest := uint64(0)
		for _, ns := range left {
			longest = max(longest, ns)
		}
		return n > 0 && a.Op.Holds(cmp.Compare(longest, uint64(a.Limit)))
	}
	// The smallest duration that Permille of a thousand calls do not exceed.
	least := uint64(math.MaxUint64)
	for _, ns := range left {
		below := 0
		for _, other := range left {
			if other <= ns {
				below++
			}
		}
		if below*1000 >= n*int(a.Permille) {
			least = min(least, ns)
		}
	}
	return n > 0 && a.Op.Holds(cmp.Compare(least, uint64(a.Limit)))
}

// TestHonest checks that a pass and a fail are true whatever the missed calls were.
// It generates calls, lets the judge see some of them and compares its verdict with
// the truth about all of them.
func TestHonest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 7))
	var asserts []*Assert
	for _, text := range []string{
		"f() never", "f() at-least 3", "f() at-most 3", "f() exactly 3", "f() count 2..4", "f(x) changed", "f(x) unchanged",
		"f() p50 < 40ns min-samples 2", "f() p90 > 40ns min-samples 1", "f() p99 <= 40ns min-samples 3", "f() max < 40ns", "f() max >= 40ns",
		"f() ~ g() difference <= 2", "f() ~ g() difference == 2", "f() ~ g() difference != 2", "f() ~ g() difference > 2", "f() ~ g() difference >= 2",
		"f() ~ g() ratio <= 1.5", "f() ~ g() ratio == 1", "f() ~ g() ratio != 1", "f() ~ g() ratio > 0.5", "f() ~ g() ratio >= 2",
	} {
		a := assertion(t, text)
		allowed := *a
		allowed.AllowUnreached = true
		asserts = append(asserts, a, &allowed)
	}
	seen := map[Status]int{}
	for range 200_000 {
		a := asserts[random.IntN(len(asserts))]
		var o Observed
		o.Histogram = new(compiler.Histogram)
		var left, right []uint64 // the matching calls
		changed, loss := 0, random.IntN(3)
		side := func(c *Counts, all *[]uint64, first bool) {
			c.Uncounted = random.IntN(20) == 0
			for range random.IntN(7) {
				matches, unread := random.IntN(4) > 0, loss > 0 && random.IntN(5) == 0
				ns := random.Uint64N(80)
				differs := random.IntN(3) == 0
				if matches {
					*all = append(*all, ns)
				}
				if matches && first && differs {
					changed++
				}
				switch missed := loss > 0 && random.IntN(4) == 0; {
				case missed && !c.Uncounted:
					c.Missed++
					continue
				case missed:
					continue
				}
				c.Called++
				switch {
				case unread:
					c.Unreadable++
				case matches:
					c.Matched++
				}
				if matches && !unread && first {
					o.Histogram.Add(ns)
					o.Maximum = max(o.Maximum, ns)
					if differs {
						o.Changed++
					} else {
						o.Unchanged++
					}
				}
			}
		}
		side(&o.Counts, &left, true)
		if a.Other != nil {
			side(&o.Other, &right, false)
		}
		r := a.Judge(o)
		seen[r.Status]++
		unreached := a.AllowUnreached && o.Called == 0 && o.Other.Called == 0 || a.Kind == Max && a.AllowUnreached && len(left) == 0
		switch {
		case r.Status == Pass && !unreached:
			require.True(t, truth(a, left, right, changed), "%s: %s: %+v: %v %v", a, r.Text, o.Counts, left, right)
			require.True(t, a.AllowUnreached || o.Called > 0)
		case r.Status == Fail:
			require.False(t, truth(a, left, right, changed), "%s: %s: %+v: %v %v", a, r.Text, o.Counts, left, right)
		}
	}
	for _, status := range []Status{Pass, Fail, Error} {
		require.Greater(t, seen[status], 20_000)
	}
}

// TestDecides tries all possible results of a few missed calls. If all of them give
// the same verdict, the judge must give it too, except that it does not pass a
// condition with an upper limit if calls were missed.
func TestDecides(t *testing.T) {
	for matched := range uint64(8) {
		for missed := range uint64(5) {
			for _, test := range []struct {
				text      string
				low, high uint64
			}{{"never", 0, 0}, {"at-least 3", 3, math.MaxUint64}, {"at-most 3", 0, 3}, {"exactly 3", 3, 3}, {"count 2..4", 2, 4}} {
				pass, fail := true, true
				for n := matched; n <= matched+missed; n++ {
					holds := test.low <= n && n <= test.high
					pass, fail = pass && holds, fail && !holds
				}
				want := Error
				switch {
				case fail:
					want = Fail
				case pass && (missed == 0 || test.high == math.MaxUint64):
					want = Pass
				}
				r := assertion(t, "f() "+test.text).Judge(counted(10, matched, missed))
				require.Equal(t, want, r.Status, "%s: %s", test.text, r.Text)
			}
		}
	}
}

// TestKindWords checks that kindWords lists the words of all conditions.
func TestKindWords(t *testing.T) {
	require.Len(t, kinds, len(kindWords))
	for _, word := range kindWords {
		c, ok := conditionOf(word)
		require.True(t, ok)
		require.Equal(t, word, c.word())
	}
}
