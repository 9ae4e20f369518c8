//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// reportOf returns what is printed of a run, with DIR for the directory of its
// logs, and that directory.
func reportOf(t *testing.T, stream, args string, status int) (printed, dir string) {
	dir = t.TempDir()
	logs, err := newLogs(dir)
	require.NoError(t, err)
	var b bytes.Buffer
	r := report{newTestRun(), logs, &b}
	require.NoError(t, eachLine(strings.NewReader(stream), r.add))
	r.end(status, keptFlags(strings.Fields(args)))
	return strings.ReplaceAll(b.String(), dir, "DIR"), dir
}

// recorded returns the output of go test -json that is in a file of testdata.
func recorded(t *testing.T, name string) string {
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	require.NoError(t, err)
	return string(b)
}

// stream returns the lines of events.
func stream(events ...event) string {
	var b strings.Builder
	for _, e := range events {
		json.NewEncoder(&b).Encode(e)
	}
	return b.String()
}

// prints returns the events of a test of package m/p that prints texts.
func prints(test string, texts ...string) (events []event) {
	for _, text := range texts {
		events = append(events, event{Action: "output", Package: "m/p", Test: test, Output: text})
	}
	return events
}

// ends returns the event that ends a test of package m/p, or the package.
func ends(test string, s status) event {
	return event{Action: string(s), Package: "m/p", Test: test}
}

// failing returns a run of package m/p that fails after events.
func failing(events ...event) string {
	events = append(events, prints("", "FAIL\tm/p\t0.1s\n")...)
	return stream(append(events, ends("", failed))...)
}

