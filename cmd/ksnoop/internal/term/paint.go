package term

import (
	"bytes"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// style is an escape sequence for a piece of text (Select Graphic Rendition of
// ECMA-48), or "" for plain text.
type style string

const (
	functionStyle style = "\x1b[1m"  // bold
	nameStyle     style = "\x1b[36m" // cyan
	typeStyle     style = "\x1b[32m" // green
	faultStyle    style = "\x1b[31m" // red
	endOfStyle          = "\x1b[m"
)

// paint writes whole lines with their names, types and faults in colour; an
// incomplete line waits for its end. No other escape sequence gets through, as each
// piece is made plain by itself.
func (p *PlainWriter) paint(text []byte) (int, error) {
	p.line = append(p.line, text...)
	end := bytes.LastIndexByte(p.line, '\n') + 1
	if end == 0 {
		return len(text), nil
	}
	out := appendPainted(nil, p.line[:end])
	p.line = append(p.line[:0], p.line[end:]...)
	if _, err := p.w.Write(out); err != nil {
		return 0, err
	}
	return len(text), nil
}

func appendPainted(dst, text []byte) []byte {
	plain := func(part []byte) {
		var rest []byte
		dst, rest = appendPlain(dst, part)
		for range rest {
			dst = append(dst, '?')
		}
	}
	done := 0
	highlight(text, func(from, to int, s style) {
		plain(text[done:from])
		dst = append(dst, s...)
		plain(text[from:to])
		dst = append(dst, endOfStyle...)
		done = to
	})
	plain(text[done:])
	return dst
}

// highlight calls mark for each piece with a style in text that looks like C, as all
// output of ksnoop does: names before "=", functions before "(", types in parentheses
// before a value, and faults, which are comments.
func highlight(text []byte, mark func(from, to int, s style)) {
	last := byte('\n') // the character before, except blanks
	done := 0          // what is before has its style
	style := func(from, to int, s style) {
		mark(from, to, s)
		done = to
	}
	for i := 0; i < len(text); {
		from, c := i, text[i]
		switch {
		case c == '"':
			i = stringEnd(text, i)
		case c == '\\':
			i += 2
		case c == '/' && i+1 < len(text) && (text[i+1] == '*' || text[i+1] == '/'):
			i = commentEnd(text, i)
			if !isNote(text[from+2 : i]) {
				style(from, i, faultStyle)
			}
		case c == '(' && bytes.IndexByte([]byte("={,\n"), last) >= 0:
			if end := typeEnd(text, i); end > 0 {
				i = end
				style(from, i, typeStyle)
			} else {
				i++
			}
		case spec.IsWord(c), c == '$', c == '@':
			i = pathEnd(text, i)
			switch rest := text[i:]; {
			case bytes.HasPrefix(rest, []byte(" =")), bytes.HasPrefix(rest, []byte("=")):
				style(max(done, expressionStart(text[:from])), i, nameStyle)
			case bytes.HasPrefix(rest, []byte("(")):
				style(from, i, functionStyle)
			}
		default:
			i++
		}
		if c != ' ' && c != '\t' {
			last = text[min(i, len(text))-1]
		}
	}
}

// isNote reports whether a comment is not a fault but a note: a length of time, or
// how much is cut.
func isNote(comment []byte) bool {
	comment = bytes.TrimLeft(comment, " ")
	return len(comment) > 0 && '0' <= comment[0] && comment[0] <= '9' && !bytes.HasPrefix(comment, []byte("0x"))
}

// stringEnd returns the end of a string that begins at i, which is on the same line.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text) && text[i] != '\n'; i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return min(i, len(text))
}

func commentEnd(text []byte, i int) int {
	line := text[i:]
	if end := bytes.IndexByte(line, '\n'); end >= 0 {
		line = line[:end]
	}
	if end := bytes.Index(line, []byte("*/")); end >= 0 && line[1] == '*' {
		line = line[:end+2]
	}
	return i + len(line)
}

// typeEnd returns the end of a type in parentheses, or 0 if there is none.
func typeEnd(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch c := text[i]; {
		case c == ')':
			return i + 1
		case !spec.IsWord(c) && bytes.IndexByte([]byte(" *[]"), c) < 0:
			return 0
		}
	}
	return 0
}

// expressionStart returns where the expression begins whose last operand follows text:
// at the operand, unless there are operators before it, such as the << of size << 3.
func expressionStart(text []byte) int {
	for start := len(text); ; {
		left, apart := bytes.CutSuffix(text[:start], []byte(" "))
		operator := left[wordStart(left):]
		left, apartToo := bytes.CutSuffix(left[:len(left)-len(operator)], []byte(" "))
		operand := left[wordStart(left):]
		if !apart || !apartToo || len(operator) == 0 || len(operand) == 0 || len(bytes.Trim(operator, "+-*&|<>")) > 0 {
			return start
		}
		start = len(left) - len(operand)
	}
}

// wordStart returns where the last word of text begins. A word may have blanks in
// parentheses.
func wordStart(text []byte) int {
	depth := 0
	for i := len(text) - 1; i >= 0; i-- {
		switch c := text[i]; {
		case c == ')':
			depth++
		case c == '(' && depth > 0:
			depth--
		case c == '(', c == '\n', depth == 0 && (c == ' ' || c == ','):
			return i + 1
		}
	}
	return 0
}

// pathEnd returns the end of a value such as file->f_path.dentry[1].
func pathEnd(text []byte, i int) int {
	for i++; i < len(text); i++ {
		c := text[i]
		switch {
		case spec.IsWord(c), c == '.', c == '[', c == ']':
		case c == '-' && i+1 < len(text) && text[i+1] == '>':
			i++
		default:
			return i
		}
	}
	return i
}

// Colors are the times when text is coloured, the default first.
var Colors = []string{"auto", "always", "never"}

// SetColor colours standard output from now on, if when, one of Colors, asks for that.
func SetColor(stdout io.Writer, when string) {
	auto := when == "auto" && IsTerminal(stdout) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if out, ok := stdout.(*PlainWriter); ok {
		out.color = auto || when == "always"
	}
}

// WidthOf returns the number of columns of a terminal, or 0 if w is none and lines
// may have any length. $COLUMNS goes before what the terminal says of itself, as POSIX
// has it: a serial line says nothing.
func WidthOf(w io.Writer) int {
	if !IsTerminal(w) {
		return 0
	}
	if n, err := strconv.ParseUint(os.Getenv("COLUMNS"), 10, 16); err == nil && n > 0 {
		return int(n)
	}
	cols, _ := sizeOf(w)
	return cols
}

// sizeOf returns the columns and rows of a terminal, or 0 if they are not known.
func sizeOf(w io.Writer) (cols, rows int) {
	file, ok := FileOf(w).(interface{ Fd() uintptr })
	if !ok {
		return 0, 0
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(size.Col), int(size.Row)
}
