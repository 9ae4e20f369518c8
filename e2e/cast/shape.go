//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// verify returns an error if a new recording shows other lines than the one that there
// is, but for numbers, the width of columns, and the order of what two programs print.
func verify(text []byte) error {
	file, err := os.ReadFile(recordingFile)
	if err != nil {
		return err
	}
	want, err := shape(file)
	if err != nil {
		return err
	}
	got, err := shape(text)
	if err != nil {
		return err
	}
	if slices.Equal(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))) {
		return nil
	}
	return fmt.Errorf("the recording is old: run make cast\n--- recorded\n%s\n--- now\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
}

var (
	bars    = regexp.MustCompile(`\|[@ ]*\| *$`)
	numbers = regexp.MustCompile(`0x[0-9a-f]+|[0-9]+(\.[0-9]+)?(ns|us|ms|s)?\b`)
	blanks  = regexp.MustCompile(` +`)
)

// shape returns the lines that a recording shows in the end, without their numbers and
// without the bars of histograms.
func shape(text []byte) (lines []string, err error) {
	r, err := ReadRecording(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	s := newScreen(r.Width)
	for _, e := range r.Events {
		if err := s.write(e.Text); err != nil {
			return nil, err
		}
	}
	for _, line := range texts(s.snapshot()) {
		if !bars.MatchString(line) {
			lines = append(lines, blanks.ReplaceAllString(numbers.ReplaceAllString(line, "0"), " "))
		}
	}
	return lines, nil
}

// texts returns the characters of lines.
func texts(lines [][]cell) (all []string) {
	for _, line := range lines {
		text := ""
		for _, c := range line {
			text += string(c.char)
		}
		all = append(all, text)
	}
	return all
}