func TestReportOfRecordedRuns(t *testing.T) {
	for _, tc := range []struct {
		name, args string
		status     int
		want       string
	}{
		{"pass", "./...", 0, `ok  	example.com/m/ok	0.088s
?   	example.com/m/none	[no test files]
ok  	example.com/m/cached	(cached)
the slowest tests:
    0.05s  ok  TestB/sub
    0.02s  ok  TestA
`},
		{"testify", "./...", 1, `FAIL	example.com/m/tf	0.027s
--- example.com/m/tf TestEqual
    tf_test.go:4: Not equal:
    expected: "a\nb\n"
    actual  : "a\nc\n"
    @@ -1,3 +1,3 @@
     a
    -b
    +c
log: DIR/TestEqual.log
again: go test example.com/m/tf -run '^TestEqual$'
--- example.com/m/tf TestNoError
    tf_test.go:5: Received unexpected error: load: permission denied
log: DIR/TestNoError.log
again: go test example.com/m/tf -run '^TestNoError$'
--- example.com/m/tf TestSub/x
    tf_test.go:6: Should be true
log: DIR/TestSub-x.log
again: go test example.com/m/tf -run '^TestSub$/^x$'
FAIL: 3 tests failed; logs in DIR
`},
		{"fatal", "-timeout 1m ./... -full -seed 5", 1, `FAIL	example.com/m/fatal	0.015s
--- example.com/m/fatal TestFatal
    fatal_test.go:3: one
        two
    fatal_test.go:3: three
log: DIR/TestFatal.log
again: go test example.com/m/fatal -run '^TestFatal$' -full -seed 5
--- example.com/m/fatal TestSubs/a_b
    fatal_test.go:4: got 3
log: DIR/TestSubs-a_b.log
again: go test example.com/m/fatal -run '^TestSubs$/^a_b$' -full -seed 5
--- example.com/m/fatal TestSubs/6.12/c.d
log: DIR/TestSubs-6.12-c.d.log
again: go test example.com/m/fatal -run '^TestSubs$/^6.12$/^c.d$' -full -seed 5
FAIL: 3 tests failed; logs in DIR
`},
		{"script", "./...", 1, `FAIL	example.com/m/script	0.267s
the slowest tests:
    0.02s  script  TestScripts/losses
    0.01s  script  TestScripts/exits
--- example.com/m/script TestScripts/exits
    > exec sh -c 'echo to stdout; echo to stderr >&2; exit 3'
    [stdout]
    to stdout
    [stderr]
    to stderr
    [exit status 3]
    FAIL: testdata/exits.txtar:3: unexpected command failure
log: DIR/TestScripts-exits.log
again: go test example.com/m/script -run '^TestScripts$/^exits$'
--- example.com/m/script TestScripts/losses
    > exec sh -c 'for i in 1 2 3 4 5 6 7 8; do echo out $i; done; echo err 1 >&2'
    [stdout]
    out 5
    out 6
    out 7
    out 8
    [stderr]
    err 1
    > stdout '^nope$'
    FAIL: testdata/losses.txtar:7: no match for ` + "`^nope$`" + ` found in stdout
log: DIR/TestScripts-losses.log
again: go test example.com/m/script -run '^TestScripts$/^losses$'
FAIL: 2 tests failed; logs in DIR
`},
		{"replay", "./...", 1, `FAIL	example.com/m/replay	1.991s
the slowest tests:
    1.96s  replay  TestMatrix/6.12/losses
--- example.com/m/replay TestMatrix/6.12/losses (kernel 6.12.43+deb13-amd64, seed 77)
    > exec sh -c 'for i in 1 2 3 4 5 6 7 8; do echo out $i; done; echo err 1 >&2'
    [stdout]
    out 5
    out 6
    out 7
    out 8
    [stderr]
    err 1
    > stdout '^nope$'
    FAIL: testdata/losses.txtar:7: no match for ` + "`^nope$`" + ` found in stdout
log: DIR/TestMatrix-6.12-losses.log
again: go test example.com/m/replay -run '^TestMatrix$/^6.12$/^losses$' -seed 77
FAIL: 1 test failed; logs in DIR
`},
		{"panic", "./...", 1, `FAIL	example.com/m/pan	0.092s
--- example.com/m/pan TestPanics/sub
    panic: runtime error: invalid memory address or nil pointer dereference [recovered, repanicked]
    at pan_test.go:4 in example.com/m/pan.deref
log: DIR/example.com-m-pan.log
again: go test example.com/m/pan -run '^TestPanics$/^sub$'
FAIL: 1 test failed; logs in DIR
`},
		{"timeout", "./...", 1, `FAIL	example.com/m/timeout	1.092s
--- example.com/m/timeout TestSlow2
    panic: test timed out after 1s
    at timeout_test.go:4 in example.com/m/timeout.TestSlow2
log: DIR/TestSlow2.log
again: go test example.com/m/timeout -run '^TestSlow2$'
--- example.com/m/timeout TestSlow/sub
    the test never ended: panic: test timed out after 1s
    at timeout_test.go:3 in example.com/m/timeout.TestSlow.func1
log: DIR/example.com-m-timeout.log
again: go test example.com/m/timeout -run '^TestSlow$/^sub$'
FAIL: 2 tests failed; logs in DIR
`},
		{"signal", "./...", 1, `FAIL	example.com/m/killed	0.018s
FAIL	example.com/m/timeout	2.040s
--- example.com/m/killed TestKilled
    signal: killed
    killed_test.go:3: now
log: DIR/TestKilled.log
again: go test example.com/m/killed -run '^TestKilled$'
--- example.com/m/timeout TestSlow2
    signal: interrupt
log: DIR/TestSlow2.log
again: go test example.com/m/timeout -run '^TestSlow2$'
--- example.com/m/timeout TestSlow/sub
    signal: interrupt
log: DIR/TestSlow-sub.log
again: go test example.com/m/timeout -run '^TestSlow$/^sub$'
FAIL: 3 tests failed; logs in DIR
`},
		{"build", "-race ./...", 1, `# example.com/m/dep
dep/d.go:2:12: undefined: y
FAIL	example.com/m/usedep [build failed]
# example.com/m/broken [example.com/m/broken.test]
broken/b_test.go:3:27: undefined: undefined1
broken/b_test.go:3:45: declared and not used: x
broken/b_test.go:3:53: cannot use "s" (untyped string constant) as int value in variable declaration
FAIL	example.com/m/broken [build failed]
--- example.com/m/usedep
    dep/d.go:2:12: undefined: y
log: DIR/example.com-m-usedep.log
again: go test -race example.com/m/usedep
--- example.com/m/broken
    broken/b_test.go:3:27: undefined: undefined1
    broken/b_test.go:3:45: declared and not used: x
    broken/b_test.go:3:53: cannot use "s" (untyped string constant) as int value in variable declaration
log: DIR/example.com-m-broken.log
again: go test -race example.com/m/broken
FAIL: 2 packages failed; logs in DIR
`},
		{"parallel", "./...", 1, `FAIL	example.com/m/inter	0.082s
the slowest tests:
    0.03s  inter  TestP/0
    0.03s  inter  TestP/1
    0.03s  inter  TestP/2
--- example.com/m/inter TestP/1
    i_test.go:3: line 1 of 1
    i_test.go:3: line 2 of 1
    i_test.go:3: bad
log: DIR/TestP-1.log
again: go test example.com/m/inter -run '^TestP$/^1$'
FAIL: 1 test failed; logs in DIR
`},
		{"package", "./...", 1, `FAIL	example.com/m/exit	0.067s
--- example.com/m/exit
    leaving
log: DIR/example.com-m-exit.log
again: go test example.com/m/exit
FAIL: 1 package failed; logs in DIR
`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			printed, _ := reportOf(t, recorded(t, tc.name), tc.args, tc.status)
			require.Equal(t, tc.want, printed)
		})
	}
}

