//go:build linux

package script

import (
	"os"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ksnoop/ksnoop/e2e/replaying"
)

// replaysKey is the key under which a script keeps whether its traces are replayed.
type replaysKey struct{}

// recordAll makes the scripts' ksnoop record and replay what it traces: the one that
// command exec finds, and that of command trace.
func recordAll(env *testscript.Env, on bool) {
	env.Values[replaysKey{}] = on
	if !on {
		return
	}
	env.Setenv("PATH", replaying.Dir+":"+env.Getenv("PATH"))
}

// record makes the tracer with these arguments write a recording, too, if its traces
// are to be replayed. Other commands than trace, and tracers that lack the right to write
// files, do not.
func (t *tracer) record(ts *testscript.TestScript, command string, args []string) []string {
	if !ts.Value(replaysKey{}).(bool) || command != "trace" || !replaying.Traces(append([]string{command}, args...)) {
		return args
	}
	t.recording, t.look = ts.MkAbs(t.name+".recording"), replaying.Look(args)
	return append([]string{"--record", t.recording}, args...)
}

// replayed checks that replay prints of the recording what the tracer has printed.
func (t *tracer) replayed(ts *testscript.TestScript, out string) {
	if t.recording == "" {
		return
	}
	shown, err := os.ReadFile(out)
	ts.Check(err)
	ts.Check(replaying.Same(t.recording, t.look, shown))
	ts.Check(os.Remove(t.recording))
}
