package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jstemmer/go-junit-report/v2/junit"
	tapparser "github.com/shogo82148/go-tap"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/schema"
)

var update = flag.Bool("update", false, "write the golden files")

// all are a suite and results of every status, with everything that a result can
// have.
var (
	suite = Suite{Name: "tcp", Results: 7, Fields: []Field{{"kernel", "6.12"}, {"uid", 0}}}
	all   = []Result{
		{Name: "run", Text: "status=0 time=41.2s", File: "tcp.probes", Line: 5, Seconds: 41.25},
		{
			Name: "retransmits", Status: Fail, Text: "matched 2 of 312, expected never", File: "tcp.probes", Line: 9,
			Notes:  []string{"tcp_retransmit_skb called=312 matched=2 missed=0 first=-101 (ENETUNREACH)"},
			Fields: []Field{{"condition", "never"}, {"spec", "tcp_retransmit_skb()"}, {"called", uint64(312)}, {"matched", uint64(2)}, {"missed", uint64(0)}, {"unreadable", uint64(0)}, {"first", "-101 (ENETUNREACH)"}},
		},
		{Name: "slow", Status: Skip, Text: "the CPU is emulated"},
		{Name: "latency", Status: XFail, Text: "p99 is 3ms", Notes: []string{"one", "two\nthree"}},
		{Name: "opens", Status: Error, Text: "3 missed", File: "tcp.probes"},
		{Name: "hung", Status: Timeout, Text: "no end after 120s"},
		{Name: "reads"},
	}
)

// written returns the output of a format for results.
func written(t testing.TB, format string, s Suite, results []Result) (text, summary string) {
	var out, table bytes.Buffer
	w, err := New(format, &out, &table)
	require.NoError(t, err)
	require.NoError(t, w.Begin(s))
	for _, r := range results {
		require.NoError(t, w.Result(r))
	}
	require.NoError(t, w.End())
	return out.String(), table.String()
}

// TestGolden covers every format with results of every status.
func TestGolden(t *testing.T) {
	for _, format := range Formats() {
		text, summary := written(t, format, suite, all)
		if format == "github" {
			golden(t, "testdata/summary.md", summary)
		} else {
			require.Empty(t, summary)
		}
		golden(t, "testdata/"+format+".txt", text)
	}
}

func golden(t *testing.T, name, got string) {
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(got), 0o644))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// TestDocs verifies that the examples of the documentation are these results.
func TestDocs(t *testing.T) {
	doc, err := os.ReadFile("../../../../docs/report-formats.md")
	require.NoError(t, err)
	for _, name := range []string{"ktap.txt", "junit.txt", "json.txt", "github.txt", "summary.md"} {
		text, err := os.ReadFile("testdata/" + name)
		require.NoError(t, err)
		require.Contains(t, string(doc), "\n"+strings.TrimSpace(string(text))+"\n```\n", name)
	}
}

// TestTAP verifies what a TAP parser reads.
func TestTAP(t *testing.T) {
	text, _ := written(t, "tap", suite, all)
	p, err := tapparser.NewParser(strings.NewReader(text))
	require.NoError(t, err)
	parsed, err := p.Suite()
	require.NoError(t, err)
	require.Equal(t, 13, parsed.Version)
	require.Equal(t, len(all), parsed.Plan)
	require.False(t, parsed.Ok)
	require.Len(t, parsed.Tests, len(all))
	for i, test := range parsed.Tests {
		require.Equal(t, i+1, test.Num)
		require.Equal(t, "tcp."+all[i].Name, test.Description)
		require.Equal(t, all[i].Status.OK(), test.Ok)
		require.Equal(t, all[i].Status == Skip, test.Directive == tapparser.Skip)
		require.Contains(t, test.Explanation, all[i].Text)
	}
}

// ktapLine matches a line of results as the kernel's own readers do
// (tools/testing/kunit).
var ktapLine = regexp.MustCompile(`^(ok|not ok) ([0-9]+) ([^#]*?)(?: # (?:(SKIP|XFAIL|ERROR|TIMEOUT)(?: |$))?(.*))?$`)

// parseKTAP fails for every line that does not belong in flat KTAP.
func parseKTAP(t testing.TB, version, text string) (results [][]string) {
	require.True(t, strings.HasSuffix(text, "\n"))
	got := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	require.Equal(t, version, got[0])
	require.Regexp(t, `^1\.\.[0-9]+$`, got[1])
	for _, l := range got[2:] {
		if strings.HasPrefix(l, "# ") {
			require.NotRegexp(t, `^# Subtest:`, l)
			continue
		}
		m := ktapLine.FindStringSubmatch(l)
		require.NotNil(t, m, "%q", l)
		require.Equal(t, strconv.Itoa(len(results)+1), m[2])
		results = append(results, m[1:])
	}
	return results
}