// TestReport verifies what a failed run prints after the closing lines of its packages.
func TestReport(t *testing.T) {
	long := strings.Repeat("x", 2<<20)
	for _, tc := range []struct {
		name, stream string
		want         string
	}{
		{"a line of two megabytes, in several events",
			failing(append(prints("TestA", "    a_test.go:1: too l", "ong: "+long, long+"\n"), ends("TestA", failed))...),
			`--- m/p TestA
    a_test.go:1: too long: ` + long[:lineWidth-3-len("a_test.go:1: too long: ")] + `...
log: DIR/TestA.log
again: go test m/p -run '^TestA$'
FAIL: 1 test failed; logs in DIR
`},
		{"the nearest kernel and command",
			failing(append(append(append(
				prints("TestA", "    a_test.go:1: kernel: 5.10.0, seed 1\n", "    a_test.go:2: again: make a\n"),
				prints("TestA/b", "    a_test.go:3: kernel: 6.1.0, seed 2\n")...),
				prints("TestA/b/c", "    a_test.go:4: bad\n", "    a_test.go:5: again: make c\n")...),
				ends("TestA/b/c", failed), ends("TestA/b", failed), event{Action: "run", Package: "m/p", Test: "TestA/d"}, ends("TestA/d", failed), ends("TestA", failed))...),
			`--- m/p TestA/b/c (kernel 6.1.0, seed 2)
    a_test.go:4: bad
log: DIR/TestA-b-c.log
again: make c
--- m/p TestA/d (kernel 5.10.0, seed 1)
log: DIR/m-p.log
again: make a
FAIL: 2 tests failed; logs in DIR
`},
		{"escape sequences",
			failing(append(prints("TestA/\x1b[2J", "    a_test.go:1: \x1b[31mred\a\u009b\n"), ends("TestA/\x1b[2J", failed))...),
			`--- m/p TestA/?[2J
    a_test.go:1: ?[31mred??
log: DIR/TestA-?[2J.log
again: go test m/p -run '^TestA$/^?\[2J$'
FAIL: 1 test failed; logs in DIR
`},
		{"a test that waits for its turn when another panics",
			failing(append(prints("TestA", "panic: no\n", "goroutine 5 [running]:\n", "m/q.f(...)\n", "\t/src/q/q.go:7 +0x3c\n"),
				event{Action: "pause", Package: "m/p", Test: "TestB"}, event{Action: "run", Package: "m/p", Test: "TestC"})...),
			`--- m/p TestA
    panic: no
    at q.go:7 in m/q.f
log: DIR/TestA.log
again: go test m/p -run '^TestA$'
--- m/p TestC
    the test never ended: panic: no
    at q.go:7 in m/q.f
log: DIR/m-p.log
again: go test m/p -run '^TestC$'
FAIL: 2 tests failed; logs in DIR
`},
		{"a panic after the last test",
			failing(append(prints("TestA", "--- PASS: TestA (0.00s)\n"), append([]event{ends("TestA", passed)},
				prints("TestA", "panic: late\n", "\n", "goroutine 9 [running]:\n", "m/p.TestA.func1()\n", "\t/src/a_test.go:4 +0x3c\n")...)...)...),
			`--- m/p
    panic: late
    at a_test.go:4 in m/p.TestA.func1
log: DIR/m-p.log
again: go test m/p
FAIL: 1 package failed; logs in DIR
`},
		{"a replay of a test that never ended",
			failing(append(prints("TestA/b", "    results_test.go:50: \n", "        === RUN   TestGuest/b\n", "            b_test.go:3: 5 events\n",
				"        [  1.5] Oops\n", "    results_test.go:57: the test never ended\n"), ends("TestA/b", failed))...),
			`--- m/p TestA/b
    b_test.go:3: 5 events
    results_test.go:57: the test never ended
log: DIR/TestA-b.log
again: go test m/p -run '^TestA$/^b$'
FAIL: 1 test failed; logs in DIR
`},
		{"two tests of one name, and a flag that only one package has",
			failing(append(prints("TestA", "    a_test.go:1: bad\n"), ends("TestA", failed))...) +
				strings.ReplaceAll(failing(append(prints("TestA", "    a_test.go:2: bad\n"), ends("TestA", failed))...), "m/p", "m/q") +
				strings.ReplaceAll(failing(prints("", "flag provided but not defined: -seed\n", "Usage of p.test:\n", "  -test.v\n")...), "m/p", "m/r"),
			`--- m/p TestA
    a_test.go:1: bad
log: DIR/TestA.log
again: go test m/p -run '^TestA$'
--- m/q TestA
    a_test.go:2: bad
log: DIR/TestA-2.log
again: go test m/q -run '^TestA$'
--- m/r
    flag provided but not defined: -seed
log: DIR/m-r.log
again: go test m/r
FAIL: 2 tests and 1 package failed; logs in DIR
`},
		{"events that end in the middle", stream(event{Action: "start", Package: "m/p"}),
			`--- m/p
    the package never ended
again: go test m/p
FAIL: 1 package failed; logs in DIR
`},
		{"no events", "", "FAIL: go test ended with status 1\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			printed, _ := reportOf(t, tc.stream, "./...", 1)
			_, end, found := strings.Cut(printed, "--- ")
			if found {
				printed = "--- " + end
			}
			require.Equal(t, tc.want, printed)
		})
	}
}

