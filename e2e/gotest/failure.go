package main

import (
	"regexp"
	"slices"
)

// A failure is a test that failed, or a package that failed without one.
type failure struct {
	pkg  string
	test string // empty for a package
	marks
	excerpt []line
	// output is for a log of its own. Without one, it is in the package's.
	output string
	log    string // the path of the log
}

// marks holds the facts that tests log in lines of an exact form.
type marks struct {
	kernel, seed string
	again        string // the command that repeats the test
}

// A line is a line of an excerpt. Of an excerpt that has to be shortened, the
// lines of the lowest ranks remain.
type line struct {
	text string
	rank int
}

// failures returns what failed, in the order in which it began.
func (r *testRun) failures() (all []failure) {
	for _, p := range r.packages {
		if p.status != failed && p.status != running {
			continue
		}
		tests := p.failures()
		if len(tests) == 0 {
			f := failure{pkg: p.path, excerpt: p.reason()}
			if build := r.buildOutput(p); build != "" {
				f.excerpt = buildErrors(build)
			}
			tests = []failure{f}
		}
		all = append(all, tests...)
	}
	return all
}

// failures returns the tests of a failed package that failed or never ended,
// but none of whose subtests did. A test that was waiting for its turn when the
// package ended did not fail.
func (p *testedPackage) failures() (all []failure) {
	var tests []*test
	notLeaf := map[string]bool{}
	for _, t := range p.tests {
		if t.status != failed && (t.status != running || t.paused) {
			continue
		}
		tests = append(tests, t)
		for _, above := range p.above(t) {
			notLeaf[above.name] = true
		}
	}
	for _, t := range tests {
		if notLeaf[t.name] {
			continue
		}
		f := failure{pkg: p.path, test: t.name, marks: p.marksOf(t), output: t.output.String()}
		var elsewhere bool
		if f.excerpt, elsewhere = p.reasonOf(t); elsewhere {
			f.output = ""
		}
		all = append(all, f)
	}
	return all
}

// The lines that marks are read from, with or without what t.Log puts before
// them.
var (
	kernelLine = regexp.MustCompile(`(?m)^\s*(?:\S+\.go:\d+: )?kernel: (\S+), seed (-?\d+)$`)
	againLine  = regexp.MustCompile(`(?m)^\s*(?:\S+\.go:\d+: )?again: (\S.*)$`)
)

// marksOf returns the marks of t, those that it logged last, or else those of
// the nearest test above.
func (p *testedPackage) marksOf(t *test) (m marks) {
	for _, t := range append([]*test{t}, p.above(t)...) {
		output := t.output.String()
		if all := kernelLine.FindAllStringSubmatch(output, -1); m.kernel == "" && len(all) > 0 {
			last := all[len(all)-1]
			m.kernel, m.seed = last[1], last[2]
		}
		if all := againLine.FindAllStringSubmatch(output, -1); m.again == "" && len(all) > 0 {
			m.again = all[len(all)-1][1]
		}
	}
	return m
}

const neverEnded = "the test never ended"

// reasonOf returns the lines that say why t failed, and reports whether they are
// not from its own output: a panic ends all tests, and is printed with any.
func (p *testedPackage) reasonOf(t *test) (excerpt []line, elsewhere bool) {
	own := splitLines(t.output.String())
	readTrace := func(lines []string) []line { return trace(lines, p.path, t.name) }
	for _, read := range []func([]string) []line{scriptFailure, assertion, readTrace} {
		if e := read(own); e != nil {
			return e, false
		}
	}
	for _, lines := range p.outputsBeside(t) {
		if e := readTrace(lines); e != nil {
			if t.status == running {
				e[0].text = neverEnded + ": " + e[0].text
			}
			return e, true
		}
	}
	if t.status == running {
		if e := p.signalOf(t, own); e != nil {
			return e, false
		}
		return append([]line{{text: neverEnded}}, tail(own)...), false
	}
	if e := messages(own); e != nil {
		return e, false
	}
	return tail(own), false
}

// outputsBeside returns the outputs in which the end of t can be: those of the
// tests above, and for a test that never ended, of the whole package.
func (p *testedPackage) outputsBeside(t *test) (all [][]string) {
	for _, above := range p.above(t) {
		all = append(all, splitLines(above.output.String()))
	}
	if t.status == running {
		all = append(all, p.outputs()...)
	}
	return all
}

// outputs returns the outputs of the package and of its tests.
func (p *testedPackage) outputs() [][]string {
	all := [][]string{splitLines(p.output.String())}
	for _, t := range p.tests {
		all = append(all, splitLines(t.output.String()))
	}
	return all
}

// signalLine matches what go test prints of a test binary that a signal ended.
var signalLine = regexp.MustCompile(`^(?:signal: |\*\*\* Test killed|exit status \d)`)

// signalOf returns the end of the output of t, which never ended, with the
// signal that ended it, or nil if there was none.
func (p *testedPackage) signalOf(t *test, own []string) []line {
	for _, lines := range append([][]string{own}, p.outputsBeside(t)...) {
		if i := slices.IndexFunc(lines, signalLine.MatchString); i >= 0 {
			return append([]line{{text: lines[i]}}, tail(without(own, lines[i]))...)
		}
	}
	return nil
}

// endLine matches a line that alone says why a package failed: a signal, or a
// flag that its tests do not have, which a list of all their flags follows.
var endLine = regexp.MustCompile(signalLine.String() + `|^flag provided but not defined: `)

// reason returns the lines that say why a package failed in which no test did.
func (p *testedPackage) reason() []line {
	own := splitLines(p.output.String())
	for _, lines := range p.outputs() {
		if e := trace(lines, p.path, ""); e != nil {
			return e
		}
		if i := slices.IndexFunc(lines, endLine.MatchString); i >= 0 {
			return ranked(lines[i : i+1])
		}
	}
	var said []string
	for _, l := range own {
		if l != "PASS" && l != "FAIL" && !closingLine.MatchString(l) {
			said = append(said, l)
		}
	}
	if e := tail(said); e != nil {
		return e
	}
	if p.status == running {
		return []line{{text: "the package never ended"}}
	}
	return []line{{text: p.closing}}
}
