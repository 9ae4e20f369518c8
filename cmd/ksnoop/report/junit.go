package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/jstemmer/go-junit-report/v2/junit"
)

// xunit prints JUnit's XML, whole at the end.
type xunit struct {
	w       io.Writer
	suite   junit.Testsuite
	seconds float64
}

func (x *xunit) Begin(s Suite) error {
	x.suite.Name = line(s.Name)
	for _, f := range s.Fields {
		x.suite.AddProperty(line(f.Name), line(fieldText(f.Value)))
	}
	return nil
}

func (x *xunit) Result(r Result) error {
	c := junit.Testcase{Name: line(r.Name), Classname: x.suite.Name}
	if r.Seconds > 0 {
		c.Time = seconds(r.Seconds)
	}
	text, notes := line(r.Text), noteLines(r.Notes)
	out := strings.Join(notes, "\n")
	switch r.Status {
	case Pass:
		out = strings.Join(append(nonEmpty(text), notes...), "\n")
	case Skip:
		c.Skipped = &junit.Result{Message: text}
	case XFail:
		c.Skipped = &junit.Result{Message: strings.Join(nonEmpty("expected to fail", text), ": ")}
	case Fail:
		c.Failure = &junit.Result{Message: text, Data: strings.Join(append(nonEmpty(place(r), text), notes...), "\n")}
	default:
		c.Error = &junit.Result{Message: text, Type: r.Status.String(), Data: strings.Join(append(nonEmpty(place(r), text), notes...), "\n")}
	}
	if out != "" {
		c.SystemOut = &junit.Output{Data: out}
	}
	x.seconds += r.Seconds
	x.suite.AddTestcase(c)
	return nil
}

func (x *xunit) End() error {
	x.suite.Time = seconds(x.seconds)
	all := junit.Testsuites{Name: x.suite.Name, Time: x.suite.Time}
	all.AddSuite(x.suite)
	if _, err := io.WriteString(x.w, `<?xml version="1.0" encoding="UTF-8"?>`+"\n"); err != nil {
		return err
	}
	return all.WriteXML(x.w)
}

func seconds(n float64) string { return fmt.Sprintf("%.3f", n) }

// place is where a check was written, as compilers say it; "": nowhere.
func place(r Result) string {
	switch {
	case r.File == "":
		return ""
	case r.Line == 0:
		return line(r.File) + ":"
	}
	return fmt.Sprintf("%s:%d:", line(r.File), r.Line)
}
