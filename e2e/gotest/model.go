package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// An event is one line of what go test -json prints: see "go doc test2json"
// and "go help buildjson".
type event struct {
	Action  string
	Package string
	// Test is empty for events of the package itself.
	Test    string
	Output  string
	Elapsed float64 // in seconds
	// ImportPath is the package that was built, in events of a build.
	ImportPath string
	// FailedBuild is the ImportPath because of which a package failed.
	FailedBuild string
}

// parseEvent returns the event of a line, and reports whether it is one.
func parseEvent(line []byte) (event, bool) {
	var e event
	if line = bytes.TrimSpace(line); len(line) == 0 || line[0] != '{' {
		return e, false
	}
	err := json.Unmarshal(line, &e)
	return e, err == nil && e.Action != ""
}

// eachLine calls do with every line of r, however long, including the newline
// if there is one.
func eachLine(r io.Reader, do func(line []byte)) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			do(line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// A testRun collects the events of one go test by package.
type testRun struct {
	packages []*testedPackage
	byPath   map[string]*testedPackage
	// builds holds the output of each build, by the ImportPath of its events.
	builds map[string]*strings.Builder
	// missing lists the things that tests went on without, each once.
	missing []string
}

// A testedPackage is a package with its tests, in the order in which they began.
type testedPackage struct {
	path   string
	tests  []*test
	byName map[string]*test
	output strings.Builder // what no test printed
	// closing is the line that go test prints when the package ends.
	closing     string
	status      status
	failedBuild string
}

// A test is a test or a subtest.
type test struct {
	name    string
	status  status
	paused  bool
	seconds float64
	waited  float64 // of these seconds, for its turn to run a machine
	machine bool    // whether it ran one
	// output is the test's output; that of a test that passed is not kept.
	output strings.Builder
}

// status is the action that ended a test or a package.
type status string

// The statuses. One that is running when the events end has never ended.
const (
	running status = ""
	passed  status = "pass"
	failed  status = "fail"
	skipped status = "skip"
)

func newTestRun() *testRun {
	return &testRun{byPath: map[string]*testedPackage{}, builds: map[string]*strings.Builder{}}
}

// waitedLine matches the line of a test that has waited for its turn.
var waitedLine = regexp.MustCompile(`^\s*(?:\S+\.go:\d+: )?waited: (\d+\.\d)s$`)

// missingLine matches the line of a test that goes on without something.
var missingLine = regexp.MustCompile(`^\s*(?:\S+\.go:\d+: )?missing: (\S.*)`)

// add takes in an event, and returns what is to be shown at once: the output of
// builds, and the closing lines of packages and of tests that ran a machine.
func (r *testRun) add(e event) string {
	switch e.Action {
	case "build-output":
		if r.builds[e.ImportPath] == nil {
			r.builds[e.ImportPath] = &strings.Builder{}
		}
		r.builds[e.ImportPath].WriteString(e.Output)
		return e.Output
	case "build-fail":
		return ""
	}
	p := r.packageOf(e.Package)
	if e.Test != "" {
		if m := missingLine.FindStringSubmatch(e.Output); m != nil && !slices.Contains(r.missing, m[1]) {
			r.missing = append(r.missing, m[1])
		}
		t := p.test(e.Test)
		if m := waitedLine.FindStringSubmatch(strings.TrimSuffix(e.Output, "\n")); m != nil {
			seconds, _ := strconv.ParseFloat(m[1], 64) // a number by the pattern
			t.waited += seconds
			t.machine = true
		}
		t.add(e)
		if t.machine && e.Action == string(t.status) {
			return printable(fmt.Sprintf("%s%s\t%.1fs", labels[t.status], t.name, t.busy())) + "\n"
		}
		return ""
	}
	return p.add(e)
}

// buildOutput returns what the build printed because of which p failed, or "".
func (r *testRun) buildOutput(p *testedPackage) string {
	if b := r.builds[p.failedBuild]; b != nil && p.failedBuild != "" {
		return b.String()
	}
	return ""
}

// empty reports whether flags such as -run have left no test in any package. For go test
// such a run passes.
func (r *testRun) empty() bool {
	n := 0
	for _, p := range r.packages {
		switch {
		case strings.HasSuffix(p.closing, " [no tests to run]"):
			n++
		case p.status == passed:
			return false
		}
	}
	return n > 0
}

func (r *testRun) packageOf(path string) *testedPackage {
	p := r.byPath[path]
	if p == nil {
		p = &testedPackage{path: path, byName: map[string]*test{}}
		r.byPath[path] = p
		r.packages = append(r.packages, p)
	}
	return p
}

func (p *testedPackage) test(name string) *test {
	t := p.byName[name]
	if t == nil {
		t = &test{name: name}
		p.byName[name] = t
		p.tests = append(p.tests, t)
	}
	return t
}

// labels are how closing lines begin.
var labels = map[status]string{passed: "ok  \t", failed: "FAIL\t", skipped: "?   \t"}

// closingLine matches the start of the line that go test prints of a package at
// its end; with -cover, one without tests has a line that starts with a tab.
var closingLine = regexp.MustCompile(`^(?:ok  |\?   |FAIL|)\t`)

// add takes in an event of the package itself, and returns its closing line
// when it ends.
func (p *testedPackage) add(e event) string {
	switch e.Action {
	case "output":
		p.output.WriteString(e.Output)
		if closingLine.MatchString(e.Output) {
			p.closing = strings.TrimRight(e.Output, "\n")
		}
		return ""
	case string(passed), string(failed), string(skipped):
		p.status, p.failedBuild = status(e.Action), e.FailedBuild
		if p.closing == "" {
			p.closing = fmt.Sprintf("%s%s\t%.3fs", labels[p.status], p.path, e.Elapsed)
		}
		return p.closing + "\n"
	}
	return ""
}

// cached reports whether the package was not run, because it passed before.
func (p *testedPackage) cached() bool { return strings.Contains(p.closing, "\t(cached)") }

// add takes in an event of the test.
func (t *test) add(e event) {
	switch e.Action {
	case "output":
		t.output.WriteString(e.Output)
	case "pause":
		t.paused = true
	case "cont":
		t.paused = false
	case string(passed), string(failed), string(skipped), "bench":
		t.end(e)
	}
}

func (t *test) end(e event) {
	t.status = status(e.Action)
	t.seconds = max(e.Elapsed, replayedSeconds(t.output.String())) // to repeat a long log takes some time itself
	if t.status != failed {
		t.output.Reset()
	}
}

// replayed matches the result of another test in the log of a test.
var replayed = regexp.MustCompile(`(?m)^ +--- (?:PASS|FAIL|SKIP): \S+ \((\d+(?:\.\d+)?)s\)$`)

// replayedSeconds returns how long the test took whose output is repeated here,
// as those are that ran in a virtual machine; 0 if there is none.
func replayedSeconds(output string) float64 {
	all := replayed.FindAllStringSubmatch(output, -1)
	if len(all) == 0 {
		return 0
	}
	seconds, _ := strconv.ParseFloat(all[len(all)-1][1], 64)
	return seconds
}

// parent returns the name of the test of which name is a subtest, or "".
func parent(name string) string {
	return name[:max(strings.LastIndex(name, "/"), 0)]
}

// above returns the tests of which t is a subtest, the nearest first.
func (p *testedPackage) above(t *test) (all []*test) {
	for name := parent(t.name); name != ""; name = parent(name) {
		if above := p.byName[name]; above != nil {
			all = append(all, above)
		}
	}
	return all
}
