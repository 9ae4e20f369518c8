// Package probes attaches the metric lines of probe files and reads what they count.
package probes

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/suite"
)

// Read reads probe files. Lines other than metrics and requirements are for ksnoop
// test, and do nothing here.
func Read(files []string) ([]*suite.Suite, error) {
	var all []*suite.Suite
	var errs []error
	taken := map[string]string{} // the line of each metric and of its series, by name
	for _, name := range ownNames {
		taken[prefix+name] = "the exporter itself"
	}
	for _, name := range files {
		text, err := readFile(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s, err := suite.Parse(name, text)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, check(s, taken))
		all = append(all, s)
	}
	return all, errors.Join(errs...)
}

// mostBytes is the largest size of a probe file.
const mostBytes = 16 << 20

func readFile(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("read the probe file: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the probe file: %w", err)
	case len(text) > mostBytes:
		return "", fmt.Errorf("read %s: a probe file has at most %d MB", name, mostBytes>>20)
	}
	return strings.TrimPrefix(string(text), "\ufeff"), nil // as ksnoop test reads it
}

// check refuses metrics that cannot be served.
func check(s *suite.Suite, taken map[string]string) error {
	if len(s.Metrics) == 0 {
		return fmt.Errorf("%s has no metric: write a line like: metric reads vfs_read($comm, count()) table", s.File)
	}
	var errs []error
	for _, m := range s.Metrics {
		at := place(m.From)
		if m.Scope != suite.System {
			errs = append(errs, fmt.Errorf("%s: %s has the scope of a command, and the exporter starts none: leave the scope out", at, m.Name))
		}
		var lowered *spec.Trace
		for _, t := range m.Path[len(m.Path)-1].AnyOf {
			var err error
			if lowered, err = lower(m.Kind, t); err != nil {
				errs = append(errs, fmt.Errorf("%s: %s: %w", at, m.Name, err))
				break
			}
		}
		errs = append(errs, take(taken, at, metricName(s, m), mayHave(metricName(s, m), m, lowered)))
	}
	return errors.Join(errs...)
}

// take notes that a line has a name and series, and refuses the line if another has one of
// them. Prometheus would take both for one metric, and the exporter could serve none.
func take(taken map[string]string, at, name string, series []string) (err error) {
	const line = "line " // the name of a line is not a series
	keys := append([]string{line + name}, series...)
	for _, key := range keys {
		if before := taken[key]; before != "" {
			err = fmt.Errorf("%s: %s is the metric of %s, too: rename the suite or the metric", at, strings.TrimPrefix(key, line), before)
			break
		}
	}
	for _, key := range keys {
		taken[key] = at
	}
	return err
}

func place(from spec.Source) string { return fmt.Sprintf("%s:%d", from.File, from.Line) }
