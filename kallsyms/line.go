package kallsyms

import "strings"

// splitLine returns the size of the first line of text with its newline, or 0 if it has
// none. If all is true, no more text follows, and the last line needs no newline.
func splitLine(text string, all bool) int {
	end := strings.IndexByte(text, '\n')
	if end < 0 && all {
		return len(text)
	}
	return end + 1
}

// parseLine parses "ffffffff81000000 T _text" or the same with "\t[module]".
// The strings of the symbol are parts of line. Assemblers put control bytes into the
// names of labels, as in ".L14472\x021", which modules for arm64 keep.
func parseLine(line string) (s Symbol, ok bool) {
	line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r") // a file may have been on Windows
	var digits int
	s.Addr, digits = parseHex(line)
	if digits == 0 || digits > 16 || len(line) < digits+4 || line[digits] != ' ' || line[digits+2] != ' ' {
		return s, false
	}
	s.Type = line[digits+1]
	s.Name = line[digits+3:]
	for i := range len(s.Name) {
		if c := s.Name[i]; c == ' ' || c == '\t' {
			module, opened := strings.CutPrefix(strings.TrimLeft(s.Name[i:], " \t"), "[")
			module, closed := strings.CutSuffix(module, "]")
			s.Name, s.Module = s.Name[:i], module
			return s, i > 0 && s.Type > ' ' && opened && closed && module != ""
		}
	}
	return s, s.Type > ' '
}

// parseHex returns the hexadecimal number at the start of text and the number
// of its digits.
func parseHex(text string) (n uint64, digits int) {
	for digits < len(text) {
		c := text[digits]
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		default:
			return n, digits
		}
		n = n<<4 | uint64(c)
		digits++
	}
	return n, digits
}
