package report

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// MetricType is the type of a metric in Prometheus.
type MetricType string

// The types of metrics.
const (
	Counter   MetricType = "counter"
	Gauge     MetricType = "gauge"
	Histogram MetricType = "histogram"
)

// Metric is a set of samples with one name.
type Metric struct {
	Name    string
	Help    string
	Type    MetricType
	Samples []Sample // no two have the same labels
}

// Sample is a number, or a histogram.
type Sample struct {
	Labels  []Label
	Value   float64  // of a counter or a gauge
	Buckets []Bucket // of a histogram, in the order of their edges
	Beyond  uint64   // number of values above the last edge
	Sum     float64  // of all values
}

// Label is a name with any text as its value.
type Label struct{ Name, Value string }

// Bucket counts the values up to an edge and above the edge before.
type Bucket struct {
	UpTo  float64
	Count uint64
}

// appendMetrics appends metrics in the text format of Prometheus
// (https://prometheus.io/docs/instrumenting/exposition_formats/). In names, it
// replaces invalid characters by underscores. It returns an error for metrics, or
// samples, that Prometheus would take for the same one, as it would then reject the
// whole file.
func appendMetrics(dst []byte, metrics []Metric) ([]byte, error) {
	seen := map[string]string{} // the metric of each series
	for _, m := range metrics {
		name := metricName(m.Name)
		for _, series := range seriesNames(name, m.Type) {
			if before, ok := seen[series]; ok {
				return nil, fmt.Errorf("%s and %s would both be %s in Prometheus: rename one of them", before, m.Name, series)
			}
			seen[series] = m.Name
		}
		if m.Help != "" {
			dst = fmt.Appendf(dst, "# HELP %s %s\n", name, helpText.Replace(sound(m.Help)))
		}
		dst = fmt.Appendf(dst, "# TYPE %s %s\n", name, m.Type)
		labels := map[string]bool{}
		for _, s := range m.Samples {
			if m.Type == Histogram {
				s.Labels = withoutEdges(s.Labels)
			}
			key := labelSet(s.Labels)
			if labels[key] {
				return nil, fmt.Errorf("the metric %s has two samples with the labels {%s}", name, key)
			}
			labels[key] = true
			var err error
			if dst, err = appendSample(dst, name, m.Type, s); err != nil {
				return nil, err
			}
		}
	}
	return dst, nil
}

// seriesNames returns the names of the series that a metric uses.
func seriesNames(name string, t MetricType) []string {
	if t != Histogram {
		return []string{name}
	}
	return []string{name, name + "_bucket", name + "_sum", name + "_count"}
}

func appendSample(dst []byte, name string, t MetricType, s Sample) ([]byte, error) {
	if t != Histogram {
		return appendNumber(dst, name, s.Labels, s.Value), nil
	}
	var count uint64
	last := math.Inf(-1)
	for _, b := range s.Buckets {
		if !(b.UpTo > last) || math.IsInf(b.UpTo, 1) {
			return nil, fmt.Errorf("the edges of the metric %s do not rise: %v follows %v", name, b.UpTo, last)
		}
		last = b.UpTo
		count += b.Count
		dst = appendNumber(dst, name+"_bucket", withEdge(s.Labels, number(b.UpTo)), float64(count))
	}
	count += s.Beyond
	dst = appendNumber(dst, name+"_bucket", withEdge(s.Labels, "+Inf"), float64(count))
	dst = appendNumber(dst, name+"_sum", s.Labels, s.Sum)
	return appendNumber(dst, name+"_count", s.Labels, float64(count)), nil
}

// withEdge returns labels with that of a bucket's edge added.
func withEdge(labels []Label, edge string) []Label {
	return append(slices.Clone(labels), Label{"le", edge})
}

// withoutEdges renames labels that would be taken for the edges of buckets, as
// Prometheus renames labels whose names it uses itself.
func withoutEdges(labels []Label) []Label {
	labels = slices.Clone(labels)
	for i := range labels {
		if labelName(labels[i].Name) == "le" {
			labels[i].Name = "exported_le"
		}
	}
	return labels
}

func appendNumber(dst []byte, name string, labels []Label, n float64) []byte {
	dst = append(dst, name...)
	if set := labelSet(labels); set != "" {
		dst = append(append(append(dst, '{'), set...), '}')
	}
	return append(append(append(dst, ' '), number(n)...), '\n')
}

func number(n float64) string {
	switch {
	case math.IsInf(n, 1):
		return "+Inf"
	case n == math.Trunc(n) && math.Abs(n) < 1e15:
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return strconv.FormatFloat(n, 'g', -1, 64)
}

// labelSet returns the labels as text, sorted by name. Of labels with the same name
// the first is used.
func labelSet(labels []Label) string {
	sorted := slices.Clone(labels)
	for i := range sorted {
		sorted[i].Name = labelName(sorted[i].Name)
	}
	sort.SliceStable(sorted, func(i, j int) bool { return sorted[i].Name < sorted[j].Name })
	sorted = slices.CompactFunc(sorted, func(a, b Label) bool { return a.Name == b.Name })
	var parts []string
	for _, l := range sorted {
		parts = append(parts, l.Name+`="`+labelText.Replace(sound(l.Value))+`"`)
	}
	return strings.Join(parts, ",")
}

var (
	helpText  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	labelText = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// sound returns text as valid UTF-8, with a blank for each carriage return.
func sound(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\r", " ")
}

// metricName returns name with only the characters that names of metrics may have.
func metricName(name string) string { return allowed(name, true) }

// labelName returns name with only the characters that names of labels may have:
// those of metrics without colons. It reduces leading underscores to one, as two are
// reserved for Prometheus.
func labelName(name string) string {
	name = allowed(name, false)
	if strings.HasPrefix(name, "__") {
		return "_" + strings.TrimLeft(name, "_")
	}
	return name
}

func allowed(name string, colons bool) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == ':' && colons:
			return r
		}
		return '_'
	}, name)
	if name == "" || '0' <= name[0] && name[0] <= '9' {
		return "_" + name
	}
	return name
}
