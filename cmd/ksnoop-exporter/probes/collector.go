package probes

import (
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// Collector serves what a set of probes has counted, and how well.
type Collector struct {
	// Reading, unless nil, is called to read the counts, with a function that
	// does it.
	Reading func(read func() error) error

	mu       sync.Mutex
	set      *Set
	failures uint64 // readings that have failed
	last     error  // of the last scrape, or nil
}

// Put replaces the set, and returns the earlier one, which nobody reads any more.
func (c *Collector) Put(s *Set) *Set {
	c.mu.Lock()
	defer c.mu.Unlock()
	earlier := c.set
	c.set = s
	return earlier
}

// Ready reports whether there are probes, and returns the error if what they count could
// not be read the last time.
func (c *Collector) Ready() (attached bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.set != nil, c.last
}

// Describe describes nothing: the names of metrics change with the probe files.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

var probeLabels = []string{"suite", "metric"}

var (
	upDesc     = prometheus.NewDesc(prefix+"probe_up", "Whether the calls of a metric line are counted.", probeLabels, nil)
	placesDesc = prometheus.NewDesc(prefix+"probe_functions", "Functions and tracepoints that a metric line is attached to, by attach kind.",
		append(probeLabels[:2:2], "attach"), nil)
	callsDesc = prometheus.NewDesc(prefix+"probe_calls_total", "Calls that programs have seen, by whether they match the conditions of the line.",
		append(probeLabels[:2:2], "matched"), nil)
	lostDesc = prometheus.NewDesc(prefix+"probe_lost_calls_total", "Calls that are in no count although they may match, by reason.",
		append(probeLabels[:2:2], "reason"), nil)
	countedDesc = prometheus.NewDesc(prefix+"probe_misses_counted", "Whether the kernel counts all calls that it skips; 0 means that more may be lost.",
		probeLabels, nil)
	seriesDesc = prometheus.NewDesc(prefix+"probe_series", "Label sets of a metric line. Further keys are counted together when there are as many as --series.",
		probeLabels, nil)
	failedDesc = prometheus.NewDesc(prefix+"exporter_read_errors_total", "Readings of counts that have failed.", nil, nil)
)

// Collect sends all metrics. What cannot be read makes the scrape fail, as Prometheus
// would otherwise take it for series that have ended.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = nil
	for _, p := range c.set.probes() {
		var all []prometheus.Metric
		read := func() (err error) {
			all, err = p.metrics()
			return err
		}
		if err := c.reading(read); err != nil {
			err = fmt.Errorf("metric %s: %w", p.Name, err)
			c.last = err
			c.failures++
			ch <- prometheus.NewInvalidMetric(upDesc, err)
			continue
		}
		for _, m := range all {
			ch <- m
		}
	}
	ch <- prometheus.MustNewConstMetric(failedDesc, prometheus.CounterValue, float64(c.failures))
}

func (c *Collector) reading(read func() error) error {
	if c.Reading == nil {
		return read()
	}
	return c.Reading(read)
}

// metrics returns what the probe has counted, and how well.
func (p *Probe) metrics() (all []prometheus.Metric, err error) {
	add := func(desc *prometheus.Desc, kind prometheus.ValueType, n float64, more ...string) {
		all = append(all, prometheus.MustNewConstMetric(desc, kind, n, append([]string{p.Suite, p.Name}, more...)...))
	}
	if p.session == nil {
		add(upDesc, prometheus.GaugeValue, 0)
		return all, nil
	}
	counts, err := p.session.Counts()
	if err != nil {
		return nil, err
	}
	tables, err := p.session.Tables()
	if err != nil {
		return nil, err
	}
	add(upDesc, prometheus.GaugeValue, 1)
	for kind, n := range p.functions() {
		add(placesDesc, prometheus.GaugeValue, float64(n), string(kind))
	}
	q := qualityOf(counts, tables)
	for reason, n := range q.lost {
		add(lostDesc, prometheus.CounterValue, float64(n), reason)
	}
	add(callsDesc, prometheus.CounterValue, float64(q.matched), "true")
	add(callsDesc, prometheus.CounterValue, float64(q.filtered), "false")
	add(countedDesc, prometheus.GaugeValue, q.counted)
	err = p.collect(&all, counts.Events, tables)
	add(seriesDesc, prometheus.GaugeValue, float64(len(p.rows.used)))
	return all, err
}

// functions returns the number of functions by attach kind.
func (p *Probe) functions() map[compiler.Kind]int {
	n := map[compiler.Kind]int{}
	type at struct {
		kind  compiler.Kind
		probe *compiler.Probe
	}
	seen := map[at]bool{}
	for _, a := range p.session.Unit().Attachments {
		for _, place := range a.Places {
			if !seen[at{a.Kind, place.Probe}] {
				seen[at{a.Kind, place.Probe}] = true
				n[a.Kind]++
			}
		}
	}
	return n
}

// quality counts the matched, filtered and lost calls of a line.
type quality struct {
	matched, filtered uint64
	lost              map[string]uint64 // by reason
	counted           float64           // 1 if the kernel counts all calls that it skips
}

func qualityOf(counts runtime.SessionCounts, tables []*runtime.Table) quality {
	q := quality{lost: map[string]uint64{"missed": 0, "no_room": 0, "unreadable": 0, "unpaired": 0}, counted: 1}
	for _, c := range counts.Events {
		q.lost["no_room"] += c.NoRoom
		q.lost["unreadable"] += c.Unreadable
		q.lost["unpaired"] += c.Unpaired
		if c.Kind != compiler.BeginEvent {
			q.matched += c.Matched
			q.filtered += c.Filtered
		}
	}
	for _, m := range runtime.MissedOnce(counts.Missed) {
		q.lost["missed"] += m.N
		if m.Uncounted {
			q.counted = 0
		}
	}
	for _, t := range tables {
		q.lost["table_full"] += t.Full
		q.lost["faulted"] += t.Faulted
	}
	return q
}
