package run

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// ShownValues returns a function that parses a value of --show, a list of items, and
// returns those of before with it added.
func ShownValues(before *[]*spec.Trace) func(option, text string) ([]*spec.Trace, error) {
	return func(option, text string) ([]*spec.Trace, error) {
		if strings.TrimSpace(text) == "" {
			return nil, exit.Usagef("--%s has no value: ksnoop follow --help explains it", option)
		}
		t, err := spec.ParseItems(text)
		if err != nil {
			return nil, err
		}
		return append(*before, t), nil
	}
}

// Follow shows the calls that get the objects of Specs.Follow. It ends when these have
// ended, or for the same reasons as Trace.
func Follow(o *Options, s *term.Streams) error {
	if n := len(o.Specs.Texts); n > 1 {
		return exit.Usagef("follow takes one spec, and there are %d: options begin with a dash", n)
	}
	o.Specs.Follow.Modules = runtime.LoadedModules()
	return Trace(o, s)
}

// describeFollowing prints how many functions are looked at for objects that are
// followed, and if verbose, which are not.
func describeFollowing(o *Options, plan *compiler.Plan, stderr io.Writer) {
	if o.Specs.Follow == nil {
		return
	}
	functions := map[*compiler.Function]bool{}
	for _, p := range plan.Probes {
		if !p.Func.Tracepoint || p.Follow.Role == compiler.Starts {
			functions[p.Func] = true
		}
	}
	left := ""
	if n := len(plan.Unfollowed); n > 0 {
		left = fmt.Sprintf("; %d that take it cannot be", n)
		if !o.Verbose {
			left += " (-v lists them)"
		}
	}
	fmt.Fprintf(stderr, "ksnoop: %s traced for struct %s%s\n", target.AreFunctions(len(functions), &spec.Trace{}),
		plan.Probes[0].Follow.Type.TypeName(), left)
	if !o.Verbose {
		return
	}
	for _, function := range plan.Unfollowed {
		fmt.Fprintf(stderr, "ksnoop: not traced: %s\n", render.PlainName(function))
	}
}

// awaitsEnds reports whether all objects of -n are followed and some have not ended.
// The kernel frees much of a process some time after its end.
func (t *tracing) awaitsEnds(session *runtime.Session) bool {
	begun, live, err := session.Objects()
	return err == nil && t.objects > 0 && begun >= t.objects && len(live) > 0
}

// untilEnded delivers events until n objects have been followed to their end.
type untilEnded struct {
	objectSource
	objects int
	ended   []uint64 // objects whose end was read, and which may be followed still
}

// objectSource delivers the events of objects, and tells which are followed.
type objectSource interface {
	eventSource
	Objects() (begun int, live []uint64, err error)
	Stop() error
}

func (u *untilEnded) Read(ev *runtime.Event) error {
	begun, live, err := u.Objects()
	u.ended = slices.DeleteFunc(u.ended, func(number uint64) bool { return !slices.Contains(live, number) })
	goesOn := func(number uint64) bool { return !slices.Contains(u.ended, number) }
	if err == nil && begun >= u.objects && !slices.ContainsFunc(live, goesOn) {
		err = u.Stop() // what has been written is still read
	}
	if err == nil {
		err = u.objectSource.Read(ev)
	}
	if err == nil && ev.Probe.Follow.Ending() {
		u.ended = append(u.ended, ev.Object.Number)
	}
	return err
}

// allEnded reports whether objects were followed and none is any more. If the record of the
// last end was lost, nothing else wakes a reader that waits for it.
func allEnded(session interface {
	Objects() (begun int, live []uint64, err error)
}) bool {
	begun, live, err := session.Objects()
	return err == nil && begun > 0 && len(live) == 0
}
