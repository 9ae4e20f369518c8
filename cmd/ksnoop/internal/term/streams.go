// Package term prints to terminals: plain text only, colours, lines as wide as the
// terminal, and the progress of long steps.
package term

import (
	"fmt"
	"io"
)

// Streams are the input of a command, and its outputs for results and for messages.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// WarnOn returns a function that prints errors that end nothing as warnings on w.
func WarnOn(w io.Writer) func(error) {
	return func(err error) { Say(w, []string{err.Error()}) }
}

// Say prints notes, one on each line.
func Say(w io.Writer, notes []string) {
	for _, note := range notes {
		fmt.Fprintf(w, "ksnoop: %s\n", note)
	}
}
