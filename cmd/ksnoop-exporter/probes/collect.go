package probes

import (
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/suite"
	"github.com/ksnoop/ksnoop/runtime"
)

// collect gathers what the probe has counted.
func (p *Probe) collect(out *[]prometheus.Metric, counts []runtime.Counts, tables []*runtime.Table) error {
	if p.metric.Kind == suite.Calls {
		n := uint64(0)
		for _, c := range counts {
			if c.Probe.Measure == compiler.Calls {
				n += c.Matched
			}
		}
		return p.send(out, p.base+"_total", prometheus.CounterValue, float64(n), nil, nil)
	}
	for _, t := range tables {
		if err := p.collectTable(out, t); err != nil {
			return err
		}
	}
	return nil
}

// collectTable gathers a table.
func (p *Probe) collectTable(out *[]prometheus.Metric, t *runtime.Table) error {
	totals, err := p.rows.totals(t, p.printer)
	if err != nil {
		return err
	}
	names, columns := labels(t), p.columns(t)
	if len(totals) == 0 && len(names) == 0 {
		totals = []*total{{cells: make([]cell, len(t.Aggregates))}}
	}
	for _, sum := range totals {
		for _, c := range columns {
			if err := p.sendCell(out, c, sum, names); err != nil {
				return err
			}
		}
	}
	return nil
}

// column is an aggregate that is served.
type column struct {
	*compiler.Aggregate
	index   int
	name    string
	counter bool // the sum of its values cannot decrease
	sum     int  // of a histogram: the index of the sum of its values
}

// columns returns the aggregates of a table that are served: not the sum or the average
// of a value that also has a histogram, which includes the sum.
func (p *Probe) columns(t *runtime.Table) (all []column) {
	written := 0
	for _, a := range p.metric.Path[0].AnyOf {
		written = max(written, len(a.Aggregates()))
	}
	several := written > 1
	sums, histograms := map[string]int{}, map[string]bool{}
	for i, a := range t.Aggregates {
		switch {
		case a.Value == nil:
		case a.Kind == compiler.Sum:
			sums[a.Value.Name] = i
		case a.Kind == compiler.Hist || a.Kind == compiler.Linear:
			histograms[a.Value.Name] = true
		}
	}
	for i, a := range t.Aggregates {
		if (a.Kind == compiler.Sum || a.Kind == compiler.Avg) && histograms[a.Value.Name] {
			continue
		}
		c := column{Aggregate: a, index: i, name: partName(p.base, a, several)}
		if a.Value != nil {
			c.sum = sums[a.Value.Name]
			c.counter = !a.Signed() || neverNegative(p.traces[0], a.Value.Name)
		}
		all = append(all, c)
	}
	return all
}

func (p *Probe) sendCell(out *[]prometheus.Metric, c column, sum *total, names []string) error {
	number := inUnit(sum.cells[c.index].number.Float64(), c.Aggregate)
	switch c.Kind {
	case compiler.Count:
		return p.send(out, c.name+"_total", prometheus.CounterValue, float64(sum.calls), names, sum.labels)
	case compiler.Sum:
		if c.counter {
			return p.send(out, c.name+"_total", prometheus.CounterValue, number, names, sum.labels)
		}
		return p.send(out, c.name+"_sum", prometheus.GaugeValue, number, names, sum.labels)
	case compiler.Avg:
		m, err := prometheus.NewConstSummary(p.desc(c.name, names), sum.calls, number, nil, sum.labels...)
		return deliver(out, m, err)
	case compiler.Min, compiler.Max:
		if sum.calls == 0 {
			return nil
		}
		return p.send(out, c.name+"_"+c.Kind.String(), prometheus.GaugeValue, number, names, sum.labels)
	}
	counted, buckets := cumulate(c.Aggregate, sum.cells[c.index].buckets)
	total := inUnit(sum.cells[c.sum].number.Float64(), c.Aggregate)
	m, err := prometheus.NewConstHistogram(p.desc(c.name, names), counted, total, buckets, sum.labels...)
	return deliver(out, m, err)
}

// inUnit converts a number to the base unit.
func inUnit(n float64, a *compiler.Aggregate) float64 {
	if a.Unit() == "ns" {
		return n / 1e9
	}
	return n
}

func (p *Probe) desc(name string, labels []string) *prometheus.Desc {
	return prometheus.NewDesc(name, p.Text, labels, nil)
}

func (p *Probe) send(out *[]prometheus.Metric, name string, kind prometheus.ValueType, n float64, names, values []string) error {
	m, err := prometheus.NewConstMetric(p.desc(name, names), kind, n, values...)
	return deliver(out, m, err)
}

func deliver(out *[]prometheus.Metric, m prometheus.Metric, err error) error {
	if err == nil {
		*out = append(*out, m)
	}
	return err
}

// Edges of the buckets that histograms have, in powers of two. Buckets that are
// always there can be added up over time and machines; all 64 would cost more than
// they show.
const (
	fastest, slowest = 10, 36 // of durations in ns: 1 µs to 69 s
	largest          = 40     // of other values: 1 T
)

// edges returns the upper edges of the buckets of a histogram, inclusive.
func edges(a *compiler.Aggregate) (all []runtime.Int) {
	switch {
	case a.Kind == compiler.Linear:
		for i := range a.Buckets() - 1 {
			low, high := a.Edges(i)
			if i == 0 && a.Low == low { // the lowest value of the type
				continue // nothing is below
			}
			all = append(all, asInt(a, high))
		}
		return all
	case a.Unit() == "ns":
		for bits := fastest; bits <= slowest; bits++ {
			all = append(all, runtime.NewUint(1<<bits-1))
		}
		return all
	}
	if a.Signed() {
		all = append(all, runtime.NewInt(-1))
	}
	for bits := range min(largest, int(a.Value.Scalar.Width())) + 1 {
		all = append(all, runtime.NewUint(1<<bits-1))
	}
	return all
}

func asInt(a *compiler.Aggregate, v uint64) runtime.Int {
	if a.Signed() {
		return runtime.NewInt(int64(v))
	}
	return runtime.NewUint(v)
}

// cumulate returns the number of values, and by upper edge how many are not above it.
func cumulate(a *compiler.Aggregate, buckets []runtime.Bucket) (n uint64, upTo map[float64]uint64) {
	all := edges(a)
	counts := make([]uint64, len(all)+1)
	for _, b := range buckets {
		i, _ := slices.BinarySearchFunc(all, b.To, runtime.Int.Cmp)
		counts[i] += b.Count
	}
	upTo = map[float64]uint64{}
	for i, edge := range all {
		n += counts[i]
		upTo[inUnit(edge.Float64(), a)] = n
	}
	return n + counts[len(all)], upTo
}

// checkColumns refuses a table of which two aggregates would have one name.
func (p *Probe) checkColumns() error {
	for _, l := range p.session.Unit().Tables {
		probe := p.session.Unit().Events[l.Events[0]].Probe
		taken := map[string]string{}
		for _, c := range p.columns(&runtime.Table{Key: probe.Key, Aggregates: probe.Aggregates}) {
			for _, name := range seriesOf(c.Kind, c.name, c.counter) {
				if before := taken[name]; before != "" {
					return fmt.Errorf("%s and %s would both be %s: write them as two metrics", before, c.Name, name)
				}
				taken[name] = c.Name
			}
		}
	}
	return nil
}
