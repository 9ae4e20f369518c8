//go:build linux

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestScreen checks what a terminal of 10 columns shows.
func TestScreen(t *testing.T) {
	for _, c := range []struct {
		written []string
		lines   []string
		refused string
	}{
		{[]string{"one\r\n", "two"}, []string{"one", "two"}, ""},
		{[]string{"50 %\r\x1b[K100 %"}, []string{"100 %"}, ""},
		{[]string{"abc\b\bX\x1b[J"}, []string{"aX"}, ""},
		{[]string{"0123456789ab"}, []string{"0123456789", "ab"}, ""},
		{[]string{"0123456789\r\nab  "}, []string{"0123456789", "ab"}, ""},
		{[]string{"a\x1b", "[3", "1mb\x1b[mc\x1b[6n"}, []string{"abc"}, ""},
		{[]string{"µ"}, []string{"µ"}, ""},
		{[]string{"\x1b[2A"}, nil, `the sequence "\x1b[2A"`},
		{[]string{"\x1b[44mx"}, nil, `the sequence "\x1b[44m"`},
		{[]string{"\t"}, nil, `the character '\t'`},
		{[]string{"漢"}, nil, `the character '漢'`},
	} {
		s := newScreen(10)
		var err error
		for _, text := range c.written {
			err = errors.Join(err, s.write(text))
		}
		if c.refused != "" {
			require.ErrorContains(t, err, c.refused)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.lines, texts(s.snapshot()), c.written)
	}
}

// TestFilm checks which pieces of lines there are when: what is added to a line is a
// piece of its own, and a line that is written again replaces all of its pieces.
func TestFilm(t *testing.T) {
	at := func(after time.Duration, text string) Event { return Event{After: after, Text: text} }
	f, err := develop(&Recording{Width: 20, Height: 2, Events: []Event{
		at(0, "# l"), at(40*time.Millisecond, "s"), at(200*time.Millisecond, " -l\r\n1 of 2"), at(time.Hour, "\r\x1b[K\x1b[32mdone\x1b[m\r\n"), at(time.Hour+time.Second, "# "),
	}})
	require.NoError(t, err)
	cells := func(text string, look style) (all []cell) {
		for _, r := range text {
			all = append(all, cell{r, look})
		}
		return all
	}
	require.Equal(t, &film{width: 20, height: 2, lines: 3, frames: 27 + 40, scrolls: []scroll{{17, 1}}, pieces: []piece{
		{0, 0, cells("# ls", ""), 0, 0},
		{0, 5, cells("-l", ""), 2, 0},
		{1, 0, cells("1 of 2", ""), 2, 17},
		{1, 0, cells("done", "g"), 17, 0},
		{2, 0, cells("#", ""), 27, 0},
	}}, f)
}

// TestPicture checks the README's picture: it is that of the recording, XML that loads
// nothing and runs nothing, small, and has all lines of the recording in the end.
func TestPicture(t *testing.T) {
	recording, err := os.ReadFile("testdata/ksnoop.cast")
	require.NoError(t, err)
	want, err := draw(recording)
	require.NoError(t, err)
	picture, err := os.ReadFile("../../docs/ksnoop.svg")
	require.NoError(t, err)
	require.True(t, string(want) == string(picture), "go run ./e2e/cast -draw draws another picture")
	require.Less(t, len(picture), 60_000)
	for _, word := range []string{"<script", "href", "url(", "@import", "<image", "foreignObject"} {
		require.NotContains(t, string(picture), word)
	}

	r, err := ReadRecording(strings.NewReader(string(recording)))
	require.NoError(t, err)
	took := time.Duration(0)
	s := newScreen(r.Width)
	for _, e := range r.Events {
		require.NoError(t, s.write(e.Text))
		took = e.After
	}
	require.Greater(t, took, 15*time.Second)
	lines := s.snapshot()
	require.Equal(t, texts(lines), textsOf(t, string(picture), len(lines)))
	for _, command := range scenario {
		require.Contains(t, texts(lines), prompt+command)
	}
}

// textsOf returns the lines of a picture that are not hidden in the end.
func textsOf(t *testing.T, picture string, n int) []string {
	lines := make([]string, n)
	hidden, inText, line, column := false, false, 0, 0
	for tokens := xml.NewDecoder(strings.NewReader(picture)); ; {
		token, err := tokens.Token()
		if errors.Is(err, io.EOF) {
			return lines
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			attributes := map[string]string{}
			for _, a := range token.Attr {
				attributes[a.Name.Local] = a.Value
			}
			switch token.Name.Local {
			case "g":
				hidden = attributes["class"] == "o"
			case "text":
				x, err := strconv.ParseFloat(attributes["x"], 64)
				require.NoError(t, err)
				y, err := strconv.Atoi(attributes["y"])
				require.NoError(t, err)
				inText, line, column = true, y/lineHeight, int(x/charWidth+0.5)
			}
		case xml.EndElement:
			inText = inText && token.Name.Local != "text"
		case xml.CharData:
			if inText && !hidden {
				lines[line] += strings.Repeat(" ", max(0, column-len([]rune(lines[line])))) + string(token)
			}
		}
	}
}
