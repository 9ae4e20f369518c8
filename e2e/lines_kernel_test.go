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

	"github.com/ksnoop/ksnoop/e2e/feature"
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

// differences has lines on which docs/kprobe-events.md says that the kernel and ksnoop
// differ, perhaps with a filter, and the first version that accepts them. That of lines
// that none accepts is later than all.
var differences = []struct {
	line, filter string
	since        [2]int
}{
	{line: "p:differs vfs_read n=$arg3:u8", filter: "n == 263"},
	{line: "r:differs vfs_read n=$retval:u32", filter: "n < 0"},
	{line: "p:differs vfs_read file->f_flags", since: [2]int{6, 12}},
	{line: "p:differs vfs_read f=file->f_path", since: [2]int{6, 12}},
	{line: "p:differs vfs_read name=file->f_path.dentry->d_name.name:string[1]", since: [2]int{6, 12}},
	{line: "p:differs vfs_read f=$arg1->f_flags", since: never},
	{line: "p:differs vfs_read f=file.f_flags", since: never},
	{line: `p:differs vfs_read text=\"a b"`, since: never},
	{line: "p:differs vfs_read x=+" + strings.Repeat("0", 55) + "($arg1)"},
	{line: "p:differs vfs_read x=+" + strings.Repeat("0", 56) + "($arg1)", since: never},
	{line: "p:differs vfs_write x=+u0($arg2):u8[2]", since: never},
	{line: "p:differs vfs_write x=+0($arg2):u8[2]"},
	{line: "p:differs vfs_write x=+u0($arg2):string[2]"},
	{line: "p:differs vfs_write x=$arg2:string", since: never},
	{line: "p:differs vfs_write x=+0($arg4):u8[2]", filter: "x == 0"},
	{line: "p:differs vfs_read $comm", filter: "arg1 == init", since: never},
	{line: "p:differs vfs_read $comm", filter: `arg1 ~ "[^a-e]d"`},
	{line: "p:differs vfs_read", filter: "common_type && common_flags && common_preempt_count", since: never},
	{line: "p:differs vfs_read", filter: "common_type != 0 && common_flags != 0 && common_preempt_count != 0"},
	{line: "p:differs nosuchmodule:nosuchfunction"},
	{line: "p:differs nosuchmodule:nosuchfunction $arg1", since: never},
	{line: "p:differs vfs_read x=+1099511627776($arg1)"},
	{line: "t:differs sched_switch $stack", since: [2]int{6, 12}},
}

var never = [2]int{99, 0}

// testDifferences checks what the kernel accepts.
func testDifferences(t *testing.T) {
	for _, d := range differences {
		if d.line[0] == 't' && !feature.Has("kprobe.multi") {
			continue // it takes CONFIG_FPROBE
		}
		err := appendLine(dynamicLines, d.line)
		if err == nil {
			if d.filter != "" {
				dirs, globbed := filepath.Glob(tracefs + "/events/*/differs")
				require.NoError(t, globbed)
				require.Len(t, dirs, 1, d.line)
				err = appendLine(dirs[0]+"/filter", d.filter)
			}
			require.NoError(t, appendLine(dynamicLines, "-:differs"))
		}
		require.Equal(t, !kernelBefore(t, d.since[0], d.since[1]), err == nil, "%s if %s: %v", d.line, d.filter, err)
	}
}
