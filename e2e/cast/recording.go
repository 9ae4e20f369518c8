//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// A Recording holds the output of a terminal with its times. Its file is an asciicast of
// version 2: a line with a JSON object, and then a line with an array for each event.
type Recording struct {
	Width, Height int // in columns and lines
	Events        []Event
}

// An Event is a text that the terminal has got from its programs.
type Event struct {
	After time.Duration // since the beginning
	Text  string
}

type header struct {
	Version int `json:"version"`
	Width   int `json:"width"`
	Height  int `json:"height"`
}

// WriteTo writes the recording's file.
func (r *Recording) WriteTo(w io.Writer) (int64, error) {
	lines := []any{header{2, r.Width, r.Height}}
	for _, e := range r.Events {
		seconds := json.Number(fmt.Sprintf("%.3f", e.After.Seconds()))
		lines = append(lines, []any{seconds, "o", e.Text})
	}
	var written int64
	for _, line := range lines {
		text, err := json.Marshal(line)
		if err != nil {
			return written, err
		}
		n, err := w.Write(append(text, '\n'))
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// ReadRecording reads a recording's file.
func ReadRecording(r io.Reader) (*Recording, error) {
	lines := json.NewDecoder(r)
	var h header
	if err := lines.Decode(&h); err != nil {
		return nil, fmt.Errorf("read the header of a recording: %w", err)
	}
	if h.Version != 2 || h.Width < 1 || h.Height < 1 {
		return nil, fmt.Errorf("read the header of a recording: %+v is not an asciicast of version 2", h)
	}
	recording := &Recording{Width: h.Width, Height: h.Height}
	for {
		var seconds float64
		var kind, text string
		switch err := lines.Decode(&[]any{&seconds, &kind, &text}); {
		case errors.Is(err, io.EOF):
			return recording, nil
		case err != nil:
			return nil, fmt.Errorf("read event %d of a recording: %w", len(recording.Events)+1, err)
		case kind == "o":
			after := time.Duration(seconds * float64(time.Second)).Round(time.Millisecond)
			recording.Events = append(recording.Events, Event{After: after, Text: text})
		}
	}
}
