//go:build linux

package script

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// replaysKey is the key under which a script keeps whether its traces are replayed.
type replaysKey struct{}

// lookOptions maps the options of trace that replay needs to print the same to whether
// a value follows.
var lookOptions = map[string]bool{
	"-o": true, "--color": true, "--indent": true, "--sort": true, "--time": true, "--top": true,
	"--compact": false, "--emit-zeroes": false, "--no-header": false, "--no-strings": false,
	"--no-symbols": false, "--skip-names": false, "--summary": false,
}

// record makes the tracer with these arguments write a recording, too, if its traces
// are to be replayed. Other commands than trace, and tracers that lack the right to write
// files, do not.
func (t *tracer) record(ts *testscript.TestScript, command string, args []string) []string {
	if !ts.Value(replaysKey{}).(bool) || command != "trace" || slices.Contains(args, "--record") {
		return args
	}
	t.recording = ts.MkAbs(t.name + ".recording")
	options := args
	if i := slices.Index(args, "--"); i >= 0 {
		options = args[:i]
	}
	for i, arg := range options {
		switch value, known := lookOptions[arg]; {
		case value:
			t.look = append(t.look, arg, options[i+1])
		case known:
			t.look = append(t.look, arg)
		}
	}
	return append([]string{"--record", t.recording}, args...)
}

// replayed checks that replay prints of the recording what the tracer has printed.
func (t *tracer) replayed(ts *testscript.TestScript, out string) {
	if t.recording == "" {
		return
	}
	args := slices.Concat([]string{"replay"}, t.look, []string{t.recording})
	var printed, said bytes.Buffer
	replay := exec.Command(ksnoop, args...)
	replay.Stdout, replay.Stderr = &printed, &said
	if err := replay.Run(); err != nil {
		ts.Fatalf("ksnoop %s: %v\n%s", strings.Join(args, " "), err, &said)
	}
	shown, err := os.ReadFile(out)
	ts.Check(err)
	if !bytes.Equal(printed.Bytes(), shown) {
		ts.Fatalf("ksnoop %s prints\n%s\n\nand trace has printed\n%s", strings.Join(args, " "), &printed, shown)
	}
	ts.Check(os.Remove(t.recording))
}
