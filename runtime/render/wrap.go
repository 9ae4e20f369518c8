package render

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// leastWrapped is the least number of columns behind an indentation for wrapped text.
const leastWrapped = 20

// Wrap breaks a line at blanks where it is longer than width, and indents the rest,
// less if there would be no room for it. A word that is longer has a line of its own. If
// width is 0, it returns the line unchanged.
func Wrap(line string, width, indent int) string {
	if indent+leastWrapped > width {
		indent = min(indent, width/4)
	}
	var text strings.Builder
	for width > 0 && columnsOf(line) > width {
		at := breakPlace(line, width, indent)
		if at < 0 {
			break
		}
		text.WriteString(strings.TrimRight(line[:at], " ") + "\n")
		line = strings.Repeat(" ", indent) + strings.TrimLeft(line[at:], " ")
	}
	return text.String() + line
}

// breakPlace returns the index of the last blank of a line that fits into width, after
// the indentation and a word, or of the first blank behind if no word fits. It returns -1
// if there is none.
func breakPlace(line string, width, indent int) int {
	at, column := -1, 0
	begun := false // the word after the indentation
	for i, r := range line {
		if column > width && at >= 0 {
			break
		}
		if r == ' ' && begun {
			at = i
		}
		begun = begun || r != ' ' && column >= indent
		column += Columns(r)
	}
	return at
}

// wrapValues wraps the last line of a text, which starts at from, where it is longer
// than width. It breaks the line between values, and inside a large value between
// members; a piece that does not fit by itself is left whole.
func wrapValues(text []byte, from, width int) []byte {
	const least = 20 // less is not worth the indentation
	if width < least || columnsOfBytes(text[from:]) <= width {
		return text
	}
	rest := bytes.Clone(text[from:])
	text = text[:from]
	indent, column := width/4, 0
	for len(rest) > 0 {
		piece := rest[:pieceEnd(rest)]
		if column+columnsOfBytes(bytes.TrimRight(piece, " ")) > width && column > indent {
			text = append(bytes.TrimRight(text, " "), '\n')
			for range indent {
				text = append(text, ' ')
			}
			column = indent
		}
		text = append(text, piece...)
		column += columnsOfBytes(piece)
		rest = rest[len(piece):]
	}
	return text
}

// pieceEnd returns the end of the first piece of a line: behind a comma or a brace, or
// behind blanks that separate values. Strings, comments and types are not broken.
func pieceEnd(line []byte) int {
	for i := 0; i < len(line); i++ {
		switch rest := line[i:]; rest[0] {
		case '"':
			i += stringLength(rest) - 1
		case '\'':
			if len(rest) > 2 && rest[2] == '\'' {
				i += 2
			}
		case '\\':
			i++
		case '/':
			if bytes.HasPrefix(rest, []byte("/*")) {
				i += untilBehind(rest, "*/") - 1
			}
		case '(':
			if i == 0 || !spec.IsWord(line[i-1]) {
				i += typeLength(rest) - 1
			}
		case ',':
			return i + 1 + blanksOf(rest[1:])
		case '{':
			if len(rest) > 1 && rest[1] != '}' {
				return i + 1
			}
		case ' ':
			if separates(line, i) {
				return i + blanksOf(rest)
			}
		}
	}
	return len(line)
}

// blanksOf returns the number of blanks that a line begins with.
func blanksOf(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " ")) }

// separates reports whether a blank is between values, or before the result of a call:
// not around the equals sign of a member, behind an arrow or before a comment.
func separates(line []byte, i int) bool {
	if i == 0 || i+1 == len(line) {
		return false
	}
	switch before, after := line[i-1], line[i+1]; {
	case before == '=', before == '>', after == '/':
		return false
	case after == '=':
		return before == ')'
	}
	return true
}

// stringLength returns the length of the string that a line begins with.
func stringLength(line []byte) int {
	for i := 1; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(line)
}

// typeLength returns the length of what is in parentheses at the beginning of a line.
func typeLength(line []byte) int {
	depth := 0
	for i, c := range line {
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(line)
}

// untilBehind returns the length of a line up to the end of a text in it.
func untilBehind(line []byte, text string) int {
	if at := bytes.Index(line, []byte(text)); at >= 0 {
		return at + len(text)
	}
	return len(line)
}

// wideRunes are the characters that take two columns of a terminal, from the first to the
// last of each range: those of Chinese, Japanese and Korean, their full-width forms, and
// emoji. It is a rough form of Unicode's East Asian Width.
var wideRunes = [...][2]rune{
	{0x1100, 0x115f}, {0x2e80, 0xa4cf}, {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe30, 0xfe6f},
	{0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x1f64f}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd},
}

// columnsOf returns the number of columns that a text takes on a terminal. It is not
// inlined, as it has several callers.
//
//go:noinline
func columnsOf(text string) (n int) {
	for _, r := range text {
		n += Columns(r)
	}
	return n
}

// columnsOfBytes does the same for bytes.
func columnsOfBytes(text []byte) (n int) {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		n += Columns(r)
		text = text[size:]
	}
	return n
}

// Columns returns the number of columns that a character takes on a terminal: 1 or 2.
func Columns(r rune) int {
	if r >= wideRunes[0][0] {
		for _, wide := range wideRunes {
			if wide[0] <= r && r <= wide[1] {
				return 2
			}
		}
	}
	return 1
}
