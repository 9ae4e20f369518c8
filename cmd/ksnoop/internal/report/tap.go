package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// tap prints KTAP 1 (Documentation/dev-tools/ktap.rst) and TAP 13, which differ
// in the first line: https://testanything.org/tap-version-13-specification.html
type tap struct {
	w       io.Writer
	version string
	suite   string
	n       int // results so far
}

func (t *tap) Begin(s Suite) error {
	t.suite = s.Name
	_, err := fmt.Fprintf(t.w, "%s\n1..%d\n", t.version, s.Results)
	return err
}

// directives are the directives for statuses that ok and not ok cannot express.
var directives = [...]string{Skip: "SKIP", XFail: "XFAIL", Error: "ERROR", Timeout: "TIMEOUT"}

// Result prints a result at once, with its notes first.
func (t *tap) Result(r Result) error {
	t.n++
	var text strings.Builder
	name := tapName(r.Name)
	for _, note := range noteLines(r.Notes) {
		text.WriteString("# " + noSubtest(name+": "+note) + "\n")
	}
	outcome := "ok"
	if !r.Status.OK() {
		outcome = "not ok"
	}
	fmt.Fprintf(&text, "%s %d %s", outcome, t.n, tapName(t.suite+"."+r.Name))
	if behind := behindHash(r); behind != "" {
		text.WriteString(" # " + behind)
	}
	text.WriteByte('\n')
	_, err := io.WriteString(t.w, text.String())
	return err
}

func (t *tap) End() error { return nil }

// tapName returns a name without the characters that end names.
func tapName(name string) string { return strings.ReplaceAll(line(name), "#", "_") }

// noSubtest returns a comment that readers of KTAP do not take for the beginning of
// a subtest.
func noSubtest(comment string) string {
	if strings.HasPrefix(comment, "Subtest:") {
		return " " + comment
	}
	return comment
}

// behindHash returns the directive and the text of a result. If the status needs no
// directive, the text must not look like one: readers find directives in any case,
// and some of them after any further #.
func behindHash(r Result) string {
	text := tapName(r.Text)
	directive := ""
	if int(r.Status) < len(directives) {
		directive = directives[r.Status]
	}
	if directive == "" && isDirective(text) {
		directive = "-"
	}
	return strings.TrimSpace(directive + " " + text)
}

// isDirective reports whether a text begins with a directive: one of ours, or the one
// that TAP has for an expected failure, for which KTAP has XFAIL.
func isDirective(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(directives[:], func(d string) bool { return d != "" && strings.HasPrefix(text, strings.ToLower(d)) }) ||
		strings.HasPrefix(text, "todo")
}
