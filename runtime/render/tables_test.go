package render

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime"
)

// number returns a value that is shown as a number.
func number(name string, t *btf.Int) *compiler.Value {
	v := plain(name, t)
	v.Scalar = &compiler.Scalar{Size: int(t.Size), Signed: t.Encoding == btf.Signed}
	return v
}

func ofInt(v *compiler.Value, n int64) runtime.Value {
	data := binary.LittleEndian.AppendUint64(nil, uint64(n))
	return runtime.Value{Value: v, Data: data[:v.Scalar.Size]}
}

func aggregate(kind compiler.AggregateKind, name string, v *compiler.Value) *compiler.Aggregate {
	return &compiler.Aggregate{Kind: kind, Name: name, Value: v}
}

func buckets(from, to int64, counts ...uint64) (all []runtime.Bucket) {
	for _, n := range counts {
		all = append(all, runtime.Bucket{From: runtime.NewInt(from), To: runtime.NewInt(to), Count: n})
		if from == 0 && to == 0 {
			from, to = 1, 1
			continue
		}
		from, to = to+1, 2*to+1
	}
	return all
}

func cells(numbers ...int64) (all []runtime.Cell) {
	for _, n := range numbers {
		all = append(all, runtime.Cell{Number: runtime.NewInt(n)})
	}
	return all
}

func comm(name string) runtime.Value {
	return runtime.Value{Value: commItem, Data: append([]byte(name), 0)}
}

// countTable has keys of all kinds.
func countTable() *runtime.Table {
	size := number("count", longType)
	row := func(name string, key int64, calls uint64, numbers ...int64) runtime.Row {
		return runtime.Row{Key: []runtime.Value{comm(name), ofInt(size, key)}, Calls: calls, Cells: cells(numbers...)}
	}
	return &runtime.Table{
		Label: "vfs_read", Key: []*compiler.Value{commItem, size}, Since: time.Second, Time: 3*time.Second + 500*time.Millisecond,
		Aggregates: []*compiler.Aggregate{
			aggregate(compiler.Count, "count()", nil), aggregate(compiler.Sum, "sum(return)", size),
			aggregate(compiler.Avg, "avg($duration)", duration), aggregate(compiler.Max, "max(return)", size),
		},
		Rows: []runtime.Row{
			row("cat", 4096, 3, 3, 12288, 4567, 4096), row("dd", -5, 1200, 1200, -6000, 1200*1500, -5), row("cat", 12, 3, 3, 36, 3, 12),
		},
	}
}

// shown returns a table in a format.
func shown(t *testing.T, o Options, tables ...*runtime.Table) string {
	o.Look.NoHeader, o.Values = true, dumpDefaults
	p, err := New(&compiler.Unit{}, o)
	require.NoError(t, err)
	var text strings.Builder
	require.NoError(t, p.Flush(&text))
	text.Reset()
	for _, table := range tables {
		require.NoError(t, p.Table(table))
	}
	require.NoError(t, p.Flush(&text))
	require.Regexp(t, safe, text.String())
	if o.Format == "json" {
		require.NoError(t, strictSchema(t, "trace").Lines(text.String()))
	}
	return text.String()
}

func TestTable(t *testing.T) {
	for _, tc := range []struct {
		arrange Arrangement
		want    string
	}{
		{Arrangement{}, `vfs_read in 2.5s:
  $comm  count  count()  sum(return)  avg($duration)  max(return)
  "dd"      -5     1200        -6000           1.5us           -5
  "cat"     12        3           36             1ns           12
  "cat"   4096        3        12288          1.52us         4096

`},
		{Arrangement{Sort: "count", Top: 2}, `vfs_read in 2.5s:
  $comm  count  count()  sum(return)  avg($duration)  max(return)
  "dd"      -5     1200        -6000           1.5us           -5
  "cat"     12        3           36             1ns           12
  1 more row

`},
		{Arrangement{Sort: "avg( $duration )"}, `vfs_read in 2.5s:
  $comm  count  count()  sum(return)  avg($duration)  max(return)
  "cat"   4096        3        12288          1.52us         4096
  "dd"      -5     1200        -6000           1.5us           -5
  "cat"     12        3           36             1ns           12

`},
	} {
		require.Equal(t, tc.want, shown(t, Options{Arrange: tc.arrange}, countTable()))
	}
}