// TestReportOfManyFailures verifies that the last lines show the first failures, however
// many there are.
func TestReportOfManyFailures(t *testing.T) {
	for _, n := range []int{1, 5, 9, 10, 12, 13, 18, 19, 60} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var events []event
			for i := range n {
				name := fmt.Sprintf("Test%02d", i)
				events = append(events, prints(name, "        \tError Trace:\t/src/a_test.go:9\n", "        \tError:      \tNot equal: \n",
					"        \t            \texpected: 1\n", "        \t            \tactual  : 2\n", "        \tTest:       \t"+name+"\n")...)
				events = append(events, ends(name, failed))
			}
			printed, _ := reportOf(t, failing(events...), "./...", 1)
			_, closing, _ := strings.Cut(printed, "FAIL\tm/p\t0.1s\n")
			require.LessOrEqual(t, strings.Count(closing, "\n"), closingLines)
			shown := min(n, 18)
			require.Equal(t, shown, strings.Count(closing, "\n--- ")+1)
			require.Equal(t, shown, strings.Count(closing, "\nagain: "))
			require.Equal(t, shown, strings.Count(closing, "a_test.go:9: Not equal:"))
			if n > shown {
				require.Contains(t, closing, fmt.Sprintf("\n%d more failed; all are in DIR\nFAIL: ", n-shown))
			}
		})
	}
}

