package suite

import (
	"errors"
	"sort"
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

const (
	longest    = 64 << 10 // bytes in a line
	mostErrors = 100      // errors that are reported
	version    = "1"
	header     = "ksnoop-probes"
)

// Parse parses the text of the probe file called file. It returns all errors, at
// most about 100, joined; each is a [*spec.Error] with its place.
func Parse(file, text string) (*Suite, error) {
	p := &parser{suite: &Suite{File: file}, places: map[string]place{}}
	from := spec.Source{File: file}
	for text := range strings.Lines(text) {
		from.Line++
		if err := p.line(strings.TrimRight(text, "\r\n"), from); err != nil {
			p.errs = append(p.errs, err)
		}
		if len(p.errs) == mostErrors {
			end := &line{from: from}
			p.errs = append(p.errs, end.errorf(spec.Span{}, "what follows is not looked at: there are %d errors", mostErrors))
			p.stop = true
		}
		if p.stop {
			break
		}
	}
	if !p.stop {
		p.finish(from)
	}
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return p.suite, nil
}

// parser holds the result of parsing the lines so far.
type parser struct {
	suite  *Suite
	errs   []error
	begun  bool             // the first line has been read
	stop   bool             // the rest of the file is ignored
	places map[string]place // of names, and of statements that a file may have only once
	named  []named
}

// place is the place of a name or a statement.
type place struct {
	line *line
	at   spec.Span
	is   string // of a name: assert or metric
}

// statements has the parser of each kind of line, by its first word.
var statements = map[string]func(*parser, *line) error{
	"suite": (*parser).name, "require": (*parser).require, "run": (*parser).run, "settle": (*parser).settle,
	"assert": (*parser).assert, "metric": (*parser).metric, "evidence": (*parser).evidence, "xfail": (*parser).xfail,
}

// statementWords lists these words in the order of the reference.
var statementWords = []string{"suite", "require", "run", "settle", "assert", "metric", "evidence", "xfail"}

// line parses a line.
func (p *parser) line(text string, from spec.Source) error {
	l := &line{text: text, from: from}
	if len(text) > longest {
		l.text = text[:longest]
		return l.errorf(spec.Span{Start: longest, End: longest}, "the line has %d bytes, the limit is %d", len(text), longest)
	}
	l.text = uncomment(text)
	if l.end() {
		return nil
	}
	if err := spec.CheckText(l.text); err != nil {
		p.stop = !p.begun
		return l.adopt(err, 0)
	}
	w := l.word()
	if !p.begun {
		return p.header(l, w)
	}
	parse, ok := statements[w.text]
	switch {
	case w.text == header:
		return l.errorf(w.at, "a second '%s'", header)
	case !ok:
		err := l.unknown(w, "a statement", statementWords)
		if w.at.Start > 0 {
			err.AddHint("a statement ends where its line ends")
		}
		return err
	}
	return parse(p, l)
}

// header parses the first line, which marks a probe file and has the version of
// the language.
func (p *parser) header(l *line, w word) error {
	p.begun, p.stop = true, true
	if w.text != header {
		return l.errorf(w.at, "a probe file begins with '%s %s'", header, version)
	}
	w = l.word()
	switch {
	case w.text == "":
		return l.missing("the version", w).WithHint("write '%s %s'", header, version)
	case w.text != version:
		return l.errorf(w.at, "version %s of the format is not known", spec.Quote(w.text)).WithHint("this ksnoop knows version %s", version)
	}
	p.stop = false
	return l.rest("the version")
}

// once refuses a statement that an earlier line has.
func (p *parser) once(l *line, what string, at spec.Span) error {
	if before, ok := p.places[what]; ok {
		return l.errorf(at, "a second '%s': the first is in line %d", what, before.line.from.Line)
	}
	p.places[what] = place{line: l, at: at}
	return nil
}

// name parses the name of the suite.
func (p *parser) name(l *line) error {
	if err := p.once(l, "suite", spec.Span{End: l.pos}); err != nil {
		return err
	}
	w, err := l.name("the name of the suite")
	if err != nil {
		return err
	}
	p.suite.Name = w.text
	return l.rest("the name")
}

// settle parses the time for which calls still count after the command has ended.
func (p *parser) settle(l *line) error {
	if err := p.once(l, "settle", spec.Span{End: l.pos}); err != nil {
		return err
	}
	d, err := l.duration("a duration")
	if err != nil {
		return err
	}
	p.suite.Settle = d
	return l.rest("the duration")
}

// finish checks what is known only at the end of the file.
func (p *parser) finish(last spec.Source) {
	for _, use := range p.named {
		is := p.places["name "+use.name].is
		switch {
		case is == "":
			p.errs = append(p.errs, p.unknownName(use))
		case use.xfail && is == "metric":
			p.errs = append(p.errs, use.line.errorf(use.at, "%s is a metric, which cannot fail", spec.Quote(use.name)))
		}
	}
	end := &line{from: spec.Source{File: last.File, Line: max(last.Line, 1)}}
	switch {
	case !p.begun:
		p.errs = append(p.errs, end.errorf(spec.Span{}, "the file is empty").WithHint("a probe file begins with '%s %s'", header, version))
	case p.suite.Name == "" && p.places["suite"].line == nil:
		p.errs = append(p.errs, end.errorf(spec.Span{}, "the suite has no name").WithHint("a line 'suite NAME' is missing"))
	case len(p.errs) == 0 && len(p.suite.Asserts)+len(p.suite.Metrics) == 0:
		p.errs = append(p.errs, end.errorf(spec.Span{}, "nothing is asserted or measured").WithHint("a line with 'assert' or 'metric' is missing"))
	}
	sort.SliceStable(p.errs, func(i, j int) bool { return lineOf(p.errs[i]) < lineOf(p.errs[j]) })
}

// lineOf returns the number of the line that an error is in.
func lineOf(err error) int {
	var refusal *spec.Error
	if errors.As(err, &refusal) {
		return refusal.From.Line
	}
	return 0
}
