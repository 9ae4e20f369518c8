//go:build linux

package main

import (
	"slices"
	"time"
)

const (
	step    = 100 * time.Millisecond  // how often the picture changes at most
	longest = 1500 * time.Millisecond // how long it stands still at most, except at its end
	last    = 4 * time.Second         // how long the end is shown
)

// A film is a recording cut for a picture: pieces of lines, each with the frames in
// which it can be seen. The frame N is shown N steps after the beginning.
type film struct {
	width, height int
	lines         int // of all frames; the last ones of a frame are in sight
	frames        int // of which each is shown for a step
	pieces        []piece
	scrolls       []scroll
}

// A piece is a part of a line which is added to it in one frame.
type piece struct {
	line, column int
	cells        []cell
	from, to     int // the first frame with it, and the first one without, or 0
}

// A scroll says how many lines are out of sight from a frame on.
type scroll struct{ frame, lines int }

// develop makes a film of a recording.
func develop(r *Recording) (*film, error) {
	f := &film{width: r.Width, height: r.Height}
	s := newScreen(r.Width)
	var now, before time.Duration
	frame := 0
	for _, e := range r.Events {
		now += min(e.After-before, longest)
		before = e.After
		if next := int(now / step); next > frame {
			f.add(frame, s.snapshot())
			frame = next
		}
		if err := s.write(e.Text); err != nil {
			return nil, err
		}
	}
	f.add(frame, s.snapshot())
	f.frames = frame + int(last/step)
	return f, nil
}

// add adds what a frame shows that the one before did not.
func (f *film) add(frame int, lines [][]cell) {
	for i, line := range lines {
		shown := f.shown(i)
		if !slices.Equal(shown, line[:min(len(shown), len(line))]) || len(shown) > len(line) {
			f.remove(i, frame)
			shown = nil
		}
		column := len(shown)
		for column < len(line) && line[column].char == ' ' {
			column++
		}
		if column < len(line) {
			f.pieces = append(f.pieces, piece{line: i, column: column, cells: line[column:], from: frame})
		}
	}
	f.lines = len(lines)
	if above := max(0, len(lines)-f.height); above > f.above() {
		f.scrolls = append(f.scrolls, scroll{frame, above})
	}
}

// shown returns what is in sight of a line. Where pieces do not touch there are blanks.
func (f *film) shown(line int) (cells []cell) {
	for _, p := range f.pieces {
		if p.line != line || p.to != 0 {
			continue
		}
		for len(cells) < p.column {
			cells = append(cells, cell{char: ' '})
		}
		cells = append(cells, p.cells...)
	}
	return cells
}

// remove ends all pieces of a line.
func (f *film) remove(line, frame int) {
	for i := range f.pieces {
		if p := &f.pieces[i]; p.line == line && p.to == 0 {
			p.to = frame
		}
	}
}

// above returns how many lines are out of sight.
func (f *film) above() int {
	if len(f.scrolls) == 0 {
		return 0
	}
	return f.scrolls[len(f.scrolls)-1].lines
}
