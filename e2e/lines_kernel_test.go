//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	tracefs      = "/sys/kernel/tracing"
	traceBuffer  = tracefs + "/instances/ksnoop_lines"
	dynamicLines = tracefs + "/dynamic_events"
)

// kernelEvents are events that are defined by lines of the kernel's own tracer.
// They have their own trace buffer.
type kernelEvents struct{ dirs []string }

func newEvents(t *testing.T) *kernelEvents {
	require.NoError(t, os.Mkdir(traceBuffer, 0o755))
	e := &kernelEvents{}
	t.Cleanup(func() {
		e.disable(t)
		require.NoError(t, os.Remove(traceBuffer))
		for _, dir := range e.dirs {
			require.NoError(t, appendLine(dynamicLines, "-:"+groupEvent(dir)))
		}
	})
	return e
}

// groupEvent returns the last two names of an event's directory: GROUP/EVENT.
func groupEvent(dir string) string {
	return filepath.Base(filepath.Dir(dir)) + "/" + filepath.Base(dir)
}

// define defines an event and records it where a filter is true.
func (e *kernelEvents) define(t *testing.T, line, filter string) {
	if err := appendLine(dynamicLines, line); err != nil {
		log, _ := os.ReadFile(tracefs + "/error_log")
		t.Fatalf("%s: %v\n%s", line, err, log)
	}
	dirs, err := filepath.Glob(filepath.Join(traceBuffer, "events", "*", eventName(line)))
	require.NoError(t, err)
	require.Len(t, dirs, 1, line)
	e.dirs = append(e.dirs, dirs[0])
	require.NoError(t, appendLine(filepath.Join(dirs[0], "filter"), filter), "%s if %s", line, filter)
	require.NoError(t, appendLine(filepath.Join(dirs[0], "enable"), "1"), line)
}

// disable stops the recording of the events.
func (e *kernelEvents) disable(t *testing.T) {
	for _, dir := range e.dirs {
		require.NoError(t, appendLine(filepath.Join(dir, "enable"), "0"))
	}
}

// read stops the recording and returns the lines of the events.
func (e *kernelEvents) read(t *testing.T) string {
	e.disable(t)
	text, err := os.ReadFile(traceBuffer + "/trace")
	require.NoError(t, err)
	return string(text)
}

// eventNumber matches the number of an event in its format.
var eventNumber = regexp.MustCompile(`(?m)^ID: .*\n`)

// formats returns the formats that the kernel shows for some of the events, without
// their numbers. As on most kernels, arrays have no length; on 5.10 they have one.
func (e *kernelEvents) formats(t *testing.T, names []string) string {
	var all []string
	for _, dir := range e.dirs {
		if !slices.Contains(names, filepath.Base(dir)) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, "format"))
		require.NoError(t, err)
		all = append(all, eventNumber.ReplaceAllString(string(text), ""))
	}
	return length.ReplaceAllString(strings.Join(all, "\n"), "[];")
}

// eventName returns NAME of a line p:group/NAME place.
func eventName(line string) string {
	head, _, _ := strings.Cut(line, " ")
	_, name, _ := strings.Cut(head, ":")
	return name[strings.Index(name, "/")+1:]
}

// appendLine writes a line to a file of tracefs.
func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
