package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// jsonVersion changes if a member changes its meaning.
const jsonVersion = 1

// jsonLines prints one object on each line: the suite, its results, the summary.
type jsonLines struct {
	w       io.Writer
	suite   string
	counts  Counts
	seconds float64
}

func (j *jsonLines) Begin(s Suite) error {
	j.suite = s.Name
	return j.write(struct {
		Type    string             `json:"type"`
		Version int                `json:"version"`
		Suite   btfdump.JSONString `json:"suite"`
		Results int                `json:"results"`
		Fields  json.RawMessage    `json:"fields,omitempty"`
	}{"suite", jsonVersion, jsonText(s.Name), s.Results, jsonObject(s.Fields)})
}

func (j *jsonLines) Result(r Result) error {
	j.counts[r.Status]++
	j.seconds += r.Seconds
	return j.write(struct {
		Type    string               `json:"type"`
		Suite   btfdump.JSONString   `json:"suite"`
		Name    btfdump.JSONString   `json:"name"`
		Status  string               `json:"status"`
		Text    btfdump.JSONString   `json:"text,omitempty"`
		Notes   []btfdump.JSONString `json:"notes,omitempty"`
		File    btfdump.JSONString   `json:"file,omitempty"`
		Line    int                  `json:"line,omitempty"`
		Seconds float64              `json:"seconds,omitempty"`
		Fields  json.RawMessage      `json:"fields,omitempty"`
	}{
		"result", jsonText(j.suite), jsonText(r.Name), r.Status.String(), jsonText(r.Text), jsonTexts(r.Notes),
		jsonText(r.File), r.Line, r.Seconds, jsonObject(r.Fields),
	})
}

func (j *jsonLines) End() error {
	line := []Field{{"type", "summary"}, {"suite", j.suite}, {"ok", j.counts.OK()}, {"results", j.counts.All()}}
	for s, n := range j.counts {
		line = append(line, Field{Status(s).String(), n})
	}
	if j.seconds > 0 {
		line = append(line, Field{"seconds", j.seconds})
	}
	return j.write(jsonObject(line))
}

func (j *jsonLines) write(line any) error {
	_, err := j.w.Write(render.AppendJSON(nil, line))
	return err
}

// jsonObject returns an object with the fields in their order, which package
// encoding/json keeps only for structs, or nil if there are none.
func jsonObject(fields []Field) json.RawMessage {
	if len(fields) == 0 {
		return nil
	}
	text := []byte{'{'}
	for _, f := range fields {
		text = append(bytes.TrimSpace(render.AppendJSON(text, jsonText(f.Name))), ':')
		text = append(bytes.TrimSpace(render.AppendJSON(text, jsonValue(f.Value))), ',')
	}
	text[len(text)-1] = '}'
	return text
}

// jsonValue returns the JSON form of a field's value. JSON has no NaN and no
// infinities.
func jsonValue(value any) any {
	switch v := value.(type) {
	case bool, int, int64, uint64:
		return v
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
		return v
	case []string:
		return jsonTexts(v)
	case json.RawMessage:
		return v
	}
	return jsonText(fieldText(value))
}

// jsonText returns a string for JSON, with U+FFFD for NUL, which would end it.
func jsonText(text string) btfdump.JSONString {
	return btfdump.JSONString(strings.ReplaceAll(text, "\x00", "\ufffd"))
}

func jsonTexts(texts []string) []btfdump.JSONString {
	all := make([]btfdump.JSONString, len(texts))
	for i, t := range texts {
		all[i] = jsonText(t)
	}
	return all
}

// fieldText returns a value as text.
func fieldText(value any) string {
	if list, ok := value.([]string); ok {
		return strings.Join(list, " ")
	}
	return fmt.Sprint(value)
}
