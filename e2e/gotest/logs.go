package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// logs are the files that hold what the tests printed.
type logs struct {
	dir     string
	removed bool // whether to remove dir when the run passes
	open    map[string]*os.File
	names   map[string]bool
	err     error // the first
}

// newLogs returns logs in dir or, if that is empty, in a temporary directory.
func newLogs(dir string) (l *logs, err error) {
	l = &logs{dir: dir, open: map[string]*os.File{}, names: map[string]bool{}}
	if dir == "" {
		l.removed = true
		l.dir, err = os.MkdirTemp("", "ksnoop-test-*")
	} else {
		err = os.MkdirAll(dir, 0o777)
	}
	if err != nil {
		return nil, fmt.Errorf("make the directory of the logs: %w", err)
	}
	return l, nil
}

// add appends to the log of a package what an event says, and removes the log if
// the package passed.
func (l *logs) add(e event) {
	switch {
	case e.Action == "output":
		l.write(e.Package, e.Output)
	case e.Test == "" && (e.Action == string(passed) || e.Action == string(skipped)):
		if f := l.open[e.Package]; f != nil {
			l.keep(errors.Join(f.Close(), os.Remove(f.Name())))
			delete(l.open, e.Package)
		}
	}
}

// write appends to the log of a package.
func (l *logs) write(pkg, text string) {
	f := l.open[pkg]
	if f == nil {
		var err error
		if f, err = os.Create(l.path(pkg)); err != nil {
			l.keep(err)
			return
		}
		l.open[pkg] = f
	}
	_, err := f.WriteString(text)
	l.keep(err)
}

// finish writes the output of failed builds and of failed tests, closes all logs
// and sets those of the failures.
func (l *logs) finish(r *testRun, failures []failure) error {
	for _, p := range r.packages {
		if build := r.buildOutput(p); build != "" {
			l.write(p.path, build)
		}
	}
	for _, f := range l.open {
		l.keep(f.Close())
	}
	for i := range failures {
		f := &failures[i]
		if f.output != "" {
			f.log = l.path(f.test)
			l.keep(os.WriteFile(f.log, []byte(f.output), 0o666))
		} else if log := l.open[f.pkg]; log != nil {
			f.log = log.Name()
		}
	}
	if l.err != nil {
		return fmt.Errorf("write the logs: %w", l.err)
	}
	return nil
}

// remove removes the directory if it is a temporary one.
func (l *logs) remove() {
	if l.removed {
		os.RemoveAll(l.dir)
	}
}

// path returns the path of a new log of a package or test. A second one of the
// same name has a number.
func (l *logs) path(of string) string {
	name := logName(of)
	for n := 2; l.names[name]; n++ {
		name = fmt.Sprintf("%s-%d", logName(of), n)
	}
	l.names[name] = true
	return filepath.Join(l.dir, name+".log")
}

// logName returns the name of a file, without its extension, for a package or a
// test.
func logName(of string) string {
	const longest = 200
	name := strings.Map(func(r rune) rune {
		if r == '/' || r == filepath.Separator || r == 0 {
			return '-'
		}
		return r
	}, strings.TrimPrefix(of, "./"))
	if len(name) > longest {
		name = strings.ToValidUTF8(name[:longest], "")
	}
	if name == "" {
		return "output"
	}
	return name
}

func (l *logs) keep(err error) {
	if l.err == nil {
		l.err = err
	}
}
