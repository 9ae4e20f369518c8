package kallsyms

import "strings"

// splitLine is the size of a line with its newline, which the last one may lack.
func splitLine(text string, all bool) int {
	end := strings.IndexByte(text, '\n')
	if end < 0 && all {
		return len(text)
	}
	return end + 1
}

// parseLine parses "ffffffff81000000 T _text" or the same with "\t[module]".
// The strings of the symbol are parts of line.
func parseLine(line string) (s Symbol, ok bool) {
	line = strings.TrimSuffix(line, "\n")
	var digits int
	s.Addr, digits = parseHex(line)
	if digits == 0 || digits > 16 || len(line) < digits+4 || line[digits] != ' ' || line[digits+2] != ' ' {
		return s, false
	}
	s.Type = line[digits+1]
	s.Name = line[digits+3:]
	for i := range len(s.Name) {
		if s.Name[i] <= ' ' {
			s.Name, s.Module = s.Name[:i], strings.TrimLeft(s.Name[i:], " \t")
			return s, i > 0 && s.Type > ' ' && trimBrackets(&s.Module)
		}
	}
	return s, s.Type > ' '
}

// parseHex returns the number that text begins with and its length.
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

// trimBrackets makes "[module]" "module", and returns false for anything else.
func trimBrackets(module *string) bool {
	m := *module
	if len(m) < 3 || m[0] != '[' || m[len(m)-1] != ']' {
		return false
	}
	*module = m[1 : len(m)-1]
	return true
}
