package term

import (
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/ksnoop/ksnoop/runtime/render"
)

// Screen redraws text in place at the end of a terminal. It sets no modes, so that
// nothing is left to undo whatever ends the program.
type Screen struct {
	out        *PlainWriter
	cols, rows int // of the terminal when the text was drawn
	lines      int // that were drawn and can be drawn over
}

// NewScreen returns a screen on stdout, or nil if that is not a terminal that obeys
// control sequences.
func NewScreen(stdout io.Writer, terminal string) *Screen {
	out, ok := stdout.(*PlainWriter)
	if !ok || terminal == "dumb" || !IsTerminal(stdout) {
		return nil
	}
	return &Screen{out: out}
}

// Width returns the number of columns of the terminal now, or 0 if it is not known.
func (s *Screen) Width() int { return WidthOf(s.out) }

// Draw replaces the text that was drawn before. What does not fit is left out.
func (s *Screen) Draw(text []byte) error {
	cols, rows := sizeOf(s.out)
	lines := bytes.Split(bytes.TrimRight(text, "\n"), []byte("\n"))
	if rows > 1 && len(lines) > rows-1 {
		lines = lines[:rows-1]
	}
	for i, line := range lines {
		lines[i] = cutLine(line, cols)
	}
	return s.write(lines, cols, rows)
}

// End replaces the text that was drawn by all of the last text, which stays.
func (s *Screen) End(text []byte) error {
	cols, rows := sizeOf(s.out)
	err := s.write(bytes.Split(bytes.TrimRight(text, "\n"), []byte("\n")), cols, rows)
	s.lines = 0
	return err
}

// write writes a frame at once, so that it does not flicker. If the size of the
// terminal has changed, it is not known where the last frame is, and the whole
// terminal is cleared.
func (s *Screen) write(lines [][]byte, cols, rows int) error {
	var frame bytes.Buffer
	switch {
	case s.lines > 0 && (cols != s.cols || rows != s.rows):
		frame.WriteString("\x1b[H\x1b[2J")
	case s.lines > 0:
		fmt.Fprintf(&frame, "\x1b[%dA\r", s.lines)
	}
	plain := &PlainWriter{w: &frame, color: s.out.color}
	for _, line := range lines {
		frame.WriteString("\x1b[K")                         // before the line: behind a full one, it would take its end
		_, _ = plain.Write(append(bytes.Clone(line), '\n')) // a buffer takes all
	}
	frame.WriteString("\x1b[J")
	s.cols, s.rows, s.lines = cols, rows, len(lines)
	_, err := s.out.w.Write(frame.Bytes())
	return err
}

// cutLine cuts a line to the columns of a terminal, where it must not continue on the
// next line.
func cutLine(line []byte, cols int) []byte {
	if cols == 0 {
		return line
	}
	at := 0
	for at < len(line) {
		r, size := utf8.DecodeRune(line[at:])
		if cols -= render.Columns(r); cols < 0 {
			break
		}
		at += size
	}
	return line[:at]
}
