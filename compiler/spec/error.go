package spec

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Error is an error in a spec, with its place. It prints the message, the spec with
// the place marked, and the hint if there is one. If the spec is from a file, the
// file, line and column come before the message.
type Error struct {
	Text  string // the spec
	From  Source // the line that Text is from
	At    Span   // the place in Text
	Msg   string // what is wrong
	Hint  string // how to correct it; may be empty or have several lines
	Meant string // what Hint proposes instead of the text at the place, or ""
	ofIt  string // Msg with "it" for its subject, or "" if it has none
	Kind  ErrorKind
}

// ErrorKind tells apart the errors on which programs decide.
type ErrorKind uint8

// The kinds of errors.
const (
	OtherError      ErrorKind = iota
	NoFunction                // the kernel has no function of that name
	NoTracepoint              // the kernel has no tracepoint of that name
	NoIterator                // the kernel has no iterator of that name
	HiddenAddresses           // the user may not see the addresses of symbols
	NoSymbols                 // there is no symbol table to find an address in
	NoMember                  // the structure has no member of that name
	NoArgument                // the function has no argument of that name
	NamesInHint               // nor one with a similar name: the hint has the names of all
	NoResult                  // what the spec names returns nothing
)

// Errorf returns an error at a place in the text of a spec. It is not inlined
// because that would take 80 KB in its 300 callers.
//
//go:noinline
func Errorf(text string, at Span, format string, args ...any) *Error {
	e := &Error{Text: text, At: at, Msg: fmt.Sprintf(format, args...)}
	if i := slices.IndexFunc(args, isSubject); i >= 0 {
		its := slices.Clone(args)
		its[i] = "it"
		e.ofIt = fmt.Sprintf(format, its...)
	}
	return e
}

// Errorf returns an error at a place in the text of t.
//
//go:noinline
func (t *Trace) Errorf(at Span, format string, args ...any) *Error {
	return Errorf(t.Text, at, format, args...)
}

// Subject is the name of the function that an error is about.
type Subject string

func isSubject(arg any) bool {
	_, ok := arg.(Subject)
	return ok
}

// Reason returns the message as the reason why one of many functions is left out: with
// "it" for the function.
func (e *Error) Reason() string { return cmp.Or(e.ofIt, e.Msg) }

// WithHint sets the hint of e and returns e.
//
//go:noinline
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// AddHint adds a line to the hint of e.
//
//go:noinline
func (e *Error) AddHint(format string, args ...any) {
	e.Hint = strings.TrimPrefix(e.Hint+"\n"+fmt.Sprintf(format, args...), "\n")
}

// WithMeant sets the hint of e to the question whether this was meant, and returns e.
//
//go:noinline
func (e *Error) WithMeant(format string, args ...any) *Error {
	e.Meant = fmt.Sprintf(format, args...)
	e.Hint = "did you mean '" + e.Meant + "'?"
	return e
}

// WithKind sets the kind of e and returns e.
func (e *Error) WithKind(kind ErrorKind) *Error {
	e.Kind = kind
	return e
}

// Locate sets the file and line of an error about t, and returns the error.
func (t *Trace) Locate(err error) error {
	if refusal := (*Error)(nil); errors.As(err, &refusal) {
		refusal.From = t.From
	}
	return err
}

// Error returns the text of e in printable ASCII only, since specs and the names in
// a kernel module may have control characters, which a terminal would obey.
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

// position returns "FILE:LINE:COLUMN: ", or "" if e is not from a file.
func (e *Error) position() string {
	if e.From.Line == 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d:%d: ", e.From.File, e.From.Line, e.Column())
}

// Column returns the column of e in its spec, counted from 1 in characters.
func (e *Error) Column() int { return column(e.Text, e.At.Start) + 1 }

// columns is the number of columns of a spec that are shown, and context how many of
// them are before a place in the middle of a longer spec.
const (
	columns = 96
	context = 32
)

// window returns the part of text around a place, in printable form, and the
// columns of the place in it. The place has at least one column.
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

// column returns the number of columns that text[:offset] takes when printed.
func column(text string, offset int) int {
	return utf8.RuneCountInString(text[:max(0, min(offset, len(text)))])
}

// printable returns text in printable ASCII, with one column for each character. It
// replaces white space by a blank and other characters by a question mark.
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

// Quote returns text in quotes, shortened to fit into a message. It is not inlined: it
// has 45 callers.
//
//go:noinline
func Quote(text string) string { return "'" + cut(text) + "'" }

// cut returns text shortened to fit into a message.
func cut(text string) string {
	const longest = 60
	if len(text) > longest {
		return text[:longest] + "..."
	}
	return text
}
