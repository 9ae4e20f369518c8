package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/report"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/suite"
	"github.com/ksnoop/ksnoop/e2e/schema"
	"github.com/ksnoop/ksnoop/runtime"
)

// strictSchema is a schema of the documentation, by which nothing may be printed
// that it does not name.
func strictSchema(t testing.TB, name string) *schema.Schema {
	s, err := schema.Strict("../../docs/" + name + ".schema.json")
	require.NoError(t, err)
	return s
}

// All that is printed of a unit that has everything.
func TestSchemaOfUnit(t *testing.T) {
	unit := recordUnit(t)
	p := newJSON(dumpDefaults, unit, newSymbols(namedSymbols), "6.12")
	p.begin()
	var all account
	for i := range unit.Events {
		var ev runtime.Event
		require.NoError(t, ev.Decode(unit, fitRecord(unit, nil, i)))
		require.NoError(t, p.event(&ev))
		all.tallies = append(all.tallies, runtime.Tally{Event: unit.Events[i], Counters: compiler.Counters{Matched: 2}, Delivered: 1, Unread: 1})
	}
	p.end(newSummary(unit, all))
	text := string(p.text)
	require.NoError(t, strictSchema(t, "trace").Lines(text))
	require.Equal(t, len(unit.Events)+2, strings.Count(text, "\n"))
	require.Contains(t, text, `"group":"kprobes","event":"a"`)
}

// The verdicts on all kinds of assertions, and all kinds of metrics, of which all
// there can be was observed, or nothing.
func TestSchemaOfVerdicts(t *testing.T) {
	s, err := suite.Parse("x.probes", `ksnoop-probes 1
suite x
run true
assert never      f(return < 0)    never
assert quick      f()              p50 < 1ms  min-samples 1
assert longest    f()              max < 1ms
assert changed    f(a->b)          changed
assert balanced   f() ~ g()        difference <= 1
metric calls      f()              count
metric bytes      f(a)             sum
metric sizes      f(a)             histogram
`)
	require.NoError(t, err)
	var h compiler.Histogram
	h.Add(5)
	counts := suite.Counts{Called: 2, Matched: 1, Missed: 1, Unreadable: 1, Uncounted: true}
	seen := suite.Observed{
		Counts: counts, Other: counts, Changed: 1, Histogram: &h, Maximum: 5,
		Sum: suite.Value{Bits: ^uint64(0), Signed: true}, First: &suite.Value{Bits: ^uint64(0), Signed: true},
	}
	tester := &tester{suite: s, machine: suite.Machine{Release: "6.12", Emulated: true}}
	results := []testResult{{Result: s.Run.Judge(suite.Exited{Status: 3, Took: 1})}, {Result: s.Run.Judge(suite.Exited{TimedOut: true})}}
	for _, o := range []suite.Observed{seen, {}, {Skip: "there is none"}} {
		for _, a := range s.Asserts {
			results = append(results, testResult{Result: a.Judge(o)}, testResult{Result: a.Judge(o).ExpectFailure("why")})
		}
		for _, m := range s.Metrics {
			results = append(results, testResult{Result: m.Report(o)})
		}
	}
	var text strings.Builder
	w, err := report.New("json", &text, nil)
	require.NoError(t, err)
	require.NoError(t, w.Begin(report.Suite{Name: s.Name, Results: len(results), Fields: tester.about()}))
	for _, r := range results {
		require.NoError(t, w.Result(tester.reported(r)))
	}
	require.NoError(t, w.End())
	require.NoError(t, strictSchema(t, "results").Lines(text.String()))
	for _, status := range []string{"pass", "fail", "skip", "xfail", "error", "timeout"} {
		require.Contains(t, text.String(), `"status":"`+status+`"`)
	}
}
