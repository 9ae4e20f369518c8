package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// summaryVariable is the variable with the name of the file that GitHub shows as the
// summary of a step.
const summaryVariable = "GITHUB_STEP_SUMMARY"

// Format is a format that a command has besides those of [Formats]; it is the default.
// The zero value means none.
type Format struct {
	Name string
	New  func(io.Writer) Writer
}

// Formats returns the values of --output, the default first.
func (own Format) Formats() []string {
	if own.New == nil {
		return Formats()
	}
	return append([]string{own.Name}, Formats()...)
}

// Outputs writes results to stdout and to files.
type Outputs struct {
	Writer
	streams *term.Streams
	stdout  string // the format of what goes to stdout
	files   []*outputFile
}

// Open opens the outputs of the --output values, so that nothing is done if the
// results cannot be saved.
func Open(values []string, own Format, s *term.Streams) (*Outputs, error) {
	if len(values) == 0 {
		values = own.Formats()[:1]
	}
	all := &Outputs{streams: s}
	var writers []Writer
	for _, value := range values {
		w, err := all.open(value, own)
		if err != nil {
			all.Discard()
			return nil, err
		}
		writers = append(writers, w)
	}
	if err := all.empty(); err != nil {
		all.Discard()
		return nil, err
	}
	all.Writer = All(writers...)
	return all, nil
}

// empty removes what the files have from before. This is done once all outputs are known to be
// right: a wrong command line leaves earlier results as they are.
func (all *Outputs) empty() error {
	for _, f := range all.files {
		if f.file == nil || f.grows {
			continue
		}
		if err := f.file.Truncate(0); err != nil && !errors.Is(err, unix.EINVAL) { // of a pipe or a device
			return fmt.Errorf("write the results: %w", err)
		}
	}
	return nil
}

// open opens one output.
func (all *Outputs) open(value string, own Format) (Writer, error) {
	format, name, toFile := strings.Cut(value, "=")
	switch {
	case !slices.Contains(own.Formats(), format):
		return nil, exit.UnknownName("--output", format, own.Formats())
	case toFile && name == "":
		return nil, exit.Usagef("--output is %q: name a file after =, as in %s=results", value, format)
	case !toFile && all.stdout != "":
		return nil, exit.Usagef("--output sends both %s and %s to stdout: give one of them a file, as in %s=results", all.stdout, format, format)
	}
	to := all.streams.Out
	if toFile {
		if all.Writes(name) {
			return nil, exit.Usagef("--output writes %s twice: give each format a file of its own", render.PlainName(name))
		}
		if leadsTo(all.streams.Err, name) {
			return nil, exit.Usagef("--output would write to %s, where stderr goes: name another file", render.PlainName(name))
		}
		f, err := openOutputFile(name, Streams(format))
		if err != nil {
			return nil, fmt.Errorf("write the results: %w", err)
		}
		all.files = append(all.files, f)
		to = f
	} else {
		all.stdout = format
		if i := slices.IndexFunc(all.files, func(f *outputFile) bool { return leadsTo(all.streams.Out, f.name) }); i >= 0 {
			return nil, exit.Usagef("--output writes %s twice, as stdout leads there: give each format a file of its own", render.PlainName(all.files[i].name))
		}
	}
	if format == own.Name {
		return own.New(to), nil
	}
	summary, err := all.openSummary(format)
	if err != nil {
		return nil, err
	}
	return New(format, to, summary)
}

// Writes reports whether one of the outputs is the file with a name, whatever path leads to
// it. A pipe or a device may be several outputs.
func (all *Outputs) Writes(name string) bool {
	info, err := os.Stat(name)
	return (err != nil || info.Mode().IsRegular()) &&
		(all.stdout != "" && leadsTo(all.streams.Out, name) || slices.ContainsFunc(all.files, func(f *outputFile) bool { return SameFile(f.name, name) }))
}

// leadsTo reports whether w writes to the regular file with a name.
func leadsTo(w io.Writer, name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular() && term.LeadsTo(w, info)
}

// SameFile reports whether two names are, or will be, those of one file.
func SameFile(a, b string) bool {
	atA, errA := os.Stat(a)
	atB, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return os.SameFile(atA, atB)
	}
	return errA != nil && errB != nil && filepath.Base(a) == filepath.Base(b) && SameFile(filepath.Dir(a), filepath.Dir(b))
}