// TestTableNotes covers what is said of calls in no row, and of tables without rows.
func TestTableNotes(t *testing.T) {
	table := countTable()
	table.Rows, table.Full, table.Faulted = table.Rows[:1], 7, 2
	require.Equal(t, `vfs_read in 2.5s:
  $comm  count  count()  sum(return)  avg($duration)  max(return)
  "cat"   4096        3        12288          1.52us         4096
  7 calls are in no row: there was no room for their keys; --keys makes more
  2 calls are in no row: a value of theirs could not be read

`, shown(t, Options{}, table))
	table.Rows = nil
	require.Equal(t, `vfs_read in 2.5s:
  no calls
  7 calls are in no row: there was no room for their keys; --keys makes more
  2 calls are in no row: a value of theirs could not be read

`, shown(t, Options{}, table))
	table.Label = "iter:task"
	require.Equal(t, `iter:task in 2.5s:
  no objects
  7 objects are in no row: there was no room for their keys; --keys makes more
  2 objects are in no row: a value of theirs could not be read

`, shown(t, Options{}, table))
	table.Full, table.Faulted = 1, 1
	text := shown(t, Options{}, table)
	require.Contains(t, text, "  1 object is in no row: there was no room for its key; --keys makes more\n")
	require.Contains(t, text, "  1 object is in no row: a value of it could not be read\n")
}

// histogramTable has histograms and stacks.
func histogramTable() *runtime.Table {
	size := number("size", longType)
	stack := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 0xffffffff81000010), 0xffffffff81000020)
	linear := aggregate(compiler.Linear, "lhist(size, 0, 100, 50)", size)
	linear.High, linear.Step = 100, 50
	negative := []runtime.Bucket{
		{From: runtime.NewInt(-7), To: runtime.NewInt(-4), Count: 1}, {From: runtime.NewInt(-3), To: runtime.NewInt(-2)},
		{From: runtime.NewInt(-1), To: runtime.NewInt(-1), Count: 2},
	}
	return &runtime.Table{
		Label: "f", Key: []*compiler.Value{kstack, commItem}, Time: 90 * time.Second,
		Aggregates: []*compiler.Aggregate{aggregate(compiler.Hist, "hist($duration)", duration), linear, aggregate(compiler.Hist, "hist(size)", size), aggregate(compiler.Count, "count()", nil)},
		Rows: []runtime.Row{
			{Key: []runtime.Value{{Value: kstack, Data: stack}, comm("cat")}, Calls: 60, Cells: []runtime.Cell{
				{Buckets: buckets(1024, 2047, 10, 0, 0, 49, 1)},
				{Buckets: []runtime.Bucket{
					{From: runtime.NewInt(-1 << 62), To: runtime.NewInt(-1), Count: 4}, {From: runtime.NewInt(0), To: runtime.NewInt(49), Count: 50},
					{From: runtime.NewInt(50), To: runtime.NewInt(99)}, {From: runtime.NewInt(100), To: runtime.NewInt(1 << 62), Count: 6},
				}},
				{Buckets: append(negative, buckets(0, 0, 1, 2, 3)...)},
				{Number: runtime.NewInt(60)},
			}},
			{Key: []runtime.Value{{Value: kstack}, comm("dd")}, Calls: 1, Cells: []runtime.Cell{
				{Buckets: buckets(1<<25, 1<<26-1, 1)}, {Buckets: []runtime.Bucket{{From: runtime.NewInt(0), To: runtime.NewInt(49), Count: 1}}},
				{Buckets: buckets(1<<20, 1<<21-1, 1)}, {Number: runtime.NewInt(1)},
			}},
		},
	}
}

