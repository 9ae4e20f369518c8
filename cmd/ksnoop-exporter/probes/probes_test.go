package probes

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/suite"
	"github.com/ksnoop/ksnoop/runtime"
)

// TestLower lists the specs by which metrics are counted.
func TestLower(t *testing.T) {
	for _, test := range []struct{ line, want string }{
		{"vfs_read(count) sum", "vfs_read(sum(count))"},
		{"vfs_read(count > 5) if $pid == 1 sum", "vfs_read(sum(count)) if count > 5 && $pid == 1"},
		{"vfs_read(return > 0) histogram", "vfs_read(hist(return), sum(return)) if return > 0"},
		{"vfs_read($duration) histogram", "vfs_read(hist($duration), sum($duration))"},
		{"vfs_read($comm, hist(count), sum(count)) table", "vfs_read($comm, hist(count), sum(count))"},
		{"vfs_read($comm, lhist(count, 0, 10, 5), count()) table", "vfs_read($comm, lhist(count, 0, 10, 5), count(), sum(count))"},
		{"vfs_read() count", "vfs_read()"},
		{"tp:a(x) => tp:b(hist($duration)) on x table", "tp:a(x) => tp:b(hist($duration), sum($duration)) on x"},
	} {
		s, err := suite.Parse("x", "ksnoop-probes 1\nsuite x\nmetric m "+test.line+"\n")
		require.NoError(t, err, test.line)
		lowered, err := lower(s.Metrics[0].Kind, s.Metrics[0].Path[0].AnyOf[0])
		require.NoError(t, err, test.line)
		require.Equal(t, test.want, lowered.String())
	}
}

// TestRead lists lines of which Prometheus would take two metrics for one, and ones that
// are told apart.
func TestRead(t *testing.T) {
	marked := filepath.Join(t.TempDir(), "marked.probes")
	require.NoError(t, os.WriteFile(marked, []byte("\ufeffksnoop-probes 1\nsuite s\nmetric a vfs_read() count\n"), 0o600))
	_, err := Read([]string{marked})
	require.NoError(t, err, "some editors begin a file so, and ksnoop test takes it")

	const taken = "%s:4: %s is the metric of %s:3, too: rename the suite or the metric"
	const own = "%s:3: %s is the metric of the exporter itself, too: rename the suite or the metric"
	for _, test := range []struct{ suite, lines, format, name string }{
		{"s", "reads vfs_read(count(), max(count)) table\nmetric reads-count vfs_read(count(), max(return)) table", "", ""},
		{"s", "a-b vfs_read() count\nmetric a.b vfs_read(count) histogram", taken, "ksnoop_s_a_b"},
		{"s", "reads vfs_read(count(), hist(count)) table\nmetric reads-count vfs_read(count) histogram", taken, "ksnoop_s_reads_count"},
		{"s", "reads vfs_read(count(), sum(x), avg(x)) table\nmetric writes vfs_write() count", "", ""}, // alone, it is refused when the types are known
		{"s", "reads vfs_read(count(), sum(count)) table\nmetric reads-count vfs_read() count", taken, "ksnoop_s_reads_count_total"},
		{"s", "reads vfs_read(count) histogram\nmetric reads-count vfs_read(avg(count)) table", taken, "ksnoop_s_reads_count"},
		{"s", "reads vfs_read(count) histogram\nmetric reads-count vfs_read() count", "", ""},
		{"s", "reads vfs_read(count(), max($duration)) table\nmetric reads-duration vfs_read(max($duration)) table", taken, "ksnoop_s_reads_duration_seconds_max"},
		{"s", "reads tp:a() => tp:b(count(), max((u64)$duration)) on $tid table\nmetric reads-u64 vfs_read(count(), max($duration)) table", taken, "ksnoop_s_reads_u64_duration_seconds_max"},
		// Whether a sum is a counter depends on the type, unless a condition says so.
		{"s", "reads vfs_read(count(), sum(return)) table\nmetric reads-return vfs_read() count", taken, "ksnoop_s_reads_return_total"},
		{"s", "reads vfs_read(return) sum\nmetric reads-sum vfs_read(return) histogram", taken, "ksnoop_s_reads_sum"},
		{"s", "reads vfs_read(return > 0) sum\nmetric reads-sum vfs_read(return) histogram", "", ""},
		{"exporter", "read-errors vfs_read() count", own, "ksnoop_exporter_read_errors_total"},
		{"exporter", "config-last-reload-successful vfs_read(return) histogram", own, "ksnoop_exporter_config_last_reload_successful"},
		{"build", "info vfs_read(avg(return)) table", own, "ksnoop_build_info"},
		{"probe", "calls vfs_read() count", own, "ksnoop_probe_calls_total"},
		{"probe", "reads vfs_read() count", "", ""},
	} {
		file := filepath.Join(t.TempDir(), "x")
		require.NoError(t, os.WriteFile(file, []byte("ksnoop-probes 1\nsuite "+test.suite+"\nmetric "+test.lines+"\n"), 0o644))
		_, err := Read([]string{file})
		switch test.format {
		case "":
			require.NoError(t, err, test.lines)
		case own:
			require.EqualError(t, err, fmt.Sprintf(own, file, test.name), test.lines)
		default:
			require.EqualError(t, err, fmt.Sprintf(taken, file, test.name, file), test.lines)
		}
	}
	for _, desc := range []*prometheus.Desc{upDesc, placesDesc, callsDesc, lostDesc, countedDesc, seriesDesc, failedDesc} {
		name, _, _ := strings.Cut(strings.TrimPrefix(desc.String(), `Desc{fqName: "`+prefix), `"`)
		require.Contains(t, ownNames, name)
	}
}

