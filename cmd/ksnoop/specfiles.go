package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
)

// maxSpecs bounds a file of specs.
const maxSpecs = 16 << 20

// fileFlag takes specs from files. It is one for the help: what it is given is
// in [line], as the package's options with several values would make the binary
// larger by 0.2 MB.
func fileFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "file", Aliases: []string{"f"},
		Usage: "read specs and kprobe_events lines from `FILE`, one a line; - is standard input; may be given several times",
	}
}

// takeFiles separates the files of -f from the other options.
func takeFiles(options []string, withValue map[string]bool) (others, files []string, err error) {
	for i := 0; i < len(options); i++ {
		name, value, inline := strings.Cut(strings.TrimLeft(options[i], "-"), "=")
		ofFile := name == "f" || name == "file"
		if !ofFile {
			others = append(others, options[i])
		}
		if withValue[name] && !inline && i+1 < len(options) {
			i++
			value = options[i]
			if !ofFile {
				others = append(others, value)
			}
		}
		if ofFile && value == "" {
			return nil, nil, usagef("--file names no file: as in ksnoop -f probes.txt")
		}
		if ofFile {
			files = append(files, value)
		}
	}
	return others, files, nil
}

// parseFiles reads the files with specs, each of which goes on where the one
// before it has ended.
func parseFiles(c *cli.Context) (traces []*spec.Trace, err error) {
	var errs []error
	stdin := c.App.Reader
	for _, name := range lineOf(c).files {
		text, err := readSpecs(name, stdin)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if name == "-" {
			name, stdin = "standard input", nil
		}
		traces, err = kprobe.ParseFile(name, text, traces...)
		errs = append(errs, err)
	}
	return traces, errors.Join(errs...)
}

// readSpecs is the text of a file, or of stdin, which is nil once it has been
// read.
func readSpecs(name string, stdin io.Reader) (string, error) {
	in := stdin
	switch {
	case name == "-" && stdin == nil:
		return "", usagef("--file - is given twice, and standard input can be read once")
	case name != "-":
		f, err := os.Open(name)
		if err != nil {
			return "", usagef("read specs: %w", err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxSpecs+1))
	if err == nil && len(text) > maxSpecs {
		err = fmt.Errorf("read %s: there are more than %d MB", name, maxSpecs>>20)
	}
	if err != nil {
		return "", usagef("read specs: %w", err)
	}
	return string(text), nil
}
