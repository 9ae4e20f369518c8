package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/codegen"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
	"github.com/ksnoop/ksnoop/compiler/suite/bind"
)

// subject holds the specs of one verdict: one spec, or those of an assertion.
type subject struct {
	name  string // unique
	text  string // the specs
	parts []part
	from  spec.Source // where the specs were written
	// unmet returns what the kernel lacks that the probe file requires, or "" if
	// nothing. release is "" if unknown. It is nil if nothing is required.
	unmet func(target *compiler.Target, release string) string
}

// part is a spec, or a call chain. Its last function may have a measure in place of
// events. Each function may have several spellings, of which the first that the kernel
// has is used.
type part struct {
	functions [][]*spec.Trace
	measure   compiler.Measure
	row       *spec.Item // the comparison that each row of its table is judged by, or nil
	probes    bool       // of a probe file, whose functions may be copies
}

// readSubjects returns the subjects to check: files of specs first, then the
// operands, memory to watch, and values. Equal specs are checked once.
func readSubjects(o *Options) ([]*subject, error) {
	s := &o.Specs
	traces, err := s.ParseFiles()
	errs := []error{err}
	all := specSubjects(traces)
	for _, text := range s.Texts {
		subjects, ok, err := probeFileSubjects(text)
		if !ok && err == nil {
			var t *spec.Trace
			if t, err = kprobe.ParseAny(text); err == nil {
				subjects = specSubjects([]*spec.Trace{t})
			}
		}
		errs = append(errs, err)
		all = append(all, subjects...)
	}
	others := []struct {
		command string
		texts   []string
		parse   func(string) (*spec.Trace, error)
	}{{"watch ", o.Watch, spec.ParseWatch}, {"print ", o.Print, spec.ParseValues}}
	for _, c := range others {
		for _, text := range c.texts {
			t, err := c.parse(text)
			errs = append(errs, err)
			if err == nil {
				all = append(all, namedSubject(c.command, t))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, exit.Usagef("there is nothing in %s: each line is empty, a comment or removed", strings.Join(s.Files, ", "))
	}
	return differentSubjects(all), nil
}

func specSubjects(traces []*spec.Trace) (all []*subject) {
	for _, t := range traces {
		one := part{functions: [][]*spec.Trace{{t}}}
		all = append(all, &subject{name: t.Text, text: t.Text, parts: []part{one}, from: t.From})
	}
	return all
}

// differentSubjects removes duplicates, and makes names unique. What equal lines of two
// probe files are about may differ in what the files require, or in what is measured.
func differentSubjects(all []*subject) (different []*subject) {
	texts, names := map[string]bool{}, map[string]int{}
	for _, s := range all {
		key := s.name + "\x00" + s.text
		if s.unmet != nil {
			key += "\x00" + s.from.File
		}
		if texts[key] {
			continue
		}
		texts[key] = true
		if names[s.name]++; names[s.name] > 1 {
			s.name = fmt.Sprintf("%s (%d)", s.name, names[s.name])
		}
		different = append(different, s)
	}
	return different
}

// traces returns all traces that a subject may stand for.
func (s *subject) traces() (all []*spec.Trace) {
	for _, p := range s.parts {
		all = append(all, slices.Concat(p.functions...)...)
	}
	return all
}

// check resolves and compiles a subject for a kernel.
func (s *subject) check(target *compiler.Target, release string) finding {
	if s.unmet != nil {
		if text := s.unmet(target, release); text != "" {
			return finding{reason: notMeant, text: text}
		}
	}
	all := finding{reason: fits}
	var texts []string
	for _, p := range s.parts {
		f := p.check(target)
		if all.reason == fits {
			all.reason = f.reason
		}
		all.functions += f.functions
		all.watch = f.watch
		all.notes = append(all.notes, f.notes...)
		if f.text != "" && !slices.Contains(texts, f.text) {
			texts = append(texts, f.text)
		}
	}
	all.text = strings.Join(texts, "; ")
	return all
}

// check checks a spec, or each function of a chain by itself and then the whole
// chain.
func (p part) check(kernel *compiler.Target) finding {
	var traces []*spec.Trace
	for _, spellings := range p.functions {
		t := spellings[0]
		if p.probes {
			t, _ = bind.Choose(spellings, kernel) // the error is found again below
		}
		traces = append(traces, t)
	}
	if len(traces) > 1 {
		for _, t := range traces {
			if _, err := compileAlone([]*spec.Trace{t}, compiler.NoMeasure, nil, kernel); err != nil {
				return explain(t, err, kernel)
			}
		}
	}
	plan, err := compileAlone(traces, p.measure, p.row, kernel)
	if err != nil {
		return explain(traces[len(traces)-1], err, kernel)
	}
	t := traces[0]
	if t.Watch {
		return watchFinding(plan)
	}
	if t.Values {
		return finding{reason: fits, notes: plan.Notes}
	}
	if spec.IsGlob(t.Func.Name) {
		return finding{reason: fits, functions: len(plan.Probes), text: target.AreFunctions(len(plan.Probes), t) + " traced"}
	}
	return finding{reason: fits, functions: len(plan.Probes), notes: plan.Notes}
}

// compileAlone resolves and compiles a spec, or a call chain, and the measurement of
// its last function. Unless row is nil, the rows of its table are judged by it.
func compileAlone(traces []*spec.Trace, measure compiler.Measure, row *spec.Item, kernel *compiler.Target) (*compiler.Plan, error) {
	w := resolve.Wishes{Chain: len(traces) > 1}
	if measure != compiler.NoMeasure {
		last := traces[len(traces)-1]
		w.Measures = map[*spec.Trace]compiler.Measure{last: measure}
		w.Rows = map[*spec.Trace]*spec.Item{last: row}
	}
	plan, err := resolve.All(traces, kernel, w)
	if err == nil {
		_, err = codegen.Compile(plan.Probes, compiler.Options{})
	}
	return plan, err
}