// TestLogs verifies that there are logs only of what failed, which hold all of its output
// in order.
func TestLogs(t *testing.T) {
	_, dir := reportOf(t, recorded(t, "parallel")+recorded(t, "pass")+recorded(t, "build"), "./...", 1)
	logs := map[string]string{}
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	for _, p := range paths {
		b, err := os.ReadFile(p)
		require.NoError(t, err)
		logs[filepath.Base(p)] = string(b)
	}
	require.Len(t, logs, 4)
	require.Equal(t, `=== RUN   TestP/1
=== PAUSE TestP/1
=== CONT  TestP/1
    i_test.go:3: line 0 of 1
    i_test.go:3: line 1 of 1
    i_test.go:3: line 2 of 1
    i_test.go:3: bad
--- FAIL: TestP/1 (0.03s)
`, logs["TestP-1.log"])
	require.Contains(t, logs["example.com-m-inter.log"], "line 1 of 2\n    i_test.go:3: line 1 of 0\n")
	require.Contains(t, logs["example.com-m-usedep.log"], "dep/d.go:2:12: undefined: y\n")
	require.Contains(t, logs["example.com-m-broken.log"], "undefined: undefined1\n")
}

// TestOtherLines verifies that a line that is not an event is printed as it is.
func TestOtherLines(t *testing.T) {
	other := "hello\n{}\n{\"Action\":5}\nnull\n[1]\n\n\x00{\"Action\":\"output\"\nno newline"
	printed, _ := reportOf(t, other, "", 0)
	require.Equal(t, other, printed)
}

// TestSlowestOfReplays verifies that a test that repeats the log of a test in a virtual
// machine is listed with the time of that test.
func TestSlowestOfReplays(t *testing.T) {
	var events []event
	for i := range 12 {
		name := fmt.Sprintf("TestMatrix/%02d", i)
		events = append(events, prints(name, fmt.Sprintf("        --- PASS: TestGuest/%d (%d.50s)\n", i, i))...)
		end := ends(name, passed)
		end.Elapsed = 0.01 // which the repeated log takes
		events = append(events, end)
	}
	printed, _ := reportOf(t, stream(append(events, ends("TestMatrix", passed), ends("", passed))...), "", 0)
	lines := strings.Split(strings.TrimSpace(printed), "\n")
	require.Len(t, lines, 2+slowestTests)
	require.Equal(t, "   11.50s  p  TestMatrix/11", lines[2])
}

// FuzzReport checks that no output of go test stops the report, and that its end fits.
func FuzzReport(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.json")
	require.NoError(f, err)
	for _, p := range paths {
		b, err := os.ReadFile(p)
		require.NoError(f, err)
		f.Add(string(b))
	}
	f.Fuzz(func(t *testing.T, stream string) {
		r := newTestRun()
		require.NoError(t, eachLine(strings.NewReader(stream), func(l []byte) {
			if e, ok := parseEvent(l); ok {
				r.add(e)
			}
		}))
		slowest(r)
		text := closing(r.failures(), flags{}, 1, "DIR")
		require.LessOrEqual(t, strings.Count(text, "\n"), closingLines)
	})
}

// TestNotTested checks that the end of a run says once what tests went on without.
func TestNotTested(t *testing.T) {
	r := newTestRun()
	for range 2 {
		r.add(event{Action: "output", Package: "p", Test: "TestA/b", Output: "    a_test.go:3: missing: 6.18: no \x1b mirror\n"})
	}
	r.add(event{Action: "output", Package: "p", Test: "TestC", Output: "    nothing is missing: so it goes\n"})
	require.Equal(t, "not tested: 6.18: no ? mirror\n", notTested(r))
}

// TestSlowestWithoutWaiting checks that a test that waited for its turn counts with the
// time after that, and that its end is said at once.
func TestSlowestWithoutWaiting(t *testing.T) {
	r := newTestRun()
	require.Empty(t, r.add(event{Action: "output", Package: "p", Test: "TestA", Output: "    turns_test.go:70: waited: 40.5s\n"}))
	require.Equal(t, "ok  \tTestA\t9.5s\n", r.add(event{Action: "pass", Package: "p", Test: "TestA", Elapsed: 50}))
	require.Empty(t, r.add(event{Action: "pass", Package: "p", Test: "TestB", Elapsed: 10}))
	require.Equal(t, "the slowest tests:\n   10.00s  p  TestB\n    9.50s  p  TestA\n", slowest(r))
}
