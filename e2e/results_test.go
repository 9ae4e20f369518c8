//go:build linux

package e2e

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A result is the result of a test in the guest.
type result struct {
	name   string
	status string // PASS, FAIL, SKIP, or empty for a test that never ended
	log    string
}

// marked matches the lines that the testing package itself prints, with the
// mark that -test.v=test2json puts before them. No script can forge them.
var marked = regexp.MustCompile(`^\x16(?:=== |--- )(\w+):? +(\S+)`)

// parseResults parses the output of a test.
func parseResults(output string) []*result {
	var all []*result
	current := &result{}
	byName := map[string]*result{}
	for line := range strings.Lines(output) {
		m := marked.FindStringSubmatch(line)
		if m == nil {
			current.log += line
			continue
		}
		verb, name := m[1], m[2]
		if byName[name] == nil {
			byName[name] = &result{name: name}
			all = append(all, byName[name])
		}
		current = byName[name]
		if verb == "PASS" || verb == "FAIL" || verb == "SKIP" {
			current.status = verb
			current.log += line[1:]
		}
	}
	return all
}

// crash matches what Go prints from a panic or a fatal error on. The testing package says
// before that which tests have failed, so that it belongs to none of them.
var crash = regexp.MustCompile(`(?ms)^(panic|fatal error): .*`)

// mostCPU is how long a test of the guest may keep its processor busy without -full, in
// seconds. It is the guest's time, which is the same on every host.
const mostCPU = 60

// tookCPU matches what logCPU logs.
var tookCPU = regexp.MustCompile(`(?m)^ +\S+:\d+: (\d+\.\d) s of CPU$`)

// tooLong returns why make test has no room for the test, or "".
func (r *result) tooLong() string {
	m := tookCPU.FindStringSubmatch(r.log)
	if m == nil {
		return ""
	}
	if took, err := strconv.ParseFloat(m[1], 64); err == nil && took <= mostCPU {
		return ""
	}
	return fmt.Sprintf("%s s of CPU are more than %d: make it shorter without -full", m[1], mostCPU)
}

// failed matches the line of a script that says what failed.
var failed = regexp.MustCompile(`(?m)^ *FAIL: .*$`)

// replay repeats the result as that of the test t. What failed in a script comes
// first: its log is long, and may be cut where it is kept.
func (r *result) replay(t *testing.T) {
	if what := failed.FindString(r.log); r.status == "FAIL" && what != "" {
		t.Log(strings.TrimSpace(what))
	}
	t.Log("\n" + r.log)
	if why := r.tooLong(); why != "" && !*full && !named() {
		t.Error(why)
	}
	switch r.status {
	case "PASS":
	case "SKIP":
		t.SkipNow()
	case "FAIL":
		t.FailNow()
	default:
		t.Fatal("the test never ended")
	}
}

func TestParseResults(t *testing.T) {
	output := "\x16=== RUN   TestGuest\n\x16=== RUN   TestGuest/a\n\x16=== PAUSE TestGuest/a\n\x16=== RUN   TestGuest/b\n\x16=== RUN   TestGuest/c\n" +
		"\x16=== CONT  TestGuest/a\n    x.go:1: hello\n        --- FAIL: TestGuest/a\n\x16--- PASS: TestGuest/a (0.10s)\n" +
		"\x16=== NAME  TestGuest/b\n    no BTF\n\x16--- SKIP: TestGuest/b (0.00s)\n\x16=== CONT  TestGuest/c\nhalf a li"
	require.Equal(t, []*result{
		{name: "TestGuest"},
		{name: "TestGuest/a", status: "PASS", log: "    x.go:1: hello\n        --- FAIL: TestGuest/a\n--- PASS: TestGuest/a (0.10s)\n"},
		{name: "TestGuest/b", status: "SKIP", log: "    no BTF\n--- SKIP: TestGuest/b (0.00s)\n"},
		{name: "TestGuest/c", log: "half a li"},
	}, parseResults(output))
}

// TestCrash verifies that a panic of the guest is found, whose tests have all ended before.
func TestCrash(t *testing.T) {
	all := parseResults("\x16=== RUN   TestGuest\n\x16=== RUN   TestGuest/a\n\x16--- FAIL: TestGuest/a (0.56s)\n\x16--- FAIL: TestGuest (0.60s)\n" +
		"panic: index out of range [recovered]\n\tpanic: again\n\ngoroutine 1 [running]:\n")
	require.NotContains(t, all[1].log, "panic")
	require.Equal(t, "panic: index out of range [recovered]\n\tpanic: again\n\ngoroutine 1 [running]:\n", crash.FindString(all[0].log))
	require.Empty(t, crash.FindString("    x.go:1: panic: no\n"))
}

func TestTooLong(t *testing.T) {
	for log, want := range map[string]string{
		"":                                    "",
		"    e2e_test.go:89: 60.0 s of CPU\n": "",
		"    e2e_test.go:89: 60.1 s of CPU\n    --- PASS: TestGuest/flood (99.00s)\n": "60.1 s of CPU are more than 60: make it shorter without -full",
		"    e2e_test.go:89: 1000.0 s of CPU\n":                                       "1000.0 s of CPU are more than 60: make it shorter without -full",
	} {
		require.Equal(t, want, (&result{log: log}).tooLong(), log)
	}
}
