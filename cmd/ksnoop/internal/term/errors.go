package term

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// PrintErrors prints each of the errors that err joins. Equal errors, as of several
// specs of one function, are printed once. If the reader of stdout has gone, that is
// not printed.
func PrintErrors(w io.Writer, err error) {
	for _, e := range distinct(err) {
		fmt.Fprintf(w, "ksnoop: %s\n", e)
	}
}

// errorsVersion changes if a member of errorLine changes its meaning.
const errorsVersion = 1

// errorLine is an error as JSON, by docs/errors.schema.json.
type errorLine struct {
	Type    string             `json:"type"`
	Version int                `json:"version"`
	Status  int                `json:"status"` // that ksnoop ends with
	Message btfdump.JSONString `json:"message"`
	Hint    btfdump.JSONString `json:"hint,omitempty"`
	*errorPlace
}

// errorPlace is the place of an error in a spec, and of the spec in a file.
type errorPlace struct {
	Spec   btfdump.JSONString `json:"spec"`
	Start  int                `json:"start"` // offsets in bytes
	End    int                `json:"end"`
	File   btfdump.JSONString `json:"file,omitempty"`
	Line   int                `json:"line,omitempty"`   // counted from 1
	Column int                `json:"column,omitempty"` // counted from 1, in characters
}

// PrintJSONErrors prints the errors of [PrintErrors] as JSON, one object on each line.
func PrintJSONErrors(w io.Writer, err error, status int) {
	for _, e := range distinct(err) {
		_, _ = w.Write(render.AppendJSON(nil, newErrorLine(e, status))) // nobody is left to be told
	}
}

func newErrorLine(err error, status int) *errorLine {
	line := &errorLine{Type: "error", Version: errorsVersion, Status: status, Message: btfdump.JSONString(err.Error())}
	var in *spec.Error
	if !errors.As(err, &in) {
		hint := exit.Hint(err)
		line.Message, line.Hint = btfdump.JSONString(strings.TrimSuffix(err.Error(), ": "+hint)), btfdump.JSONString(hint)
		return line
	}
	line.Message = btfdump.JSONString(strings.Replace(err.Error(), in.Error(), in.Msg, 1))
	line.Hint = btfdump.JSONString(strings.TrimSpace(in.Hint))
	line.errorPlace = &errorPlace{Spec: btfdump.JSONString(in.Text), Start: printedOffset(in.Text, in.At.Start), End: printedOffset(in.Text, in.At.End)}
	if in.From.Line > 0 {
		line.File, line.Line, line.Column = btfdump.JSONString(in.From.File), in.From.Line, in.Column()
	}
	return line
}

// printedOffset returns an offset in text as that in the JSON string of text, which ends at a
// NUL, and where U+FFFD takes the place of each byte that is not UTF-8.
func printedOffset(text string, offset int) (printed int) {
	for at, r := range text {
		if at >= offset || r == 0 {
			break
		}
		printed += utf8.RuneLen(r)
	}
	return printed
}

// distinct returns the errors that err joins and that are to be printed.
func distinct(err error) (all []error) {
	last := ""
	for _, e := range exit.Split(err) {
		if text := e.Error(); text != last && !errors.Is(e, ErrReaderGone) {
			all = append(all, e)
			last = text
		}
	}
	return all
}
