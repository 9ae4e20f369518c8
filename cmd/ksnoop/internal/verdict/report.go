package verdict

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/report"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/suite"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// statuses maps the statuses of verdicts to those of results.
var statuses = map[suite.Status]report.Status{
	suite.Pass: report.Pass, suite.Fail: report.Fail, suite.Skip: report.Skip,
	suite.XFailed: report.XFail, suite.Error: report.Error, suite.Timeout: report.Timeout,
}

// reported converts a result for the writers.
func (t *tester) reported(r testResult) report.Result {
	shown := report.Result{
		Name: r.Name, Status: statuses[r.Status], Text: r.Text, Notes: r.Notes, File: t.suite.File, Line: r.Line, Seconds: r.Seconds,
	}
	for _, f := range r.Fields {
		if n, ok := f.Value.(suite.Digits); ok {
			f.Value = json.RawMessage(n)
		}
		shown.Fields = append(shown.Fields, report.Field{Name: f.Name, Value: f.Value})
	}
	if r.json != nil {
		shown.Fields = append(shown.Fields, report.Field{Name: "table", Value: r.json})
	}
	return shown
}

// about returns the fields on the whole run, for programs.
func (t *tester) about() []report.Field {
	return []report.Field{{Name: "ksnoop", Value: t.options.Version}, {Name: "kernel", Value: t.machine.Release}, {Name: "file", Value: t.suite.File},
		{Name: "emulated", Value: t.machine.Emulated}, {Name: "uid", Value: os.Getuid()}}
}

// writeMetrics writes the metrics for Prometheus.
func (t *tester) writeMetrics() error {
	if t.metrics == nil {
		return nil
	}
	metrics := []report.Metric{}
	for _, r := range t.results {
		if r.metric && r.of.Kind != suite.Rows && r.Status == suite.Pass {
			metrics = append(metrics, t.metric(r))
		}
	}
	return report.WriteMetrics(t.metrics, metrics)
}

// openMetrics opens the file for Prometheus, or returns an error if the metrics cannot be
// written to it.
func (t *tester) openMetrics() (err error) {
	if t.options.PromTextfile == "" {
		return nil
	}
	var metrics []report.Metric
	for _, m := range t.suite.Metrics {
		if m.Kind != suite.Rows {
			metrics = append(metrics, t.metric(testResult{Result: suite.Result{Name: m.Name}, of: m}))
		}
	}
	t.metrics, err = report.OpenMetrics(t.options.PromTextfile, metrics)
	return err
}

// metric returns a metric for Prometheus, named ksnoop_SUITE_NAME.
func (t *tester) metric(r testResult) report.Metric {
	m := report.Metric{Name: "ksnoop_" + t.suite.Name + "_" + r.Name, Help: r.of.String(), Type: report.Gauge}
	switch r.of.Kind {
	case suite.Calls:
		m.Samples = []report.Sample{{Value: float64(r.observed.Matched)}}
	case suite.Sum:
		m.Samples = []report.Sample{{Value: inexact(r.observed.Sum)}}
	case suite.Histogram:
		m.Type = report.Histogram
		m.Samples = []report.Sample{histogramSample(r.observed)}
	}
	return m
}

// inexact returns the nearest number that Prometheus can hold.
func inexact(n suite.Digits) float64 {
	f, _ := strconv.ParseFloat(string(n), 64) // 0 if it is empty
	return f
}

// histogramSample returns a sample with an edge for each power of two up to the
// largest value. The histogram has sixteen times as many, more than a dashboard can
// use. Negative values are together, up to the edge -1.
func histogramSample(o suite.Observed) report.Sample {
	s := report.Sample{Sum: inexact(o.Sum)}
	if n := o.Negative.Samples(); n > 0 {
		s.Buckets = []report.Bucket{{UpTo: -1, Count: n}}
	}
	if o.Histogram == nil {
		return s
	}
	count := uint64(0)
	for i, n := range o.Histogram {
		count += n
		_, high := compiler.BucketEdges(i)
		if high&(high+1) != 0 { // the power of two is not complete yet
			continue
		}
		if count > 0 || len(s.Buckets) > 0 {
			s.Buckets = append(s.Buckets, report.Bucket{UpTo: float64(high), Count: count})
		}
		count = 0
	}
	for len(s.Buckets) > 0 && s.Buckets[len(s.Buckets)-1].Count == 0 {
		s.Buckets = s.Buckets[:len(s.Buckets)-1]
	}
	if n := len(s.Buckets); n > 0 && s.Buckets[n-1].UpTo >= math.MaxUint64 {
		s.Beyond, s.Buckets = s.Buckets[n-1].Count, s.Buckets[:n-1]
	}
	return s
}

// listSuite prints the content of a probe file.
func listSuite(w io.Writer, s *suite.Suite) error {
	t := render.NewTable("NAME", "KIND", "WHAT")
	if s.Run != nil {
		t.Row(suite.RunName, "run", s.Run.String())
	}
	for _, a := range s.Asserts {
		t.Row(a.Name, "assert", a.String())
	}
	for _, m := range s.Metrics {
		t.Row(m.Name, "metric", m.String())
	}
	_, err := fmt.Fprint(w, t)
	return err
}
