package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// MetricType is what a metric's numbers mean to Prometheus.
type MetricType string

// The types.
const (
	Counter   MetricType = "counter"
	Gauge     MetricType = "gauge"
	Histogram MetricType = "histogram"
)

// Metric is numbers of one name.
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
	Beyond  uint64   // how many lie above the last edge
	Sum     float64  // of all that was counted
}

// Label is a name and any text.
type Label struct{ Name, Value string }

// Bucket is how many values lie up to an edge and above the one before.
type Bucket struct {
	UpTo  float64
	Count uint64
}

// AppendMetrics appends metrics in the text format of Prometheus
// (https://prometheus.io/docs/instrumenting/exposition_formats/). Names get an
// underscore for what cannot be in them. Metrics, or samples, that would be one
// to Prometheus are an error: it would read none of the file.
func AppendMetrics(dst []byte, metrics []Metric) ([]byte, error) {
	seen := map[string]bool{}
	for _, m := range metrics {
		name := metricName(m.Name)
		for _, series := range seriesNames(name, m.Type) {
			if seen[series] {
				return nil, fmt.Errorf("there are two metrics %s", series)
			}
			seen[series] = true
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

// seriesNames are the names that a metric takes.
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

// withEdge adds the label of a bucket's edge.
func withEdge(labels []Label, edge string) []Label {
	return append(slices.Clone(labels), Label{"le", edge})
}

// withoutEdges renames labels that would be taken for the edges of buckets, as
// Prometheus renames what it has a name for.
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

// labelSet is the labels in the order of their names. Of two with one name the
// first counts.
func labelSet(labels []Label) string {
	sorted := slices.Clone(labels)
	for i := range sorted {
		sorted[i].Name = labelName(sorted[i].Name)
	}
	slices.SortStableFunc(sorted, func(a, b Label) int { return strings.Compare(a.Name, b.Name) })
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

// sound is text in UTF-8, on lines that all agree on.
func sound(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\r", " ")
}

// metricName has the letters that names of metrics may have.
func metricName(name string) string { return allowed(name, true) }

// labelName is the same without colons; two underscores in front are
// Prometheus' own.
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
