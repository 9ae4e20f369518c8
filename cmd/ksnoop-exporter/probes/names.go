package probes

import (
	"regexp"
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/suite"
	"github.com/ksnoop/ksnoop/runtime"
)

// prefix begins the names of all metrics.
const prefix = "ksnoop_"

// ownNames are the names of the metrics about the exporter itself, without the prefix.
var ownNames = []string{
	"probe_up", "probe_functions", "probe_calls_total", "probe_lost_calls_total", "probe_misses_counted", "probe_series", "build_info",
	"exporter_read_errors_total", "exporter_config_last_reload_successful", "exporter_config_last_reload_success_timestamp_seconds",
}

// word returns text with only the characters that names of metrics and of labels may
// have, and no underscores at its ends or in a row.
func word(text string) string {
	text = strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return r
		}
		return '_'
	}, text)
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '_' }), "_")
}

// metricName returns the name of a metric without what its type adds.
func metricName(s *suite.Suite, m *suite.Metric) string {
	return prefix + word(s.Name) + "_" + word(m.Name)
}

// partName returns the name of the metric of an aggregate without what its type adds.
// If the spec has several, each has the name of its value, but for count().
func partName(name string, a *compiler.Aggregate, several bool) string {
	unit := ""
	if a.Unit() == "ns" {
		unit = "_seconds"
	}
	if several && a.Value != nil {
		if v := word(a.Value.Name); v != "" {
			name += "_" + v
		}
	}
	return name + unit
}

// seriesOf returns the names of the series of an aggregate whose metric has a name. A
// counter is a sum that cannot decrease.
func seriesOf(kind compiler.AggregateKind, name string, counter bool) []string {
	switch kind {
	case compiler.Sum:
		if !counter {
			return []string{name + "_sum"}
		}
		return []string{name + "_total"}
	case compiler.Count:
		return []string{name + "_total"}
	case compiler.Min, compiler.Max:
		return []string{name + "_" + kind.String()}
	case compiler.Avg:
		return []string{name, name + "_sum", name + "_count"}
	}
	return []string{name, name + "_bucket", name + "_sum", name + "_count"}
}

// mayHave returns the names of the series that a metric line may have. Which of them it has
// depends on the kernel: a sum may be a counter or not. Lowered is its spec as it is
// counted, or nil.
func mayHave(base string, m *suite.Metric, lowered *spec.Trace) (all []string) {
	if m.Kind == suite.Calls {
		return []string{base + "_total"}
	}
	several := m.Kind == suite.Rows && len(m.Path[0].AnyOf[0].Aggregates()) > 1
	histograms := map[string]bool{}
	for _, a := range lowered.Aggregates() {
		if isHistogram(a.Name.Name) {
			histograms[a.X.String()] = true
		}
	}
	for _, a := range lowered.Aggregates() {
		kind := compiler.AggregateKind(slices.Index(compiler.AggregateNames[:], a.Name.Name))
		of := &compiler.Aggregate{Kind: kind}
		if a.X != nil {
			of.Value = &compiler.Value{Name: a.X.String()}
			if b, ok := uncast(a.X).(*spec.Builtin); ok && b.Name.Name == "duration" {
				of.Value.Base.Builtin = compiler.Duration
			}
			if (kind == compiler.Sum || kind == compiler.Avg) && histograms[of.Value.Name] {
				continue // part of the histogram
			}
		}
		name := partName(base, of, several)
		all = append(all, seriesOf(kind, name, true)...)
		if kind == compiler.Sum && !neverNegative(lowered, of.Value.Name) {
			all = append(all, seriesOf(kind, name, false)...)
		}
	}
	return all
}

// uncast returns a value without the casts before it.
func uncast(x spec.Expr) spec.Expr {
	for {
		c, ok := x.(*spec.Cast)
		if !ok {
			return x
		}
		x = c.X
	}
}

// path matches a value that ends in the name of a member or is a name itself.
var path = regexp.MustCompile(`^[$@*]*[A-Za-z_][A-Za-z0-9_]*(?:(?:->|\.)([A-Za-z_][A-Za-z0-9_]*))*$`)

// labels returns the names of the labels of a table: the last member of each value of
// the key, or the whole value if that would give two labels one name.
func labels(t *runtime.Table) []string {
	var short, whole []string
	if t.ByFunction {
		short, whole = append(short, "function"), append(whole, "function")
	}
	for _, v := range t.Key {
		name, _, _ := strings.Cut(v.Name, ":")
		last := name
		if m := path.FindStringSubmatch(name); m != nil && m[1] != "" {
			last = m[1]
		}
		short, whole = append(short, label(last)), append(whole, label(name))
	}
	used := map[string]int{}
	for _, name := range short {
		used[name]++
	}
	taken := map[string]bool{}
	for i, name := range short {
		if used[name] > 1 {
			name = whole[i]
		}
		for taken[name] {
			name += "_"
		}
		taken[name] = true
		short[i] = name
	}
	return short
}

// label returns text as the name of a label.
func label(text string) string {
	text = word(text)
	switch {
	case text == "" || '0' <= text[0] && text[0] <= '9':
		return "_" + text
	case text == "le" || text == "quantile": // Prometheus uses these itself
		return "exported_" + text
	}
	return text
}
