package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/ksnoop/ksnoop/btfdump"
)

// jsonVersion changes if a member changes its meaning.
const jsonVersion = 1

// jsonLines prints an object a line: the suite, its results, the summary.
type jsonLines struct {
	w       io.Writer
	suite   string
	counts  Counts
	seconds float64
}

func (j *jsonLines) Begin(s Suite) error {
	j.suite = s.Name
	o := object("suite")
	o.member("version", jsonVersion)
	o.member("suite", s.Name)
	o.member("results", s.Results)
	o.fields(s.Fields)
	return j.write(o)
}

func (j *jsonLines) Result(r Result) error {
	j.counts[r.Status]++
	j.seconds += r.Seconds
	o := object("result")
	o.member("suite", j.suite)
	o.member("name", r.Name)
	o.member("status", r.Status.String())
	if r.Text != "" {
		o.member("text", r.Text)
	}
	if len(r.Notes) > 0 {
		o.member("notes", r.Notes)
	}
	if r.File != "" {
		o.member("file", r.File)
	}
	if r.Line > 0 {
		o.member("line", r.Line)
	}
	if r.Seconds > 0 {
		o.member("seconds", r.Seconds)
	}
	o.fields(r.Fields)
	return j.write(o)
}

func (j *jsonLines) End() error {
	o := object("summary")
	o.member("suite", j.suite)
	o.member("ok", j.counts.OK())
	o.member("results", j.counts.All())
	for s, n := range j.counts {
		o.member(Status(s).String(), n)
	}
	if j.seconds > 0 {
		o.member("seconds", j.seconds)
	}
	return j.write(o)
}

func (j *jsonLines) write(o *jsonObject) error {
	_, err := j.w.Write(append(o.text, '}', '\n'))
	return err
}

// jsonObject is an object that has begun.
type jsonObject struct{ text []byte }

func object(kind string) *jsonObject {
	o := &jsonObject{text: []byte{'{'}}
	o.member("type", kind)
	return o
}

func (o *jsonObject) member(name string, value any) {
	if o.text[len(o.text)-1] != '{' {
		o.text = append(o.text, ',')
	}
	o.text = appendJSON(append(appendJSONText(o.text, name), ':'), value)
}

// fields are in an object of their own: their names are the caller's.
func (o *jsonObject) fields(fields []Field) {
	if len(fields) == 0 {
		return
	}
	inner := &jsonObject{text: []byte{'{'}}
	for _, f := range fields {
		inner.member(f.Name, f.Value)
	}
	o.text = append(append(append(o.text, `,"fields":`...), inner.text...), '}')
}

func appendJSON(dst []byte, value any) []byte {
	switch v := value.(type) {
	case bool:
		return strconv.AppendBool(dst, v)
	case int:
		return strconv.AppendInt(dst, int64(v), 10)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case uint64:
		return strconv.AppendUint(dst, v, 10)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return append(dst, "null"...)
		}
		return strconv.AppendFloat(dst, v, 'f', -1, 64)
	case []string:
		dst = append(dst, '[')
		for i, s := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSONText(dst, s)
		}
		return append(dst, ']')
	}
	return appendJSONText(dst, fieldText(value))
}

// appendJSONText appends a string. What is not UTF-8 becomes U+FFFD, and so does
// a NUL, which would end it.
func appendJSONText(dst []byte, text string) []byte {
	return btfdump.AppendJSONString(dst, []byte(strings.ReplaceAll(text, "\x00", "\ufffd")))
}

// fieldText is a value as text.
func fieldText(value any) string {
	if list, ok := value.([]string); ok {
		return strings.Join(list, " ")
	}
	return fmt.Sprint(value)
}