// TestDirectives verifies that a text is not taken for a directive, nor a name for
// the end of one.
func TestDirectives(t *testing.T) {
	for _, tc := range []struct {
		result Result
		want   string
	}{
		{Result{Name: "a", Text: "skip list is broken"}, "ok 1 s.a # - skip list is broken"},
		{Result{Name: "a", Text: "Todo"}, "ok 1 s.a # - Todo"},
		{Result{Name: "a", Status: Fail, Text: "timeout after 3s"}, "not ok 1 s.a # - timeout after 3s"},
		{Result{Name: "a", Status: Fail, Text: "1 # SKIP me"}, "not ok 1 s.a # 1 _ SKIP me"},
		{Result{Name: "a", Status: Error, Text: "skip"}, "not ok 1 s.a # ERROR skip"},
		{Result{Name: "a", Status: Skip}, "ok 1 s.a # SKIP"},
		{Result{Name: "a # SKIP", Status: Fail}, "not ok 1 s.a _ SKIP"},
		{Result{Name: "a\nok 2 b"}, "ok 1 s.a ok 2 b"},
		{Result{Name: "Subtest", Notes: []string{"x"}}, "#  Subtest: x\nok 1 s.Subtest"},
		{Result{Name: "a", Notes: []string{"x\n1..9\r\n\x1b[2J"}}, "# a: x\n# a: 1..9\n# a: ?[2J\nok 1 s.a"},
	} {
		text, _ := written(t, "ktap", Suite{Name: "s", Results: 1}, []Result{tc.result})
		require.Equal(t, "KTAP version 1\n1..1\n"+tc.want+"\n", text)
	}
}

// TestJUnit verifies what a program reads from the XML.
func TestJUnit(t *testing.T) {
	text, _ := written(t, "junit", suite, all)
	var got junit.Testsuites
	require.NoError(t, xml.Unmarshal([]byte(text), &got))
	require.Equal(t, [4]int{7, 1, 2, 2}, [4]int{got.Tests, got.Failures, got.Errors, got.Skipped})
	cases := got.Suites[0].Testcases
	require.Len(t, cases, len(all))
	require.Equal(t, all[1].Text, cases[1].Failure.Message)
	require.Equal(t, "tcp.probes:9:\n"+all[1].Text+"\n"+all[1].Notes[0], cases[1].Failure.Data)
	require.Equal(t, "expected to fail: p99 is 3ms", cases[3].Skipped.Message)
	require.Equal(t, "one\ntwo\nthree", cases[3].SystemOut.Data)
	require.Equal(t, "timeout", cases[5].Error.Type)
	require.Nil(t, cases[6].SystemOut)
}

func TestJSON(t *testing.T) {
	text, _ := written(t, "json", suite, all)
	lines, err := schema.Strict("../../../../docs/results.schema.json")
	require.NoError(t, err)
	require.NoError(t, lines.Lines(text))
	got := strings.Split(strings.TrimSpace(text), "\n")
	require.Len(t, got, len(all)+2)
	var summary map[string]any
	require.NoError(t, json.Unmarshal([]byte(got[len(got)-1]), &summary))
	require.Equal(t, map[string]any{
		"type": "summary", "suite": "tcp", "ok": false, "results": 7.0, "seconds": 41.25,
		"pass": 2.0, "fail": 1.0, "skip": 1.0, "xfail": 1.0, "error": 1.0, "timeout": 1.0,
	}, summary)
}

// TestJSONFields verifies that numbers keep all their digits.
func TestJSONFields(t *testing.T) {
	for want, value := range map[string]any{
		`18446744073709551615`: uint64(math.MaxUint64), `-101`: int64(-101), `2`: 2, `0.25`: 0.25, `null`: math.NaN(), `true`: true, `["a","b\"\n"]`: []string{"a", "b\"\n"},
	} {
		text, _ := written(t, "json", Suite{Name: "s", Fields: []Field{{"x", value}}}, nil)
		require.Contains(t, text, `"fields":{"x":`+want+"}}\n")
	}
}

