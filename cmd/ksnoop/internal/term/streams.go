// Package term prints to terminals: plain text only, colours, lines as wide as the
// terminal, and the progress of long steps.
package term

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Streams are the input of a command, and its outputs for results and for messages.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// LeadTo returns which of the outputs is the regular file with a name, whatever path leads to
// it: "stdout", "stderr", or "" for none. What else is written to that file would be lost.
func (s *Streams) LeadTo(name string) string {
	info, err := os.Stat(name)
	switch {
	case err != nil || !info.Mode().IsRegular():
		return ""
	case LeadsTo(s.Out, info):
		return "stdout"
	case LeadsTo(s.Err, info):
		return "stderr"
	}
	return ""
}

// LeadsTo reports whether w writes to a file.
func LeadsTo(w io.Writer, info fs.FileInfo) bool {
	file, ok := FileOf(w).(*os.File)
	if !ok {
		return false
	}
	own, err := file.Stat()
	return err == nil && os.SameFile(own, info)
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
