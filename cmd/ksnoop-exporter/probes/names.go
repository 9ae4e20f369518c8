package probes

import (
	"regexp"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/suite"
	"github.com/ksnoop/ksnoop/runtime"
)

// prefix begins the names of all metrics.
const prefix = "ksnoop_"

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