// annotation matches a command as GitHub's runner parses it.
var annotation = regexp.MustCompile(`^::error ((?:[a-z]+=[^,:]*,?)+)::(.*)$`)

// TestGitHubLimits verifies that a step has ten errors at most, the last of which
// counts the others, and a summary of less than a megabyte.
func TestGitHubLimits(t *testing.T) {
	for failures, want := range map[int]struct {
		lines int
		last  string
	}{
		0: {0, ""}, 1: {1, "::error title=s.x::fail"}, 10: {10, "::error title=s.x::fail"},
		11: {10, "::error title=s::2 more are not ok"}, 500: {10, "::error title=s::491 more are not ok"},
	} {
		results := make([]Result, failures)
		for i := range results {
			results[i] = Result{Name: "x", Status: Fail}
		}
		text, summary := written(t, "github", Suite{Name: "s"}, results)
		got := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if failures > 0 {
			require.Len(t, got, want.lines)
		}
		require.Equal(t, want.last, got[len(got)-1])
		require.Equal(t, failures, strings.Count(summary, "| fail |"))
	}
	many := make([]Result, 3000)
	for i := range many {
		many[i] = Result{Name: strings.Repeat("x", 300)}
	}
	_, summary := written(t, "github", suite, many)
	require.Less(t, len(summary), 1<<20)
	require.Regexp(t, `\n[0-9]+ more are left out\.\n`, summary)
}

// FuzzFormats verifies that with any text, anywhere in a result, lines stay lines,
// XML and JSON are valid, and no control characters are printed.
func FuzzFormats(f *testing.F) {
	f.Add("a # SKIP", "]]>\x00\x1b[2J", "::error::x\r\n%0A")
	f.Add("\u2028| `x`\xff", "<&\"'>", "a,b:c%\x85")
	f.Add("", "Subtest: x", "\n\n")
	f.Fuzz(func(t *testing.T, name, text, note string) {
		s := Suite{Name: name, Results: 2, Fields: []Field{{name, text}}}
		results := []Result{
			{Name: name, Text: text, Notes: []string{note, name}, Fields: []Field{{text, note}}},
			{Name: text, Status: Fail, Text: note, File: note, Line: 3, Notes: []string{text}},
		}
		outs := map[string]string{}
		for _, format := range Formats() {
			out, summary := written(t, format, s, results)
			outs[format] = out
			for _, text := range []string{out, summary} {
				require.NotRegexp(t, "[\\x00-\\x08\\x0b-\\x1f\\x7f\u0080-\u009f\u2028\u2029]", text)
				require.Equal(t, text, strings.ToValidUTF8(text, "?"))
			}
		}
		require.Len(t, parseKTAP(t, "KTAP version 1", outs["ktap"]), 2)
		require.Len(t, parseKTAP(t, "TAP version 13", outs["tap"]), 2)
		var x junit.Testsuites
		require.NoError(t, xml.Unmarshal([]byte(outs["junit"]), &x))
		require.Len(t, x.Suites[0].Testcases, 2)
		require.Equal(t, 4, strings.Count(outs["json"], "\n"))
		for l := range strings.Lines(outs["json"]) {
			require.True(t, json.Valid([]byte(l)), l)
		}
		require.Equal(t, 1, strings.Count(outs["github"], "\n"))
		require.Regexp(t, annotation, strings.TrimSuffix(outs["github"], "\n"))
	})
}

// TestAll verifies that the failure of one writer does not affect the others.
func TestAll(t *testing.T) {
	var out bytes.Buffer
	good, err := New("ktap", &out, nil)
	require.NoError(t, err)
	bad, err := New("json", failing{}, nil)
	require.NoError(t, err)
	w := All(bad, good)
	require.ErrorIs(t, w.Begin(Suite{Name: "s", Results: 1}), errFull)
	require.ErrorIs(t, w.Result(Result{Name: "a"}), errFull)
	require.ErrorIs(t, w.End(), errFull)
	require.Equal(t, "KTAP version 1\n1..1\nok 1 s.a\n", out.String())
	_, err = New("yaml", &out, nil)
	require.EqualError(t, err, `there is no format "yaml"`)
}

var errFull = errors.New("full")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }

func TestCounts(t *testing.T) {
	require.True(t, (&Counts{Pass: 3, Skip: 1, XFail: 1}).OK())
	for _, s := range []Status{Fail, Error, Timeout} {
		c := Counts{Pass: 3}
		c[s]++
		require.False(t, c.OK())
		require.Equal(t, 4, c.All())
	}
}
