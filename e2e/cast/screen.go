//go:build linux

package main

import (
	"fmt"
	"strings"
)

// A cell is a character with its style.
type cell struct {
	char  rune
	style style
}

// A style is how characters look: the letters of the classes in the picture's style
// sheet, or "".
type style string

// styles lists the parameters of ESC [ m that a screen knows.
var styles = map[string]style{"": "", "0": "", "1": "b", "31": "r", "32": "g", "36": "c"}

// A screen is a terminal on which only the last line changes: programs write it, erase
// it and write it again. Those that move the cursor to other lines are not for it.
type screen struct {
	width  int
	lines  [][]cell
	column int
	style  style
	rest   string // the beginning of a sequence that is not complete
}

func newScreen(width int) *screen {
	return &screen{width: width, lines: make([][]cell, 1)}
}

// write shows a text.
func (s *screen) write(text string) error {
	text, s.rest = s.rest+text, ""
	for text != "" {
		if text[0] == '\x1b' {
			end := strings.IndexFunc(text, func(r rune) bool { return r >= '@' && r <= '~' && r != '[' })
			if end < 0 {
				s.rest = text
				return nil
			}
			if err := s.control(text[:end+1]); err != nil {
				return err
			}
			text = text[end+1:]
			continue
		}
		for i, r := range text {
			if r == '\x1b' {
				text = text[i:]
				break
			}
			if err := s.put(r); err != nil {
				return err
			}
			if i+len(string(r)) == len(text) {
				text = ""
			}
		}
	}
	return nil
}

// put shows a character.
func (s *screen) put(r rune) error {
	switch {
	case r == '\r':
		s.column = 0
	case r == '\n':
		s.lines = append(s.lines, nil)
	case r == '\b':
		s.column = max(0, s.column-1)
	case r == '\a':
	case r < ' ' || r == 0x7f || r >= 0x1100: // wide characters begin there
		return fmt.Errorf("the recording has the character %q, which a screen of lines does not show", r)
	default:
		if s.column == s.width {
			s.lines, s.column = append(s.lines, nil), 0
		}
		last := &s.lines[len(s.lines)-1]
		for len(*last) <= s.column {
			*last = append(*last, cell{char: ' '})
		}
		(*last)[s.column] = cell{r, s.style}
		s.column++
	}
	return nil
}

// control obeys a sequence that begins with ESC.
func (s *screen) control(sequence string) error {
	parameters, ok := strings.CutPrefix(sequence[:len(sequence)-1], "\x1b[")
	last := &s.lines[len(s.lines)-1]
	switch kind := sequence[len(sequence)-1]; {
	case ok && kind == 'm':
		look, known := styles[parameters]
		if !known {
			break
		}
		s.style = look
		return nil
	case ok && (kind == 'K' || kind == 'J') && (parameters == "" || parameters == "0"):
		*last = (*last)[:min(len(*last), s.column)]
		return nil
	case ok && kind == 'n': // it asks where the cursor is
		return nil
	}
	return fmt.Errorf("the recording has the sequence %q, which a screen of lines does not obey", sequence)
}

// snapshot returns the lines, without blanks at their ends.
func (s *screen) snapshot() [][]cell {
	all := make([][]cell, len(s.lines))
	for i, line := range s.lines {
		for len(line) > 0 && line[len(line)-1].char == ' ' {
			line = line[:len(line)-1]
		}
		all[i] = append([]cell(nil), line...)
	}
	return all
}
