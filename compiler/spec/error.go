package spec

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Error is a fault in a spec: what is wrong and where. It prints as the
// message, the spec with the place marked, and the hint if there is one. If it
// is from a file, file, line and column stand before the message.
type Error struct {
	Text string // the spec
	From Source // where Text is from
	At   Span   // the place in Text
	Msg  string // what is wrong
	Hint string // how to put it right, may be empty and may have several lines
}

// Errorf returns an error at a place of the spec text. Inlined into its 300
// callers it would take 80 KB.
//
//go:noinline
func Errorf(text string, at Span, format string, args ...any) *Error {
	return &Error{Text: text, At: at, Msg: fmt.Sprintf(format, args...)}
}

// WithHint sets the hint of e and returns e.
//
//go:noinline
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// Error prints e in printable ASCII only: a terminal must not obey what is in
// a spec, nor what is in the names of a kernel module.
func (e *Error) Error() string {
	lines := []string{printable(e.position() + e.Msg)}
	if source, from, to := window(e.Text, e.At); source != "" {
		lines = append(lines, "  "+source, "  "+strings.Repeat(" ", from)+strings.Repeat("^", to-from))
	}
	if e.Hint != "" {
		for line := range strings.Lines(e.Hint) {
			lines = append(lines, "  "+printable(strings.TrimSuffix(line, "\n")))
		}
	}
	return strings.Join(lines, "\n")
}

// position returns the place in a file, if e is from one: "FILE:LINE:COLUMN: ".
func (e *Error) position() string {
	if e.From.Line == 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d:%d: ", e.From.File, e.From.Line, column(e.Text, e.At.Start)+1)
}

// columns is how much of a spec is shown; context is what is left of a place
// in the middle of a longer one.
const (
	columns = 96
	context = 32
)

// window returns the part of text around a place, as it is printed, and the
// columns from and to of the place in it. At least one column is marked.
func window(text string, at Span) (line string, from, to int) {
	line = printable(text)
	from = min(column(text, at.Start), len(line))
	to = max(min(column(text, at.End), len(line)), from+1)
	if len(line) > columns {
		first := min(max(0, from-context), len(line)-columns)
		rest := len(line) - first - columns
		line, from, to = line[first:first+columns], from-first, min(to-first, columns+1)
		if first > 0 {
			line = "..." + line[3:]
		}
		if rest > 0 {
			line, to = line[:columns-3]+"...", min(to, columns-3)
		}
	}
	return strings.TrimRight(line, " "), from, to
}

// column returns the number of columns that text[:offset] takes in print.
func column(text string, offset int) int {
	return utf8.RuneCountInString(text[:max(0, min(offset, len(text)))])
}

// printable returns text in printable ASCII, one column for each character:
// white space as a blank, everything else as a question mark.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case ' ' <= r && r <= '~':
			return r
		case unicode.IsSpace(r):
			return ' '
		default:
			return '?'
		}
	}, text)
}

// Quote returns text in quotes, cut to a length that fits into a message.
func Quote(text string) string { return "'" + cut(text) + "'" }

// cut returns text cut to a length that fits into a message.
func cut(text string) string {
	const longest = 60
	if len(text) > longest {
		return text[:longest] + "..."
	}
	return text
}