func TestTableHistogram(t *testing.T) {
	require.Equal(t, `f in 90s:
  $comm  count()
  "cat"       60
      0xffffffff81000010
      0xffffffff81000020
      hist($duration):
        [1.02us, 2.05us) 10 |@@@@@@@@                                |
        [2.05us, 4.1us)   0 |                                        |
        [4.1us, 8.19us)   0 |                                        |
        [8.19us, 16.4us) 49 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
        [16.4us, 32.8us)  1 |@                                       |
      lhist(size, 0, 100, 50):
        (..., 0)    4 |@@@                                     |
        [0, 50)    50 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
        [50, 100)   0 |                                        |
        [100, ...)  6 |@@@@                                    |
      hist(size):
        (-8, -4] 1 |@@@@@@@@@@@@@                           |
        (-4, -2] 0 |                                        |
        [-1]     2 |@@@@@@@@@@@@@@@@@@@@@@@@@@              |
        [0]      1 |@@@@@@@@@@@@@                           |
        [1]      2 |@@@@@@@@@@@@@@@@@@@@@@@@@@              |
        [2, 4)   3 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|

  "dd"         1
      no frames
      hist($duration):
        [33.6ms, 67.1ms) 1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
      lhist(size, 0, 100, 50):
        [0, 50) 1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
      hist(size):
        [1M, 2M) 1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|

`, shown(t, Options{}, histogramTable()))
	for line := range strings.Lines(shown(t, Options{Look: Look{Width: 40}}, histogramTable())) {
		require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 40, line)
	}
}

// TestTableWithoutKey covers a histogram of all calls.
func TestTableWithoutKey(t *testing.T) {
	table := &runtime.Table{
		Label: "f", Time: time.Millisecond, Aggregates: []*compiler.Aggregate{aggregate(compiler.Hist, "hist(size)", number("size", longType))},
		Rows: []runtime.Row{{Calls: 3, Cells: []runtime.Cell{{Buckets: buckets(4, 7, 1, 2)}}}},
	}
	require.Equal(t, `f in 1ms:
      hist(size):
        [4, 8)  1 |@@@@@@@@@@@@@@@@@@@@                    |
        [8, 16) 2 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|

`, shown(t, Options{}, table))
}

// TestTableWidth verifies that long keys are cut to fit a terminal, and say so.
func TestTableWidth(t *testing.T) {
	name := plain("name", &btf.Array{Type: charType, Nelems: 64})
	name.Format = "string"
	table := countTable()
	table.ByFunction, table.Key = true, []*compiler.Value{name, commItem}
	for i := range table.Rows {
		table.Rows[i].Func = "ext4_file_read_iter"
		table.Rows[i].Key = []runtime.Value{{Value: name, Data: []byte(strings.Repeat("path/", 12))}, comm("cat")}
	}
	require.Equal(t, `vfs_read in 2.5s:
                                                     sum(        avg(     max(
  function        name            $comm  count()  return)  $duration)  return)
  ext4_file_r...  "path/path/...  "cat"     1200    -6000       1.5us       -5
  ext4_file_r...  "path/path/...  "cat"        3    12288      1.52us     4096
  ext4_file_r...  "path/path/...  "cat"        3       36         1ns       12

`, shown(t, Options{Look: Look{Width: 78}}, table))
	require.Contains(t, shown(t, Options{}, table), `  ext4_file_read_iter  "path/path/path/path/path/path/path/path/path/path/path/path/"  "cat"     1200`)
}

// TestTableWide verifies that keys of wide characters fit into their columns, cut or not.
func TestTableWide(t *testing.T) {
	name := plain("name", &btf.Array{Type: charType, Nelems: 96})
	name.Format = "string"
	for long := range 32 {
		table := countTable()
		table.Key = []*compiler.Value{name}
		for i := range table.Rows {
			table.Rows[i].Key = []runtime.Value{{Value: name, Data: []byte(strings.Repeat("x", i) + strings.Repeat("字", long))}}
		}
		for width := 50; width < 64; width++ {
			for line := range strings.Lines(shown(t, Options{Look: Look{Width: width}}, table)) {
				require.LessOrEqual(t, columnsOf(strings.TrimSuffix(line, "\n")), width, line)
			}
		}
	}
}

// TestBreakName verifies where the name of an aggregate can be broken.
func TestBreakName(t *testing.T) {
	for name, want := range map[string][]string{
		"count()":                {"count()"},
		"max(prev->prio)":        {"max(", "prev->", "prio)"},
		"sum(after(stat->size))": {"sum(", "after(", "stat->", "size))"},
	} {
		require.Equal(t, want, breakName(name))
	}
}

