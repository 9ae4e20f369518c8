package verdict

import (
	"encoding/json"
	"slices"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/suite"
	"github.com/ksnoop/ksnoop/compiler/suite/bind"
	"github.com/ksnoop/ksnoop/runtime"
)

// testResult is a verdict, or a metric with what was measured.
type testResult struct {
	suite.Result
	metric   bool
	observed suite.Observed
	of       *suite.Metric
	table    *runtime.Table  // of a spec with aggregates, or nil
	breaking *runtime.Table  // its rows for which the condition on each does not hold; nil without such a condition
	json     json.RawMessage // the table
}

// judge returns the results: of the command, or of time that was cut short, of the assertions
// and the metrics.
func (t *tester) judge() ([]testResult, error) {
	seen, err := t.observe()
	if err != nil {
		return nil, err
	}
	var all []testResult
	if t.job != nil {
		all = append(all, testResult{Result: t.job.Judge(t.exited)})
	} else if t.interrupted != nil {
		all = append(all, testResult{Result: *t.interrupted})
	}
	for i, a := range t.suite.Asserts {
		o := seen[i]
		table := t.counted[i].table()
		var broken *runtime.Table
		if table != nil && a.Kind == suite.Each {
			broken = breaking(table, &a.Condition)
			o.Breaking, o.Rowless = len(broken.Rows), table.Full+table.Faulted
		}
		r := a.Judge(o)
		if err := t.counted[i].err; err != nil {
			r = notMeasured(a.Name, a.From, err)
		}
		if reason, ok := t.expected(a.Name); ok {
			r = r.ExpectFailure(reason)
		}
		all = append(all, testResult{Result: r, observed: o, table: table, breaking: broken})
	}
	for i, m := range t.suite.Metrics {
		c := t.counted[len(t.suite.Asserts)+i]
		o := seen[len(t.suite.Asserts)+i]
		r := m.Report(o)
		if c.err != nil {
			r = notMeasured(m.Name, m.From, c.err)
		}
		all = append(all, testResult{Result: r, metric: true, observed: o, of: m, table: c.table()})
	}
	for i := range all {
		if err := t.showTable(&all[i]); err != nil {
			return nil, err
		}
		if all[i].Status != suite.Pass || all[i].metric {
			all[i].Notes = append(all[i].Notes, t.evidenceOf(all[i].Name)...)
		}
	}
	return all, nil
}

// notMeasured returns the result of an assertion or a metric whose spec does not fit the
// kernel, or could not be attached.
func notMeasured(name string, from spec.Source, err error) suite.Result {
	return suite.Result{Name: name, Status: suite.Error, Text: bind.Sentence(err), Line: from.Line}
}

// skipped returns the results if nothing can be observed.
func (t *tester) skipped(reason string) (all []testResult) {
	for _, a := range t.suite.Asserts {
		all = append(all, testResult{Result: a.Judge(suite.Observed{Skip: reason})})
	}
	for _, m := range t.suite.Metrics {
		all = append(all, testResult{Result: m.Report(suite.Observed{Skip: reason}), metric: true, of: m})
	}
	return all
}

// expected reports whether an assertion is expected to fail, and why.
func (t *tester) expected(name string) (reason string, ok bool) {
	if slices.Contains(t.options.XFail, name) {
		return "--xfail", true
	}
	return t.suite.Expected(name, t.machine)
}

// observe reads the counts, in the order of what is counted.
func (t *tester) observe() ([]suite.Observed, error) {
	for _, u := range t.units {
		if err := u.read(); err != nil {
			return nil, err
		}
	}
	all := make([]suite.Observed, len(t.counted))
	for i, c := range t.counted {
		o := &all[i]
		o.Skip, o.Emulated, o.AllowEmulated = c.skip, t.machine.Emulated, t.options.AllowEmulated
		if c.skip != "" || c.err != nil || c.last > 0 {
			continue
		}
		o.Counts = c.sides[0].observe(o)
		if len(c.sides) > 1 {
			o.Other = c.sides[1].observe(&suite.Observed{})
		}
		if table := c.table(); table != nil {
			o.Rows = len(table.Rows)
		}
	}
	return all, nil
}

// unitCounts holds the counts of a unit after its end.
type unitCounts struct {
	measured   []runtime.Measured
	tables     []*runtime.Table
	missed     []runtime.Missed
	unfollowed uint64
}

func (u *testUnit) read() (err error) {
	if u.counts.measured, err = u.session.Measured(); err != nil {
		return err
	}
	if u.counts.tables, err = u.session.Tables(); err != nil {
		return err
	}
	if u.counts.missed, err = u.session.Missed(); err != nil {
		return err
	}
	u.counts.unfollowed, err = u.session.Unfollowed()
	return err
}

// observe adds up the measurements of a side, over all functions of a glob.
func (s *countedSide) observe(o *suite.Observed) suite.Counts {
	var sum *runtime.Measured
	for i := range s.unit.counts.measured {
		m := &s.unit.counts.measured[i]
		switch {
		case m.Probe.Asked != s.trace():
		case sum == nil:
			sum = m
		default:
			sum.Merge(m)
		}
	}
	counts := suite.Counts{Uncounted: s.unit.counts.unfollowed > 0}
	if s.trace() != s.path[len(s.path)-1].AnyOf[0] {
		counts.Func = s.trace().Target() // not as written in the file
	}
	s.addMissed(&counts)
	if sum == nil { // no function of the glob could be traced
		return counts
	}
	counts.Called, counts.Matched = sum.Called(), sum.Matched
	counts.Unreadable = sum.Unreadable + sum.Faulted
	counts.Missed += sum.NoRoom
	o.Changed, o.Unchanged = sum.Changed, sum.Unchanged
	o.Histogram, o.Negative = sum.Histogram, sum.Negative
	if sum.Max != nil {
		o.Maximum, _ = sum.Max.Uint64()
	}
	o.Sum = suite.Digits(sum.Sum.String())
	if f := sum.First; f != nil && f.Read {
		v := sum.Probe.First
		_, address := btf.As[*btf.Pointer](v.Type)
		o.First = &suite.Value{Bits: f.Value, Signed: v.Scalar.Signed, Address: address && v.Format == ""}
	}
	return counts
}

// addMissed adds the calls that the kernel did not show to the side's programs. Which
// of the functions that share a program were called is unknown.
func (s *countedSide) addMissed(counts *suite.Counts) {
	for _, m := range runtime.MissedOnce(s.unit.counts.missed) {
		if s.has(m.Probes) {
			counts.Missed += m.N
			counts.Uncounted = counts.Uncounted || m.Uncounted
		}
	}
}

func (s *countedSide) has(probes []*compiler.Probe) bool {
	return slices.ContainsFunc(probes, func(p *compiler.Probe) bool { return slices.Contains(s.traces, p.Asked) })
}
