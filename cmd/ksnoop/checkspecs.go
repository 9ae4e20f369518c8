package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
)

// checkSubject is what is checked as one: a spec, or those of an assertion.
type checkSubject struct {
	name  string // no other has it
	text  string // the specs
	parts []checkPart
	from  spec.Source // where it was written
	// unmet says what a kernel lacks that the file of probes requires, "" if
	// nothing. release is "" if it is not known. nil: nothing is required.
	unmet func(target *compiler.Target, release string) string
}

// checkPart is a spec, or a call chain. Of each function there may be several
// spellings, of which the first that the kernel has is meant.
type checkPart struct{ functions [][]*spec.Trace }

// checkSubjects reads what there is to check: files of specs first, then the
// operands. Of specs that are the same one is checked.
func checkSubjects(c *invocation) ([]*checkSubject, error) {
	traces, err := parseFiles(c)
	errs := []error{err}
	all := specSubjects(traces)
	for _, text := range c.operands {
		subjects, ok, err := probeFileSubjects(text)
		if !ok && err == nil {
			subjects, err = specSubject(text)
		}
		errs = append(errs, err)
		all = append(all, subjects...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, usagef("there is nothing in %s: each line is empty, a comment or taken back", strings.Join(c.Strings("file"), ", "))
	}
	return differentSubjects(all), nil
}

func specSubject(text string) ([]*checkSubject, error) {
	t, err := kprobe.ParseAny(text)
	if err != nil {
		return nil, err
	}
	return specSubjects([]*spec.Trace{t}), nil
}

func specSubjects(traces []*spec.Trace) []*checkSubject {
	var all []*checkSubject
	for _, t := range traces {
		part := checkPart{[][]*spec.Trace{{t}}}
		all = append(all, &checkSubject{name: t.Text, text: t.Text, parts: []checkPart{part}, from: t.From})
	}
	return all
}

// differentSubjects leaves out what was there before, and tells apart what has
// one name.
func differentSubjects(all []*checkSubject) []*checkSubject {
	var different []*checkSubject
	texts, names := map[string]bool{}, map[string]int{}
	for _, s := range all {
		key := s.name + "\x00" + s.text
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

// traces is all that a subject may mean.
func (s *checkSubject) traces() (all []*spec.Trace) {
	for _, p := range s.parts {
		all = append(all, slices.Concat(p.functions...)...)
	}
	return all
}

// check resolves and compiles a subject for a kernel.
func (s *checkSubject) check(target *compiler.Target, release string) finding {
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
		all.notes = append(all.notes, f.notes...)
		if f.text != "" && !slices.Contains(texts, f.text) {
			texts = append(texts, f.text)
		}
	}
	all.text = strings.Join(texts, "; ")
	return all
}

// check checks a spec, or each function of a chain by itself and then all.
func (p checkPart) check(target *compiler.Target) finding {
	var traces []*spec.Trace
	for _, spellings := range p.functions {
		t, _ := firstFound(spellings, target) // the error is found again
		traces = append(traces, t)
	}
	if len(traces) > 1 {
		for _, t := range traces {
			if _, err := compileAlone([]*spec.Trace{t}, target); err != nil {
				return explain(t, err, target)
			}
		}
	}
	plan, err := compileAlone(traces, target)
	if err != nil {
		return explain(traces[len(traces)-1], err, target)
	}
	t := traces[0]
	if spec.IsGlob(t.Func.Name) {
		return finding{reason: fits, functions: len(plan.Probes), text: areFunctions(len(plan.Probes), t.Tracepoint) + " traced"}
	}
	return finding{reason: fits, functions: len(plan.Probes), notes: plan.Notes}
}

// compileAlone resolves and compiles a spec, or a call chain.
func compileAlone(traces []*spec.Trace, target *compiler.Target) (*compiler.Plan, error) {
	plan, err := compiler.ResolveAll(traces, target, compiler.Wishes{Stack: len(traces) > 1})
	if err == nil {
		_, err = compiler.Compile(plan.Probes, compiler.Options{Arch: target.Arch, Features: target.Features, RingBytes: defaultRing})
	}
	return plan, err
}