// TestTableHostile verifies that keys cannot control a terminal.
func TestTableHostile(t *testing.T) {
	const evil = "evil\x1b[2J\n\r\x9b31m\u009b\u202e\xff\""
	for _, format := range Formats {
		table := countTable()
		table.Label, table.ByFunction = evil, true
		for i := range table.Rows {
			table.Rows[i].Func, table.Rows[i].Key[0] = evil, comm(evil)
		}
		table.Aggregates[0].Name = "count(\x1b)"
		lines := strings.Count(shown(t, Options{Format: format}, countTable()), "\n")
		require.Equal(t, lines, strings.Count(shown(t, Options{Format: format}, table), "\n"), format)
		require.NotContains(t, shown(t, Options{Format: format, Look: Look{Width: 60}}, table), "\x1b")
	}
}

func TestTableCompact(t *testing.T) {
	table := countTable()
	table.Full = 3
	require.Equal(t, `      3500000000 vfs_read $comm="dd" count=-5 count()=1200 sum(return)=-6000 avg($duration)=1.5us max(return)=-5
      3500000000 vfs_read $comm="cat" count=12 count()=3 sum(return)=36 avg($duration)=1ns max(return)=12
# 1 more row
# 3 calls are in no row: there was no room for their keys; --keys makes more
`, shown(t, Options{Format: "compact", Arrange: Arrangement{Top: 2}}, table))
}

func TestTableJSON(t *testing.T) {
	table := countTable()
	table.Full, table.ByFunction = 3, true
	table.Rows[0].Func = "vfs_read"
	table.Rows[0].Key[0].Cut, table.Rows[0].Key[0].Full = true, 16
	require.Equal(t, `{"type":"table","func":"vfs_read","since":1000000000,"time":3500000000,"rows":[`+
		`{"key":{"function":"","$comm":"dd","count":-5},"count":1200,"sum":-6000,"avg":1500,"max":-5},`+
		`{"key":{"function":"","$comm":"cat","count":12},"count":3,"sum":36,"avg":1,"max":12},`+
		`{"key":{"function":"vfs_read","$comm":"cat","count":4096},"count":3,"sum":12288,"avg":1522.3333333333333,"max":4096,"truncated":{"$comm":{"shown":4,"of":16}}}],`+
		`"full":3}`+"\n", shown(t, Options{Format: "json"}, table))
	text := shown(t, Options{Format: "json"}, histogramTable())
	require.Contains(t, text, `"key":{"$kstack":["0xffffffff81000010","0xffffffff81000020"],"$comm":"cat"}`)
	require.Contains(t, text, `"hist($duration)":[{"from":1024,"to":2047,"count":10},{"from":2048,"to":4095,"count":0}`)
	require.Contains(t, text, `"lhist":[{"from":-4611686018427387904,"to":-1,"count":4}`)
}

// TestTableJSONNames verifies that both points of a span may have values of one name.
func TestTableJSONNames(t *testing.T) {
	cpu := number("cpu", longType)
	again := *cpu
	table := &runtime.Table{
		Label: "tp:a => tp:b", Key: []*compiler.Value{cpu, &again}, Aggregates: []*compiler.Aggregate{aggregate(compiler.Count, "count()", nil)},
		Rows: []runtime.Row{{Key: []runtime.Value{ofInt(cpu, 1), ofInt(&again, 2)}, Calls: 3, Cells: cells(3)}},
	}
	require.Contains(t, shown(t, Options{Format: "json"}, table), `"func":"tp:a => tp:b","since":0,"time":0,"rows":[{"key":{"cpu":1,"cpu#2":2},"count":3}]`)
}

func TestArrangementErrors(t *testing.T) {
	for sort, want := range map[string]string{
		"cuont()": "--sort is \"cuont()\": did you mean 'count()'?",
		"zzzzzzz": "--sort is \"zzzzzzz\": it must be an item of the spec: $comm, count, count(), sum(return), avg($duration), max(return)",
	} {
		require.EqualError(t, Arrangement{Sort: sort}.Fits([]*runtime.Table{countTable()}), want)
	}
	require.NoError(t, Arrangement{Sort: "sum(return)"}.Fits([]*runtime.Table{histogramTable(), countTable()}))
	require.NoError(t, Arrangement{}.Fits(nil))
}

func TestTimeText(t *testing.T) {
	for ns, want := range map[float64]string{
		0: "0ns", 1: "1ns", 999: "999ns", 999.6: "1us", 1024: "1.02us", 65536: "65.5us", 1e6: "1ms", 999.4e6: "999ms", 999.6e6: "1s", 1.5e9: "1.5s",
		4e12: "4000s", -2048: "-2.05us",
	} {
		require.Equal(t, want, timeText(ns))
	}
}