// TestNeverNegative lists the conditions by which a sum of signed values only grows.
func TestNeverNegative(t *testing.T) {
	for text, want := range map[string]bool{
		"f(sum(return))":                             false,
		"f(sum(return)) if return > 0":               true,
		"f(sum(return)) if return >= 0 && $pid == 1": true,
		"f(sum(return)) if return >= 0 || $pid == 1": false,
		"f(sum(return)) if return > -1":              false,
		"f(sum(return)) if return < 5":               false,
		"f(sum(return)) if count > 0":                false,

		// a condition on one point of a span says nothing of the other
		"f(return > 0) => g(sum(return)) on $tid":                false,
		"f() => g(sum(return)) if return > 0 on $tid":            true,
		"f(sum(return)) if return > 0 => g(return) on $tid":      true,
		"f(sum(return)) if return > 0 => g(sum(return)) on $tid": false,
		"f(sum(return)) => g(sum(return)) if return > 0 on $tid": false,
	} {
		trace, err := spec.Parse(text)
		require.NoError(t, err)
		require.Equal(t, want, neverNegative(trace, "return"), text)
	}
}

// TestProbeID verifies that a probe is a new one if its suite has another name, which is a label,
// also where the name of the metric stays the same.
func TestProbeID(t *testing.T) {
	id := func(name string) string {
		s, err := suite.Parse("f", "ksnoop-probes 1\nsuite "+name+"\nmetric m f() count")
		require.NoError(t, err)
		return newProbe(s, s.Metrics[0], new(Options)).id
	}
	require.Equal(t, id("n-1"), id("n-1"))
	require.NotEqual(t, id("n-1"), id("n.1"))
}

func value(name string, size uint32, encoding btf.IntEncoding) *compiler.Value {
	return &compiler.Value{Name: name, Scalar: &compiler.Scalar{Bits: int(size) * 8, Signed: encoding == btf.Signed}}
}

// TestLabels lists the names of labels.
func TestLabels(t *testing.T) {
	for _, test := range []struct {
		function bool
		keys     []string
		want     []string
	}{
		{false, []string{"$comm", "count"}, []string{"comm", "count"}},
		{false, []string{"rq->q->disk->disk_name", "sk->__sk_common.skc_dport:be"}, []string{"disk_name", "skc_dport"}},
		{false, []string{"prev->comm", "next->comm", "$pid"}, []string{"prev_comm", "next_comm", "pid"}},
		{true, []string{"function", "le"}, []string{"function", "function_", "exported_le"}},
		{false, []string{"flags & 3", "@jiffies"}, []string{"flags_3", "jiffies"}},
		{false, []string{"(u32)x", "x"}, []string{"u32_x", "x"}},
	} {
		table := &runtime.Table{ByFunction: test.function}
		for _, name := range test.keys {
			table.Key = append(table.Key, &compiler.Value{Name: name})
		}
		require.Equal(t, test.want, labels(table))
	}
}

