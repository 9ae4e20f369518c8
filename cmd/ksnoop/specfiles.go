package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
)

// maxSpecs bounds a file of specs.
const maxSpecs = 16 << 20

// fileFlag takes specs from files.
func fileFlag(f *pflag.FlagSet) {
	f.StringArrayP("file", "f", nil, "read specs and kprobe_events lines from `FILE`, one a line; - is standard input; may be given several times")
}

// parseFiles reads the files with specs, each of which goes on where the one
// before it has ended.
func parseFiles(c *invocation) (traces []*spec.Trace, err error) {
	var errs []error
	stdin := c.stdin
	for _, name := range c.Strings("file") {
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
