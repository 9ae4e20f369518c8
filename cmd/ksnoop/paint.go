package main

import "bytes"

// style is how a terminal shows a piece of text (Select Graphic Rendition of
// ECMA-48); "": as any other.
type style string

const (
	functionStyle style = "\x1b[1m"  // bold
	nameStyle     style = "\x1b[36m" // cyan
	typeStyle     style = "\x1b[32m" // green
	faultStyle    style = "\x1b[31m" // red
	endOfStyle          = "\x1b[m"
)

// paint writes whole lines with their names, types and faults in colour; the rest
// waits for its end. No other escape sequence gets through, as each piece is made
// plain by itself.
func (p *plainWriter) paint(text []byte) (int, error) {
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

// highlight finds what has a style in text that looks like C, as all that ksnoop
// shows does: names before "=", functions before "(", types in parentheses before
// a value, and faults, which are comments.
func highlight(text []byte, mark func(from, to int, s style)) {
	last := byte('\n') // what stands before, but for blanks
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
				mark(from, i, faultStyle)
			}
		case c == '(' && bytes.IndexByte([]byte("={,\n"), last) >= 0:
			if end := typeEnd(text, i); end > 0 {
				i = end
				mark(from, i, typeStyle)
			} else {
				i++
			}
		case isNameByte(c), c == '$', c == '@':
			i = pathEnd(text, i)
			switch rest := text[i:]; {
			case bytes.HasPrefix(rest, []byte(" =")), bytes.HasPrefix(rest, []byte("=")):
				mark(from, i, nameStyle)
			case bytes.HasPrefix(rest, []byte("(")):
				mark(from, i, functionStyle)
			}
		default:
			i++
		}
		if c != ' ' && c != '\t' {
			last = text[min(i, len(text))-1]
		}
	}
}

// isNote says whether a comment is no fault: how long a time is, or how much is cut.
func isNote(comment []byte) bool {
	comment = bytes.TrimLeft(comment, " ")
	return len(comment) > 0 && '0' <= comment[0] && comment[0] <= '9' && !bytes.HasPrefix(comment, []byte("0x"))
}

// stringEnd is where a string that begins at a place ends: in its line.
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

// typeEnd is where a type in parentheses ends; 0: it is none.
func typeEnd(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch c := text[i]; {
		case c == ')':
			return i + 1
		case !isNameByte(c) && bytes.IndexByte([]byte(" *[]"), c) < 0:
			return 0
		}
	}
	return 0
}

// pathEnd is where a value such as file->f_path.dentry[1] ends.
func pathEnd(text []byte, i int) int {
	for i++; i < len(text); i++ {
		c := text[i]
		switch {
		case isNameByte(c), c == '.', c == '[', c == ']':
		case c == '-' && i+1 < len(text) && text[i+1] == '>':
			i++
		default:
			return i
		}
	}
	return i
}
