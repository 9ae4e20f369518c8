package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

const (
	// closingLines is how many lines the closing text of a failed run has at
	// most. With those that go run and make add, the last 40 lines hold it.
	closingLines = 38
	// headLines is how many lines of a failure are always shown.
	headLines = 2
	// lineWidth is how long a line of an excerpt may be.
	lineWidth = 160
	// slowestTests is how many of the slowest tests are listed.
	slowestTests = 10
)

// notTested returns a line for each thing that tests went on without.
func notTested(r *testRun) string {
	var b strings.Builder
	for _, what := range r.missing {
		fmt.Fprintf(&b, "not tested: %s\n", printable(what))
	}
	return b.String()
}

// slowest returns a list of the tests that took the longest and have no
// subtests, or "" if none was run.
func slowest(r *testRun) string {
	type timed struct {
		*test
		pkg string
	}
	var all []timed
	for _, p := range r.packages {
		hasSubtests := map[string]bool{}
		for _, t := range p.tests {
			hasSubtests[parent(t.name)] = true
		}
		for _, t := range p.tests {
			if !hasSubtests[t.name] && t.busy() > 0 && !p.cached() {
				all = append(all, timed{t, base(p.path)})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b timed) int { return cmp.Compare(b.busy(), a.busy()) })
	var b strings.Builder
	for i, t := range all[:min(len(all), slowestTests)] {
		if i == 0 {
			b.WriteString("the slowest tests:\n")
		}
		fmt.Fprintf(&b, "%s\n", printable(fmt.Sprintf("%8.2fs  %s  %s", t.busy(), t.pkg, t.name)))
	}
	return b.String()
}

// busy returns how many seconds a test took, without those in which it waited for its turn.
func (t *test) busy() float64 { return t.seconds - t.waited }

// closing returns the last lines of a failed run: what failed and why, where the
// logs are and which commands repeat it.
func closing(failures []failure, f flags, status int, dir string) string {
	room := closingLines - 1
	shown := len(failures)
	if shown*headLines > room {
		room--
		shown = room / headLines
	}
	var lines []string
	for _, b := range layOut(failures[:shown], room) {
		lines = append(lines, b.text(f)...)
	}
	if more := len(failures) - shown; more > 0 {
		lines = append(lines, fmt.Sprintf("%d more failed; all are in %s", more, dir))
	}
	lines = append(lines, verdict(failures, status, dir))
	for i, l := range lines {
		lines[i] = printable(l)
	}
	return strings.Join(lines, "\n") + "\n"
}

// verdict returns the last line of a failed run.
func verdict(failures []failure, status int, dir string) string {
	if len(failures) == 0 {
		return fmt.Sprintf("FAIL: go test ended with status %d", status)
	}
	tests := 0
	for _, f := range failures {
		if f.test != "" {
			tests++
		}
	}
	var counts []string
	for _, c := range []struct {
		n    int
		what string
	}{{tests, "test"}, {len(failures) - tests, "package"}} {
		switch c.n {
		case 0:
		case 1:
			counts = append(counts, "1 "+c.what)
		default:
			counts = append(counts, fmt.Sprintf("%d %ss", c.n, c.what))
		}
	}
	return fmt.Sprintf("FAIL: %s failed; logs in %s", strings.Join(counts, " and "), dir)
}

// A block is the text of one failure.
type block struct {
	failure
	showLog bool
	lines   int // of the excerpt
}

// layOut divides room among the failures: after the lines that all have, each
// gets a line of its excerpt, then its log, then the rest of the excerpt, line
// by line.
func layOut(failures []failure, room int) []block {
	blocks := make([]block, len(failures))
	for i, f := range failures {
		blocks[i].failure = f
	}
	room -= headLines * len(blocks)
	grow := func(by func(b *block) bool) (grown bool) {
		for i := range blocks {
			if room > 0 && by(&blocks[i]) {
				room--
				grown = true
			}
		}
		return grown
	}
	addLine := func(b *block) bool {
		more := b.lines < len(b.excerpt)
		if more {
			b.lines++
		}
		return more
	}
	grow(addLine)
	grow(func(b *block) bool { b.showLog = b.log != ""; return b.showLog })
	for grow(addLine) {
	}
	return blocks
}

// text returns the lines of a block. Where there is room for no line of the
// excerpt, the header ends with the first.
func (b block) text(f flags) []string {
	header := "--- " + b.pkg
	if b.test != "" {
		header += " " + b.test
	}
	if b.kernel != "" {
		header += fmt.Sprintf(" (kernel %s, seed %s)", b.kernel, b.seed)
	}
	if key := b.shortened(1); b.lines == 0 && len(key) > 0 {
		header = cut(header + ": " + key[0])
	}
	lines := []string{header}
	for _, text := range b.shortened(b.lines) {
		lines = append(lines, "    "+cut(text))
	}
	if b.showLog {
		lines = append(lines, "log: "+b.log)
	}
	return append(lines, "again: "+f.again(b.failure))
}

// shortened returns the n lines of the excerpt that matter most, in their order.
func (f failure) shortened(n int) (texts []string) {
	byRank := make([]int, len(f.excerpt))
	for i := range byRank {
		byRank[i] = i
	}
	slices.SortFunc(byRank, func(i, j int) int {
		return cmp.Or(cmp.Compare(f.excerpt[i].rank, f.excerpt[j].rank), cmp.Compare(j, i))
	})
	byRank = byRank[:min(n, len(byRank))]
	slices.Sort(byRank)
	for _, i := range byRank {
		texts = append(texts, f.excerpt[i].text)
	}
	return texts
}

// cut returns text, or its start if it is too long.
func cut(text string) string {
	if runes := []rune(text); len(runes) > lineWidth {
		return string(runes[:lineWidth-3]) + "..."
	}
	return text
}

// printable returns a line with question marks for the control characters that
// a terminal would obey.
func printable(l string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' {
			return '?'
		}
		return r
	}, l)
}
