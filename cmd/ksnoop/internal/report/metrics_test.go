package report

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// TestMetrics covers the text of every type, and verifies that Prometheus' own
// parser reads it.
func TestMetrics(t *testing.T) {
	metrics := []Metric{
		{Name: "ksnoop_bytes_total", Help: "Bytes sent,\nby \\ suite.", Type: Counter, Samples: []Sample{
			{Labels: []Label{{"suite", `a "b" \ c` + "\n"}, {"kernel", "6.12"}}, Value: 1234567890123},
			{Labels: []Label{{"suite", "d"}}, Value: 0.25},
		}},
		{Name: "ksnoop temp°", Type: Gauge, Samples: []Sample{
			{Value: math.Inf(-1)}, {Labels: []Label{{"1 x", "y"}, {"__y", "z"}}, Value: math.NaN()}, {Labels: []Label{{"a", "\xff"}}, Value: -1e300},
		}},
		{Name: "9lat:ency", Help: "ns", Type: Histogram, Samples: []Sample{{
			Labels: []Label{{"le", "mine"}, {"suite", "a"}}, Sum: 12.5, Beyond: 1, Buckets: []Bucket{{0.001, 2}, {1, 0}, {1000, 4}},
		}}},
		{Name: "nothing", Type: Gauge},
	}
	text, err := appendMetrics(nil, metrics)
	require.NoError(t, err)
	require.Equal(t, `# HELP ksnoop_bytes_total Bytes sent,\nby \\ suite.
# TYPE ksnoop_bytes_total counter
ksnoop_bytes_total{kernel="6.12",suite="a \"b\" \\ c\n"} 1234567890123
ksnoop_bytes_total{suite="d"} 0.25
# TYPE ksnoop_temp_ gauge
ksnoop_temp_ -Inf
ksnoop_temp_{_1_x="y",_y="z"} NaN
ksnoop_temp_{a="�"} -1e+300
# HELP _9lat:ency ns
# TYPE _9lat:ency histogram
_9lat:ency_bucket{exported_le="mine",le="0.001",suite="a"} 2
_9lat:ency_bucket{exported_le="mine",le="1",suite="a"} 2
_9lat:ency_bucket{exported_le="mine",le="1000",suite="a"} 6
_9lat:ency_bucket{exported_le="mine",le="+Inf",suite="a"} 7
_9lat:ency_sum{exported_le="mine",suite="a"} 12.5
_9lat:ency_count{exported_le="mine",suite="a"} 7
# TYPE nothing gauge
`, string(text))
	require.Equal(t, map[string]int{"ksnoop_bytes_total": 2, "ksnoop_temp_": 3, "_9lat:ency": 1}, parseMetrics(t, text))
}

func parseMetrics(t testing.TB, text []byte) map[string]int {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	require.NoError(t, err, "%s", text)
	samples := map[string]int{}
	for name, f := range families {
		samples[name] = len(f.Metric)
	}
	return samples
}

// TestMetricErrors covers metrics because of which Prometheus would refuse the whole
// file.
func TestMetricErrors(t *testing.T) {
	histogram := func(edges ...float64) []Metric {
		var buckets []Bucket
		for _, e := range edges {
			buckets = append(buckets, Bucket{UpTo: e})
		}
		return []Metric{{Name: "h", Type: Histogram, Samples: []Sample{{Buckets: buckets}}}}
	}
	for _, tc := range []struct {
		metrics []Metric
		want    string
	}{
		{[]Metric{{Name: "a b", Type: Gauge}, {Name: "a_b", Type: Gauge}}, "a b and a_b would both be a_b in Prometheus: rename one of them"},
		{[]Metric{{Name: "h_sum", Type: Gauge}, {Name: "h", Type: Histogram}}, "h_sum and h would both be h_sum in Prometheus: rename one of them"},
		{[]Metric{{Name: "a", Type: Gauge, Samples: []Sample{{}, {}}}}, "the metric a has two samples with the labels {}"},
		{[]Metric{{Name: "a", Type: Gauge, Samples: []Sample{{Labels: []Label{{"x y", "1"}}}, {Labels: []Label{{"x_y", "1"}}}}}},
			`the metric a has two samples with the labels {x_y="1"}`},
		{histogram(1, 1), "the edges of the metric h do not rise: 1 follows 1"},
		{histogram(1, math.Inf(1)), "the edges of the metric h do not rise: +Inf follows 1"},
		{histogram(math.NaN()), "the edges of the metric h do not rise: NaN follows -Inf"},
	} {
		_, err := appendMetrics(nil, tc.metrics)
		require.EqualError(t, err, tc.want)
	}
}

// FuzzMetrics verifies that Prometheus reads any names and texts, and finds as many
// samples.
func FuzzMetrics(f *testing.F) {
	f.Add("a", "help\\\n", "le", "v\"\n\\", 1.5, uint64(3))
	f.Add("", "\xff", "__name__", "\x00\r", math.NaN(), uint64(1)<<60)
	f.Fuzz(func(t *testing.T, name, help, label, value string, n float64, count uint64) {
		count >>= 12 // a sum of three is exact in a float64
		metrics := []Metric{
			{Name: name, Help: help, Type: Counter, Samples: []Sample{{Labels: []Label{{label, value}, {value, label}}, Value: n}}},
			{Name: name + "x", Help: help, Type: Histogram, Samples: []Sample{{Labels: []Label{{label, value}}, Sum: n, Buckets: []Bucket{{1, count}}, Beyond: count}}},
		}
		text, err := appendMetrics(nil, metrics)
		require.NoError(t, err)
		got := parseMetrics(t, text)
		require.Equal(t, map[string]int{metricName(name): 1, metricName(name + "x"): 1}, got)
		require.NotContains(t, string(text), "\r")
		require.LessOrEqual(t, strings.Count(string(text), "\n"), 9)
	})
}