// TestEdges verifies that all values up to an edge, and no others, are counted below it.
func TestEdges(t *testing.T) {
	unsigned := &compiler.Aggregate{Kind: compiler.Hist, Value: value("n", 8, 0)}
	signed := &compiler.Aggregate{Kind: compiler.Hist, Value: value("n", 4, btf.Signed)}
	duration := &compiler.Aggregate{Kind: compiler.Hist, Value: value("$duration", 8, 0)}
	duration.Value.Base.Builtin = compiler.Duration
	bucket := func(low, high int64, n uint64) runtime.Bucket {
		return runtime.Bucket{From: runtime.NewInt(low), To: runtime.NewInt(high), Count: n}
	}
	n, upTo := cumulate(unsigned, []runtime.Bucket{bucket(0, 0, 1), bucket(1, 1, 2), bucket(4, 7, 4), bucket(1<<40, 1<<41-1, 8), bucket(4, 7, 16)})
	require.Equal(t, uint64(31), n)
	require.Len(t, upTo, largest+1)
	for edge, want := range map[float64]uint64{0: 1, 1: 3, 3: 3, 7: 23, 15: 23, math.Exp2(largest) - 1: 23} {
		require.Equal(t, want, upTo[edge], "le=%v", edge)
	}
	n, upTo = cumulate(signed, []runtime.Bucket{bucket(-8, -5, 3), bucket(-1, -1, 2), bucket(0, 0, 1)})
	require.Equal(t, uint64(6), n)
	require.Equal(t, uint64(5), upTo[-1])
	require.Equal(t, uint64(6), upTo[0])
	n, upTo = cumulate(duration, []runtime.Bucket{bucket(1, 1, 3), bucket(1024, 2047, 2), bucket(1<<37, 1<<38-1, 1)})
	require.Equal(t, uint64(6), n)
	require.Equal(t, uint64(3), upTo[1023.0/1e9])
	require.Equal(t, uint64(5), upTo[2047.0/1e9])
	require.Equal(t, uint64(5), upTo[float64(1<<slowest-1)/1e9])
	require.Len(t, upTo, slowest-fastest+1)
}

// TestPartName lists the names of metrics.
func TestPartName(t *testing.T) {
	duration := value("$duration", 8, 0)
	duration.Base.Builtin = compiler.Duration
	bytes := value("msg->size", 8, 0)
	for _, test := range []struct {
		value   *compiler.Value
		several bool
		want    string
	}{
		{nil, false, "x"},
		{nil, true, "x"},
		{bytes, false, "x"},
		{bytes, true, "x_msg_size"},
		{duration, false, "x_seconds"},
		{duration, true, "x_duration_seconds"},
	} {
		require.Equal(t, test.want, partName("x", &compiler.Aggregate{Value: test.value}, test.several))
	}
	s := &suite.Suite{Name: "tcp-retransmit"}
	require.Equal(t, "ksnoop_tcp_retransmit_a_b", metricName(s, &suite.Metric{Name: "a.:b"}))
}

// TestQuality verifies what is counted of calls that are in no count.
func TestQuality(t *testing.T) {
	event := func(kind compiler.EventKind, c compiler.Counters) runtime.Counts {
		return runtime.Counts{EventType: &compiler.EventType{Kind: kind}, Counters: c}
	}
	q := qualityOf(runtime.SessionCounts{
		Events: []runtime.Counts{
			event(compiler.EntryEvent, compiler.Counters{NoRoom: 1, Unreadable: 2, Unpaired: 4, Matched: 8, Filtered: 16}),
			event(compiler.ReturnEvent, compiler.Counters{NoRoom: 32, Matched: 64}),
			event(compiler.BeginEvent, compiler.Counters{Unreadable: 128, Matched: 256, Filtered: 512}),
		},
		Missed: []runtime.Missed{{N: 1024}, {N: 2048, Uncounted: true}},
	}, []*runtime.Table{{Full: 5, Faulted: 7}, {Full: 6}})
	require.Equal(t, quality{
		matched: 8 + 64, filtered: 16, counted: 0,
		lost: map[string]uint64{"missed": 1024 + 2048, "no_room": 1 + 32, "unreadable": 2 + 128, "unpaired": 4, "table_full": 11, "faulted": 7},
	}, q)
	require.Equal(t, 1.0, qualityOf(runtime.SessionCounts{Missed: []runtime.Missed{{N: 1}}}, nil).counted)
}
