package suite

import (
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// uncomment removes the comment from a line. A comment begins with a # that is at
// the start of the line or after a blank, and not in quotes.
func uncomment(text string) string {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '#' && (i == 0 || spec.IsBlank(text[i-1])):
			return text[:i]
		case c == '"' || c == '\'':
			i = closing(text, i)
		}
	}
	return text
}

// closing returns the offset of the quote that closes the one at open, or the
// length of the text if there is none. A backslash escapes the next character.
func closing(text string, open int) int {
	for i := open + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[open]:
			return i
		}
	}
	return len(text)
}

// unquoted reads a word and removes its quotes. In quotes a word may have blanks,
// and a backslash escapes a quote or a backslash.
func (l *line) unquoted() (w word, quoted bool, err error) {
	l.skip()
	start := l.pos
	var text strings.Builder
	for l.pos < len(l.text) && !spec.IsBlank(l.text[l.pos]) {
		c := l.text[l.pos]
		if c != '"' && c != '\'' {
			text.WriteByte(c)
			l.pos++
			continue
		}
		end := closing(l.text, l.pos)
		if end == len(l.text) {
			open := l.since(l.pos)
			open.at.End++
			return w, false, l.errorf(open.at, "the string has no closing %c", c)
		}
		text.WriteString(unescape(l.text[l.pos+1 : end]))
		l.pos, quoted = end+1, true
	}
	w = l.since(start)
	w.text = text.String()
	return w, quoted, nil
}

// unescape removes the backslashes before quotes and backslashes.
func unescape(text string) string {
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\'`, `'`).Replace(text)
}

// quote returns text in quotes, as unquoted reads it.
func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