// openSummary opens the file for GitHub's table, or returns nil if there is none.
func (all *Outputs) openSummary(format string) (io.Writer, error) {
	name := os.Getenv(summaryVariable)
	if format != "github" || name == "" {
		return nil, nil
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the file that $%s names: %w", summaryVariable, err)
	}
	all.files = append(all.files, &outputFile{name: name, file: f, grows: true})
	return f, nil
}

// End ends all formats, and writes the files that are written as a whole. It returns the
// first error of each output, also if that was returned before.
func (all *Outputs) End() error {
	errs := []error{all.Writer.End()}
	for _, f := range all.files {
		if err := f.Close(); err != nil {
			errs = append(errs, fmt.Errorf("write the results: %w", err))
		}
	}
	all.files = nil
	return errors.Join(errs...)
}

// Discard closes the outputs without ending them.
func (all *Outputs) Discard() {
	for _, f := range all.files {
		if f.file != nil {
			f.file.Close()
		}
	}
	all.files = nil
}

// outputFile is a file that is written as results arrive, or text that is written to
// a file at the end.
type outputFile struct {
	name  string
	file  *os.File     // nil if the file is written as a whole
	grows bool         // whether it keeps what it has
	text  bytes.Buffer // its future content
}

// openOutputFile opens a file, or verifies that it can be created. A file that is not
// regular, such as a pipe, cannot be replaced by one, and is opened. So is what a link
// leads to without being a name of it, as /dev/stdout does.
func openOutputFile(name string, stream bool) (*outputFile, error) {
	if of, err := filepath.EvalSymlinks(name); err == nil {
		name = of
	}
	info, err := os.Lstat(name)
	if stream || err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o644) // for a pipe, this waits for the reader
		return &outputFile{name: name, file: f}, err
	}
	return &outputFile{name: name}, creatable(name)
}

// creatable returns an error unless a file can be created, or replaced.
func creatable(name string) error {
	if err := unix.Access(filepath.Dir(name), unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("create %s in its directory: %w", name, err)
	}
	return nil
}

// Write writes to the file, or collects the text.
func (f *outputFile) Write(p []byte) (int, error) {
	if f.file == nil {
		return f.text.Write(p)
	}
	return f.file.Write(p)
}

// Close closes the file, or writes it.
func (f *outputFile) Close() error {
	if f.file != nil {
		return f.file.Close()
	}
	return WriteWhole(f.name, f.text.Bytes())
}

// OpenMetrics opens the file for WriteMetrics, and returns what is known of its errors before
// there are numbers, so that nothing is done if they cannot be written.
func OpenMetrics(name string, metrics []Metric) (io.WriteCloser, error) {
	if _, err := appendMetrics(nil, metrics); err != nil {
		return nil, exit.Misuse(fmt.Errorf("write the metrics: %w", err))
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return nil, exit.Usagef("%s is a directory: name a file in it for the metrics", name)
	}
	f, err := openOutputFile(name, false)
	if err != nil {
		return nil, fmt.Errorf("write the metrics: %w", err)
	}
	return f, nil
}

// WriteMetrics writes a file for the textfile collector of node_exporter, which may
// read it at any time.
func WriteMetrics(to io.WriteCloser, metrics []Metric) error {
	text, err := appendMetrics(nil, metrics)
	if err == nil {
		if _, err = to.Write(text); err == nil {
			err = to.Close()
		}
	}
	if err != nil {
		return fmt.Errorf("write the metrics: %w", err)
	}
	return nil
}

// WriteWhole creates or replaces a file with all its content at once.
func WriteWhole(name string, content []byte) error {
	temp := fmt.Sprintf("%s.%d", name, os.Getpid())
	err := os.WriteFile(temp, content, 0o644)
	if err == nil {
		err = os.Rename(temp, name)
	}
	if err == nil {
		return nil
	}
	os.Remove(temp)
	var reason unix.Errno
	if errors.As(err, &reason) {
		err = fmt.Errorf("write %s: %w", name, reason) // the other name is gone
	}
	return err
}
