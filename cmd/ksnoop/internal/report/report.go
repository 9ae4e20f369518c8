// Package report prints the results of checks in the formats that CI systems
// read, and metrics as Prometheus reads them, to stdout and to files.
//
//	w, err := report.New("ktap", os.Stdout, nil)
//	err = w.Begin(report.Suite{Name: "tcp", Results: 1})
//	err = w.Result(report.Result{Name: "retransmit-ok", Status: report.Fail, Text: "matched 2 of 312, expected never"})
//	err = w.End()
//
// Names and texts may hold any bytes: each format escapes them so that a line stays
// one line, XML and JSON are valid, and nothing controls the terminal.
package report

import (
	"errors"
	"fmt"
	"io"
)

// Status is the outcome of a check.
type Status int

// The statuses. An error is neither pass nor fail: the check could not be decided.
const (
	Pass Status = iota
	Fail
	Skip
	XFail // the check failed as expected
	Error
	Timeout
)

// statusNames are the names of the statuses in JSON and tables.
var statusNames = [...]string{Pass: "pass", Fail: "fail", Skip: "skip", XFail: "xfail", Error: "error", Timeout: "timeout"}

func (s Status) String() string { return statusNames[s] }

// OK reports whether a suite with this result may still pass.
func (s Status) OK() bool { return s == Pass || s == Skip || s == XFail }

// Suite describes a set of results.
type Suite struct {
	Name    string
	Results int     // number of results to come
	Fields  []Field // of the whole suite, for programs
}

// Result is the result of one check.
type Result struct {
	Name    string // unique in the suite
	Status  Status
	Text    string   // one sentence or a few figures; may be empty
	Notes   []string // additional lines
	File    string   // where the check was written; may be empty
	Line    int      // counted from 1, or 0 if unknown
	Seconds float64  // duration, or 0 if unknown
	Fields  []Field  // for programs
}

// Field is a named value: a string, a bool, a number, a list of strings or a
// [json.RawMessage].
type Field struct {
	Name  string
	Value any
}

// Writer prints results in a format: Begin first, then each result, then End. Some
// formats print everything in End.
type Writer interface {
	Begin(Suite) error
	Result(Result) error
	End() error
}

// Formats lists the formats, the default first.
func Formats() []string { return []string{"ktap", "tap", "junit", "json", "github"} }

// Streams reports whether a file of this format is open while results arrive; a file of
// another format is written as a whole at the end.
func Streams(format string) bool { return format != "junit" }

// New returns the writer of a format. The format github adds its table to summary,
// which may be nil.
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

// Counts holds the number of results of each status.
type Counts [len(statusNames)]int

// OK reports whether a suite with these results has passed.
func (c *Counts) OK() bool {
	for s, n := range c {
		if n > 0 && !Status(s).OK() {
			return false
		}
	}
	return true
}

// All returns the number of all results.
func (c *Counts) All() (n int) {
	for _, of := range c {
		n += of
	}
	return n
}

// All returns a writer that prints results in several formats. If one fails, it is not
// written any more, and the others are; each call from then on returns the first errors.
func All(writers ...Writer) Writer {
	return &several{writers, make([]error, len(writers))}
}

type several struct {
	writers []Writer
	errs    []error // of each writer, the first one
}

func (all *several) Begin(s Suite) error {
	return all.each(func(w Writer) error { return w.Begin(s) })
}

func (all *several) Result(r Result) error {
	return all.each(func(w Writer) error { return w.Result(r) })
}

func (all *several) End() error { return all.each(Writer.End) }

func (all *several) each(do func(Writer) error) error {
	for i, w := range all.writers {
		if all.errs[i] != nil {
			continue
		}
		if err := do(w); err != nil {
			all.errs[i] = fmt.Errorf("write the results: %w", err)
		}
	}
	return errors.Join(all.errs...)
}
