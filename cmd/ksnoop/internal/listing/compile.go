package listing

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// CompileOptions selects what to compile, and for which kernel.
type CompileOptions struct {
	Specs    target.Specs
	Programs target.Programs
	Kernel   target.Choice
	Format   string // one of Formats
}

// Compile prints the programs, maps and records of a unit.
func Compile(o *CompileOptions, s *term.Streams) error {
	if err := o.Programs.CheckTree(); err != nil {
		return err
	}
	out := newOutput(o.Format, s.Out)
	traces, err := o.Specs.Parse()
	if err != nil {
		return err
	}
	bound, err := o.Specs.Bind(traces, o.Kernel, &o.Programs, s.Err)
	if err != nil {
		return err
	}
	if bound.Kernel != nil {
		if bound.Plan.Probes, err = withoutRefusedOffsets(bound.Kernel, bound.Plan.Probes, s.Err); err != nil {
			return err
		}
	}
	unit, err := bound.Compile(&o.Programs, nil)
	if err != nil {
		return err
	}
	if err := o.Programs.CheckRate(unit); err != nil {
		return err
	}
	if out.json {
		out.object(newUnitObject(unit))
	} else {
		Describe(&out.text, unit)
	}
	return out.flush(s.Out, "the programs")
}

// withoutRefusedOffsets returns the probes without those at offsets where the running
// kernel allows no probe. As in trace, this is an error only if none is left.
func withoutRefusedOffsets(k *runtime.Kernel, probes []*compiler.Probe, stderr io.Writer) (allowed []*compiler.Probe, err error) {
	var refused []error
	for _, p := range probes {
		err := k.TryOffset(p)
		if errors.Is(err, os.ErrPermission) {
			fmt.Fprintf(stderr, "ksnoop: whether the kernel allows a probe at %s+%d is not known: %v\n", p.Func.Name, p.Offset, err)
			err = nil
		}
		if err != nil {
			refused = append(refused, err)
		} else {
			allowed = append(allowed, p)
		}
	}
	if len(allowed) == 0 {
		return nil, errors.Join(refused...)
	}
	WarnUntraced(stderr, refused)
	return allowed, nil
}

// Describe prints how each function is traced and why, then the records, maps
// and programs.
func Describe(w io.Writer, unit *compiler.Unit) {
	var choices Groups
	kinds := render.AttachKinds(unit)
	for _, p := range unit.Probes() {
		choices.Add(strings.Join(kinds[p], " and ")+": "+p.Attach.Reason, render.FunctionName(p.Func))
	}
	for _, choice := range choices.Keys {
		fmt.Fprintf(w, "%s: %s\n", some(choices.Names[choice]), choice)
	}
	layouts(w, unit)
	mapTable(w, unit)
	programs(w, unit)
}

// Groups collects names by a key, in the order in which the keys were first
// added.
type Groups struct {
	Keys  []string
	Names map[string][]string
}

// Add adds a name under a key.
func (g *Groups) Add(key, name string) {
	if g.Names == nil {
		g.Names = map[string][]string{}
	}
	if g.Names[key] == nil {
		g.Keys = append(g.Keys, key)
	}
	g.Names[key] = append(g.Names[key], name)
}

// mostNames is the largest number of names on one line.
const mostNames = 5

// some returns the first few of many names as text.
func some(names []string) string {
	if more := len(names) - mostNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), more)
	}
	return strings.Join(names, ", ")
}
