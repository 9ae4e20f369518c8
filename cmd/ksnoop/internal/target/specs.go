package target

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/codegen"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
	"github.com/ksnoop/ksnoop/runtime"
)

// Specs holds the specs of a command line, or where to read them.
type Specs struct {
	Files    []string           // - is standard input
	Texts    []string           // on the command line itself
	In       io.Reader          // standard input
	Conds    []spec.Cond        // conditions for all specs, besides their own
	Commands []string           // command names, one of which the first spec may have been meant for
	Watch    bool               // whether Texts name memory to watch
	Stack    bool               // whether the callers of the function that writes to it are shown
	Follow   *resolve.Following // how to follow the objects that the spec chooses, or nil if calls are traced
	Objects  int                // number of objects to watch, each found by a call, or 0 for one
}

// Parse parses all specs of a command line, those in files first, and returns the
// errors of all.
func (s *Specs) Parse() ([]*spec.Trace, error) {
	traces, err := s.ParseFiles()
	errs := []error{err}
	for _, text := range s.Texts {
		t, err := s.parse(text)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		traces = append(traces, t)
	}
	if len(traces) == 0 && errors.Join(errs...) == nil {
		errs = append(errs, exit.Usagef("there is nothing in %s: each line is empty, a comment or removed", strings.Join(s.fileNames(), ", ")))
	}
	addConditions(s.Conds, traces)
	return traces, errors.Join(errs...)
}

// parse parses one of Texts.
func (s *Specs) parse(text string) (*spec.Trace, error) {
	if !s.Watch {
		return kprobe.ParseAny(text)
	}
	t, err := spec.ParseWatch(text)
	if err == nil && s.Stack {
		t.WithStack()
	}
	return t, err
}

// Bound is a set of specs bound to a kernel.
type Bound struct {
	Plan   *compiler.Plan
	Target *compiler.Target
	Kernel *runtime.Kernel // nil unless Target is the running kernel
}

// Bind binds traces to a kernel, and prints notes on what may surprise.
func (s *Specs) Bind(traces []*spec.Trace, c Choice, p *Programs, stderr io.Writer) (*Bound, error) {
	if err := s.checkIterators(traces, p); err != nil {
		return nil, err
	}
	b := &Bound{}
	var err, misfit error
	if s.Follow != nil {
		err = b.follow(traces[0], *s.Follow)
	} else {
		wanted := append(slices.Clip(traces), ObjectEnds(traces)...)
		b.Kernel, err = c.Open(wanted, func(target *compiler.Target) bool {
			b.Target = target
			b.Plan, misfit = s.resolve(traces, target, p)
			return resolve.Settled(misfit, target)
		})
	}
	if err := cmp.Or(err, misfit); err != nil {
		return nil, err
	}
	describePlan(stderr, traces, b.Plan)
	return b, nil
}

// follow binds a spec that chooses objects, and how to follow them, to the running kernel.
func (b *Bound) follow(t *spec.Trace, f resolve.Following) (err error) {
	if b.Kernel, err = runtime.OpenKernel(); err != nil {
		return err
	}
	if b.Target, err = b.Kernel.TargetFollowing(t, f); err != nil {
		return err
	}
	b.Plan, err = resolve.Follow(t, f, b.Target)
	return err
}

// ObjectEnds returns traces of the functions of which one ends an object that the
// traces watch, to find their symbols.
func ObjectEnds(traces []*spec.Trace) (ends []*spec.Trace) {
	if slices.ContainsFunc(traces, func(t *spec.Trace) bool { return t.Watch && !t.Values }) {
		for _, name := range resolve.EndFunctions() {
			ends = append(ends, &spec.Trace{Func: spec.Ident{Name: name}})
		}
	}
	return ends
}

func (s *Specs) resolve(traces []*spec.Trace, target *compiler.Target, p *Programs) (*compiler.Plan, error) {
	// As in the classic ksnoop, a chain of one function is not a chain.
	w := resolve.Wishes{Chain: p.Chain && len(traces) > 1, Attach: p.Attach, Objects: s.Objects}
	plan, err := resolve.All(traces, target, w)
	switch {
	case err == nil:
	case plan != nil && w.Attach != "": // the specs fit, but not with --attach
		err = exit.Misuse(err)
	case plan == nil:
		err = s.meantCommand(err, traces, target)
	}
	return plan, err
}

