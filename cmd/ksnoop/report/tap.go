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

// directives are the words that say of a status what ok and not ok do not.
var directives = [...]string{Skip: "SKIP", XFail: "XFAIL", Error: "ERROR", Timeout: "TIMEOUT"}

// Result prints a result in one piece, its notes before it.
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

// tapName is a name without what ends names.
func tapName(name string) string { return strings.ReplaceAll(line(name), "#", "_") }

// noSubtest is a comment that does not begin a subtest for KTAP's readers.
func noSubtest(comment string) string {
	if strings.HasPrefix(comment, "Subtest:") {
		return " " + comment
	}
	return comment
}

// behindHash is the directive and the text of a result. Where the status needs
// no directive, the text must not be taken for one: readers look for these in
// any case, some of them behind any further #.
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

func isDirective(text string) bool {
	text = strings.ToUpper(text)
	return slices.ContainsFunc(directives[:], func(d string) bool { return d != "" && strings.HasPrefix(text, d) }) ||
		strings.HasPrefix(text, "TODO")
}