func TestBounds(t *testing.T) {
	hist := aggregate(compiler.Hist, "hist(n)", number("n", longType))
	for _, tc := range []struct {
		from, to runtime.Int
		want     string
	}{
		{runtime.NewUint(1 << 63), runtime.NewUint(1<<64 - 1), "[8E, 16E)"},
		{runtime.NewInt(-1<<63 + 1), runtime.NewInt(-1 << 62), "(-8E, -4E]"},
		{runtime.NewInt(512), runtime.NewInt(1023), "[512, 1K)"},
		{runtime.NewInt(1 << 16), runtime.NewInt(1<<17 - 1), "[64K, 128K)"},
	} {
		require.Equal(t, tc.want, boundsText(hist, runtime.Bucket{From: tc.from, To: tc.to}))
	}
	// Those of lhist are exact, as neighbours may differ by little.
	linear := aggregate(compiler.Linear, "lhist($duration, 1001us, 4000s, 1us)", duration)
	linear.Low, linear.High, linear.Step = 1001000, 4e12, 1000
	for _, tc := range []struct {
		from, to int64
		want     string
	}{
		{0, 1000999, "(..., 1.001ms)"},
		{1001000, 1001999, "[1.001ms, 1.002ms)"},
		{999999000, 999999999, "[999.999ms, 1s)"},
		{3999999999000, 3999999999999, "[3999.999999s, 4000s)"},
		{4e12, 5e12, "[4000s, ...)"},
	} {
		require.Equal(t, tc.want, boundsText(linear, runtime.Bucket{From: runtime.NewInt(tc.from), To: runtime.NewInt(tc.to)}))
	}
}

// TestTableTime verifies that a table has the time of day if it is asked for.
func TestTableTime(t *testing.T) {
	table := countTable()
	table.Time = time.Second
	for style, want := range map[Clock]string{Mono: `^[^ ]+ in [0-9.]+.?s:\n`, Wall: `^[^ ]+ in [0-9.]+.?s until 00:00:01.000000:\n`} {
		look := Look{Time: style, wall: func() time.Duration { return 0 }}
		require.Regexp(t, want, shown(t, Options{Look: look}, table))
	}
}

// TestTableStack verifies that the last frame of a stack keeps the brackets of its module.
func TestTableStack(t *testing.T) {
	table, err := kallsyms.Read(strings.NewReader("ffffffff81000100 T vfs_read\nffffffffc0100000 t nft_do\t[nf_tables]\nffffffffc0100100 t nft_end\t[nf_tables]\n"), nil)
	require.NoError(t, err)
	symbols := new(Symbols)
	symbols.Set(table)
	stack := &compiler.Value{Name: "$kstack", Type: &btf.Array{Type: longType, Nelems: 8}, Base: compiler.Base{Builtin: compiler.KernelStack}}
	data := binary.LittleEndian.AppendUint64(nil, 0xffffffff81000104)
	data = binary.LittleEndian.AppendUint64(data, 0xffffffffc0100010)
	counts := &runtime.Table{
		Label: "vfs_read", Key: []*compiler.Value{stack}, Time: time.Second, Aggregates: []*compiler.Aggregate{aggregate(compiler.Count, "count()", nil)},
		Rows: []runtime.Row{{Key: []runtime.Value{{Value: stack, Data: data}}, Calls: 3, Cells: cells(3)}},
	}
	require.Contains(t, shown(t, Options{Symbols: symbols}, counts), "vfs_read+0x4\n")
	require.Contains(t, shown(t, Options{Symbols: symbols}, counts), "nft_do+0x10 [nf_tables]\n")
}

// TestTableFunctionName verifies that an argument called function does not take the member
// of the function's name.
func TestTableFunctionName(t *testing.T) {
	size := number("function", longType)
	table := &runtime.Table{
		Label: "x_*", ByFunction: true, Key: []*compiler.Value{size}, Time: time.Second, Aggregates: []*compiler.Aggregate{aggregate(compiler.Count, "count()", nil)},
		Rows: []runtime.Row{{Func: "x_a", Key: []runtime.Value{ofInt(size, 7)}, Calls: 3, Cells: cells(3)}},
	}
	require.Contains(t, shown(t, Options{Format: "json"}, table), `"key":{"function":"x_a","function#2":7}`)
}
