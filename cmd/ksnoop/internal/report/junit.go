package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// xunit prints JUnit XML, all of it at the end. It writes the elements itself: the
// encoder of encoding/xml and its use of reflection would add 0.1 MB to the program.
type xunit struct {
	w       io.Writer
	name    string
	fields  []Field
	cases   bytes.Buffer
	n       struct{ tests, failures, errors, skipped int }
	seconds float64
}

func (x *xunit) Begin(s Suite) error {
	x.name, x.fields = line(s.Name), s.Fields
	return nil
}

func (x *xunit) Result(r Result) error {
	text, notes := line(r.Text), noteLines(r.Notes)
	out := strings.Join(notes, "\n")
	details := strings.Join(append(nonEmpty(place(r), text), notes...), "\n")
	var inner bytes.Buffer
	switch r.Status {
	case Pass:
		out = strings.Join(append(nonEmpty(text), notes...), "\n")
	case Skip:
		x.n.skipped++
		element(&inner, 3, "skipped", "", "message", text)
	case XFail:
		x.n.skipped++
		element(&inner, 3, "skipped", "", "message", strings.Join(nonEmpty("expected to fail", text), ": "))
	case Fail:
		x.n.failures++
		element(&inner, 3, "failure", cdata(details), "message", text)
	default:
		x.n.errors++
		element(&inner, 3, "error", cdata(details), "message", text, "type", r.Status.String())
	}
	if out != "" {
		element(&inner, 3, "system-out", cdata(out))
	}
	attributes := []string{"name", line(r.Name), "classname", x.name}
	if r.Seconds > 0 {
		attributes = append(attributes, "time", seconds(r.Seconds))
	}
	x.n.tests++
	x.seconds += r.Seconds
	element(&x.cases, 2, "testcase", inner.String(), attributes...)
	return nil
}

func (x *xunit) End() error {
	var properties, suite, all bytes.Buffer
	for _, f := range x.fields {
		element(&properties, 3, "property", "", "name", line(f.Name), "value", line(fieldText(f.Value)))
	}
	if len(x.fields) > 0 {
		element(&suite, 2, "properties", properties.String())
	}
	suite.Write(x.cases.Bytes())
	n := func(count int) string { return fmt.Sprint(count) }
	all.WriteString(`<?xml version="1.0" encoding="UTF-8"?>`)
	attributes := []string{"name", x.name, "time", seconds(x.seconds), "tests", n(x.n.tests), "errors", n(x.n.errors), "failures", n(x.n.failures), "skipped", n(x.n.skipped)}
	var inner bytes.Buffer
	element(&inner, 1, "testsuite", suite.String(), append(attributes, "id", "0")...)
	element(&all, 0, "testsuites", inner.String(), attributes...)
	all.WriteByte('\n')
	_, err := x.w.Write(all.Bytes())
	return err
}

// element appends an element on a line of its own. Elements inside, which are indented by
// themselves, begin with a new line. attributes are names and values by turns.
func element(dst *bytes.Buffer, indent int, name, inside string, attributes ...string) {
	tabs := "\n" + strings.Repeat("\t", indent)
	dst.WriteString(tabs + "<" + name)
	for i := 0; i < len(attributes); i += 2 {
		dst.WriteString(" " + attributes[i] + `="`)
		_ = xml.EscapeText(dst, []byte(attributes[i+1])) // a buffer takes everything
		dst.WriteByte('"')
	}
	dst.WriteString(">" + inside)
	if strings.HasPrefix(inside, "\n") {
		dst.WriteString(tabs)
	}
	dst.WriteString("</" + name + ">")
}

// cdata returns a text as a section that needs no escapes. What would end the section is
// divided between two.
func cdata(text string) string {
	return "<![CDATA[" + strings.ReplaceAll(text, "]]>", "]]]]><![CDATA[>") + "]]>"
}

func seconds(n float64) string { return fmt.Sprintf("%.3f", n) }

// place returns the file and line of a check in the form that compilers use, or "".
func place(r Result) string {
	switch {
	case r.File == "":
		return ""
	case r.Line == 0:
		return line(r.File) + ":"
	}
	return fmt.Sprintf("%s:%d:", line(r.File), r.Line)
}
