package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/report"
)

// summaryVariable names the file that GitHub shows as the summary of a step.
const summaryVariable = "GITHUB_STEP_SUMMARY"

// ownFormat is a format that a command has besides those of package report; it
// is the default, and goes to stdout alone. The zero value is none.
type ownFormat struct {
	name string
	new  func(io.Writer) report.Writer
}

// formats are the values of --output, the default first.
func (own ownFormat) formats() []string {
	if own.new == nil {
		return report.Formats()
	}
	return append([]string{own.name}, report.Formats()...)
}

// reportsFlag is where results go, and in which formats.
func reportsFlag(own ownFormat) flags {
	formats := own.formats()
	return func(f *pflag.FlagSet) {
		f.StringArrayP("output", "o", nil, "print results as `FORMAT[=FILE]`: "+orList(formats)+" (default: "+formats[0]+"); may be given several times, once without a file")
	}
}

// reports is results on their way to stdout and to files.
type reports struct {
	report.Writer
	stdout string // the format that goes there
	files  []*reportFile
}

// openReports opens what the values of --output name, so that nothing is done
// before it is known that the results can be kept.
func openReports(values []string, own ownFormat, stdout io.Writer) (*reports, error) {
	if len(values) == 0 {
		values = own.formats()[:1]
	}
	all := &reports{}
	var writers []report.Writer
	for _, value := range values {
		w, err := all.open(value, own, stdout)
		if err != nil {
			all.discard()
			return nil, err
		}
		writers = append(writers, w)
	}
	all.Writer = report.All(writers...)
	return all, nil
}

// open opens one of them.
func (all *reports) open(value string, own ownFormat, stdout io.Writer) (report.Writer, error) {
	format, name, toFile := strings.Cut(value, "=")
	switch {
	case !slices.Contains(own.formats(), format):
		return nil, unknownName("--output", format, own.formats())
	case toFile && name == "":
		return nil, usagef("--output is %q: name a file behind =, as in %s=results", value, format)
	case !toFile && all.stdout != "":
		return nil, usagef("--output sends both %s and %s to stdout: give one of them a file, as in %s=results", all.stdout, format, format)
	}
	to := stdout
	if toFile {
		f, err := openReportFile(name, report.Streams(format))
		if err != nil {
			return nil, err
		}
		all.files = append(all.files, f)
		to = f
	} else {
		all.stdout = format
	}
	if format == own.name {
		return own.new(to), nil
	}
	summary, err := all.openSummary(format)
	if err != nil {
		return nil, err
	}
	return report.New(format, to, summary)
}

// openSummary opens the file for GitHub's table, if there is one.
func (all *reports) openSummary(format string) (io.Writer, error) {
	name := os.Getenv(summaryVariable)
	if format != "github" || name == "" {
		return nil, nil
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the file that $%s names: %w", summaryVariable, err)
	}
	all.files = append(all.files, &reportFile{name: name, file: f})
	return f, nil
}

// End writes the ends of all formats, and the files that appear whole.
func (all *reports) End() error {
	errs := []error{all.Writer.End()}
	for _, f := range all.files {
		errs = append(errs, f.close())
	}
	all.files = nil
	return errors.Join(errs...)
}

// discard closes what was opened, if there is no end.
func (all *reports) discard() {
	for _, f := range all.files {
		if f.file != nil {
			f.file.Close()
		}
	}
	all.files = nil
}

// reportFile is a file that is written as results come, or text that becomes
// one at the end.
type reportFile struct {
	name string
	file *os.File     // nil: it appears whole
	text bytes.Buffer // what it will hold
}

// openReportFile opens a file, or makes sure that there can be one. What is no
// plain file, such as a pipe, cannot be replaced by one.
func openReportFile(name string, stream bool) (*reportFile, error) {
	info, err := os.Stat(name)
	if stream || err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644) // of a pipe, this waits for the reader
		if err != nil {
			return nil, fmt.Errorf("write the results: %w", err)
		}
		return &reportFile{name: name, file: f}, nil
	}
	if err := unix.Access(filepath.Dir(name), unix.W_OK|unix.X_OK); err != nil {
		return nil, fmt.Errorf("write the results: create %s in its directory: %w", name, err)
	}
	return &reportFile{name: name}, nil
}

// Write writes, or gathers.
func (f *reportFile) Write(p []byte) (int, error) {
	if f.file == nil {
		return f.text.Write(p)
	}
	return f.file.Write(p)
}

func (f *reportFile) close() error {
	var err error
	if f.file != nil {
		err = f.file.Close()
	} else {
		err = writeWhole(f.name, f.text.Bytes())
	}
	if err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}