// commandHabits has commands of gdb, perf and trace-cmd, with those that do the same here.
const commandHabits spec.Habits = `
print: p x display
info: ptype whatis
replay: report script
`

// meantCommand returns err with a hint in the error about the first word, if that is not
// a function of the kernel but resembles a command.
func (s *Specs) meantCommand(err error, traces []*spec.Trace, target *compiler.Target) error {
	var first *spec.Error
	if len(s.Files) > 0 || s.Watch || !errors.As(err, &first) || first.Text != s.Texts[0] {
		return err
	}
	near := commandHabits.Meaning(first.Text)
	ok := near != ""
	if !ok {
		near, ok = spec.Nearest(first.Text, slices.Values(s.Commands))
	}
	if !ok {
		return err
	}
	if _, unknown := resolve.FindFunction(traces[0], target); unknown == nil {
		return err
	}
	if near == first.Text {
		first.AddHint("if %s was meant as a command: it is the first word, as in ksnoop %s", near, near)
	} else {
		first.AddHint("if %s was meant as a command: did you mean '%s'?", first.Text, near)
	}
	return err
}

// Compile compiles what is bound. k, unless nil, is the running kernel, whose ids for
// the processes are then looked up.
func (b *Bound) Compile(p *Programs, k *runtime.Kernel) (*compiler.Unit, error) {
	opts, err := p.options(b.Target)
	if err != nil {
		return nil, err
	}
	if k != nil {
		if err := k.FindProcesses(&opts); errors.Is(err, unix.ESRCH) {
			return nil, exit.Misuse(err)
		} else if err != nil {
			return nil, err
		}
	}
	return codegen.Compile(b.Plan.Probes, opts)
}

// maxSpecs is the largest size of a file of specs in bytes.
const maxSpecs = 16 << 20

// ParseFiles parses the files with specs. A file continues where the one before it
// has ended.
func (s *Specs) ParseFiles() (traces []*spec.Trace, err error) {
	var errs []error
	stdin := s.In
	for _, name := range s.Files {
		text, err := ReadSpecs(name, stdin)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		probes := IsProbeFile(text)
		switch {
		case name == "-" && probes:
			return nil, exit.Usagef("standard input is a probe file, not a file of specs: write ksnoop test -")
		case name == "-":
			name, stdin = "standard input", nil
		case probes:
			return nil, exit.Usagef("%s is a probe file, not a file of specs: write ksnoop test %s or ksnoop check %[1]s", name, name)
		}
		traces, err = kprobe.ParseFile(name, text, traces...)
		errs = append(errs, err)
	}
	return traces, errors.Join(errs...)
}

// fileNames returns the names of the files for messages.
func (s *Specs) fileNames() (names []string) {
	for _, name := range s.Files {
		if name == "-" {
			name = "standard input"
		}
		names = append(names, name)
	}
	return names
}

// IsProbeFile reports whether a text is that of a probe file: the first line that is not
// empty or a comment begins as theirs.
func IsProbeFile(text string) bool {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if words := strings.Fields(line); len(words) > 0 {
			return words[0] == "ksnoop-probes"
		}
	}
	return false
}

// ReadSpecs returns the text of a file, or of stdin, which is nil once it has been
// read. A byte order mark, with which some editors begin a file, is no part of it.
func ReadSpecs(name string, stdin io.Reader) (string, error) {
	in := stdin
	switch {
	case name == "-" && stdin == nil:
		return "", exit.Usagef("--file - is given twice, and standard input can be read once")
	case name == "":
		return "", exit.Usagef("the name of the probe file is empty: as in ksnoop test tcp.probes")
	case name != "-":
		f, err := os.Open(name)
		if err != nil {
			return "", exit.Usagef("read specs: %w", err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxSpecs+1))
	if err == nil && len(text) > maxSpecs {
		err = fmt.Errorf("read %s: there are more than %d MB", name, maxSpecs>>20)
	}
	if err != nil {
		return "", exit.Usagef("read specs: %w", err)
	}
	return strings.TrimPrefix(string(text), "\ufeff"), nil
}
