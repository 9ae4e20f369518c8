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
		Type    string     `json:"type"`
		Version int        `json:"version"`
		Suite   jsonText   `json:"suite"`
		Results int        `json:"results"`
		Fields  jsonObject `json:"fields,omitempty"`
	}{"suite", jsonVersion, jsonText(s.Name), s.Results, s.Fields})
}

func (j *jsonLines) Result(r Result) error {
	j.counts[r.Status]++
	j.seconds += r.Seconds
	return j.write(struct {
		Type    string     `json:"type"`
		Suite   jsonText   `json:"suite"`
		Name    jsonText   `json:"name"`
		Status  string     `json:"status"`
		Text    jsonText   `json:"text,omitempty"`
		Notes   []jsonText `json:"notes,omitempty"`
		File    jsonText   `json:"file,omitempty"`
		Line    int        `json:"line,omitempty"`
		Seconds float64    `json:"seconds,omitempty"`
		Fields  jsonObject `json:"fields,omitempty"`
	}{
		"result", jsonText(j.suite), jsonText(r.Name), r.Status.String(), jsonText(r.Text), jsonTexts(r.Notes),
		jsonText(r.File), r.Line, r.Seconds, r.Fields,
	})
}

func (j *jsonLines) End() error {
	line := jsonObject{{"type", "summary"}, {"suite", j.suite}, {"ok", j.counts.OK()}, {"results", j.counts.All()}}
	for s, n := range j.counts {
		line = append(line, Field{Status(s).String(), n})
	}
	if j.seconds > 0 {
		line = append(line, Field{"seconds", j.seconds})
	}
	return j.write(line)
}

func (j *jsonLines) write(line any) error {
	_, err := j.w.Write(render.AppendJSON(nil, line))
	return err
}

// jsonObject is an object that keeps the order of its members.
type jsonObject []Field

// MarshalJSON implements [json.Marshaler].
func (o jsonObject) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for i, f := range o {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(appendJSONText(text, f.Name), ':')
		text = bytes.TrimSpace(render.AppendJSON(text, jsonValue(f.Value)))
	}
	return append(text, '}'), nil
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

// jsonText is a string that is encoded with U+FFFD for invalid UTF-8 and for NUL,
// which would end it.
type jsonText string

// MarshalJSON implements [json.Marshaler].
func (t jsonText) MarshalJSON() ([]byte, error) { return appendJSONText(nil, string(t)), nil }

func jsonTexts(texts []string) []jsonText {
	all := make([]jsonText, len(texts))
	for i, t := range texts {
		all[i] = jsonText(t)
	}
	return all
}

func appendJSONText(dst []byte, text string) []byte {
	return btfdump.AppendJSONString(dst, []byte(strings.ReplaceAll(text, "\x00", "\ufffd")))
}

// fieldText returns a value as text.
func fieldText(value any) string {
	if list, ok := value.([]string); ok {
		return strings.Join(list, " ")
	}
	return fmt.Sprint(value)
}
