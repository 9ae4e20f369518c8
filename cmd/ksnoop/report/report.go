// Package report prints the results of checks in the formats that CI systems
// read, and metrics as Prometheus reads them.
//
//	w, err := report.New("ktap", os.Stdout, nil)
//	err = w.Begin(report.Suite{Name: "tcp", Results: 1})
//	err = w.Result(report.Result{Name: "retransmit-ok", Status: report.Fail, Text: "matched 2 of 312, expected never"})
//	err = w.End()
//
// Names and texts may hold anything: each format gets them so that a line stays
// one, XML and JSON are sound, and a terminal has nothing to obey.
package report

import (
	"fmt"
	"io"
	"slices"
)

// Status is what became of a check.
type Status int

// The statuses. An error is neither pass nor fail: nothing could be found out.
const (
	Pass Status = iota
	Fail
	Skip
	XFail // it failed, as was expected
	Error
	Timeout
)

// statusNames are how JSON and tables call them.
var statusNames = [...]string{Pass: "pass", Fail: "fail", Skip: "skip", XFail: "xfail", Error: "error", Timeout: "timeout"}

func (s Status) String() string { return statusNames[s] }

// OK says whether a suite with this result may still pass.
func (s Status) OK() bool { return s == Pass || s == Skip || s == XFail }

// Suite is what the results are of.
type Suite struct {
	Name    string
	Results int     // how many will come
	Fields  []Field // for programs: of the whole suite
}

// Result is one of them.
type Result struct {
	Name    string // unique in the suite
	Status  Status
	Text    string   // one sentence or a few figures; may be empty
	Notes   []string // what else to know, a line each
	File    string   // where the check was written; may be empty
	Line    int      // counted from 1; 0: none
	Seconds float64  // how long it took; 0: not known
	Fields  []Field  // for programs
}

// Field is a named value: a string, a bool, a number or a list of strings.
type Field struct {
	Name  string
	Value any
}

// Writer prints results in a format: Begin, then each result, then End, which
// is needed for formats that cannot be printed before all is known.
type Writer interface {
	Begin(Suite) error
	Result(Result) error
	End() error
}

// Formats lists the formats, the default first.
func Formats() []string { return []string{"ktap", "tap", "junit", "json", "github"} }

// Streams says whether a format is printed as results come; the others come
// whole at the end.
func Streams(format string) bool { return format != "junit" }

// New returns the writer of a format. summary, which may be nil, is where the
// format github adds its table.
func New(format string, w, summary io.Writer) (Writer, error) {
	switch format {
	case "ktap":
		return &tap{w: w, version: "KTAP version 1"}, nil
	case "tap":
		return &tap{w: w, version: "TAP version 13"}, nil
	case "junit":
		return &xunit{w: w}, nil
	case "json":
		return &jsonLines{w: w}, nil
	case "github":
		return &github{w: w, summary: summary}, nil
	}
	return nil, fmt.Errorf("there is no format %q", format)
}

// Counts are numbers of results by their status.
type Counts [len(statusNames)]int

// OK says whether a suite with these results has passed.
func (c *Counts) OK() bool {
	for s, n := range c {
		if n > 0 && !Status(s).OK() {
			return false
		}
	}
	return true
}

// All is the number of all of them.
func (c *Counts) All() (n int) {
	for _, of := range c {
		n += of
	}
	return n
}

// All prints results in several formats at once. The errors of one do not keep
// the others from being written; the first is returned.
func All(writers ...Writer) Writer {
	if len(writers) == 1 {
		return writers[0]
	}
	return several(slices.Clone(writers))
}

type several []Writer

func (all several) Begin(s Suite) error {
	return all.each(func(w Writer) error { return w.Begin(s) })
}

func (all several) Result(r Result) error {
	return all.each(func(w Writer) error { return w.Result(r) })
}

func (all several) End() error { return all.each(Writer.End) }

func (all several) each(do func(Writer) error) (first error) {
	for _, w := range all {
		if err := do(w); err != nil && first == nil {
			first = err
		}
	}
	return first
}
