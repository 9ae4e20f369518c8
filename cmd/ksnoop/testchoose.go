package main

import (
	"errors"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// choose finds the functions that this kernel has.
func (c *counted) choose(target *compiler.Target) {
	for _, side := range c.sides {
		for _, s := range side.path {
			t, err := firstFound(s.AnyOf, target)
			if err != nil {
				if copied := onlyCopy(s.AnyOf, target); copied != nil && found(copied, target) == nil {
					t, err = copied, nil
				}
			}
			if err != nil && c.skip == "" {
				c.skip = sentence(err)
			}
			side.traces = append(side.traces, t)
		}
	}
}

// firstFound is the first trace whose function there is; without one, the first
// and why it is not there.
func firstFound(spellings []*spec.Trace, target *compiler.Target) (*spec.Trace, error) {
	var first error
	for _, t := range spellings {
		err := found(t, target)
		if err == nil {
			return t, nil
		}
		if first == nil {
			first = err
		}
	}
	return spellings[0], first
}

// onlyCopy is a trace of the copy of a function that is all that the compiler
// has left of it, such as f.isra.0. Its arguments may differ from those of the
// type, so a spec must not name any; nil: there is no such copy, or several.
func onlyCopy(spellings []*spec.Trace, target *compiler.Target) *spec.Trace {
	for _, t := range spellings {
		if t.Probe != nil || target.Symbols == nil || namesArguments(t) {
			continue
		}
		if copies := target.Symbols.Suffixed(t.Func.Name); len(copies) == 1 {
			copied := *t
			copied.Func.Name = copies[0].Name
			return &copied
		}
	}
	return nil
}

// namesArguments says whether anything of a trace is about an argument.
func namesArguments(t *spec.Trace) bool {
	names := t.Items == nil // all of them
	for _, item := range t.AllItems() {
		spec.Walk(item.Value, func(e spec.Expr) {
			builtin, _ := e.(*spec.Builtin)
			_, arg := e.(*spec.Arg)
			names = names || arg || builtin != nil && strings.HasPrefix(builtin.Name.Name, "arg")
		})
	}
	return names
}

// found says whether there is a function, or one that a glob means; its error
// tells one without code from one that is not known.
func found(t *spec.Trace, target *compiler.Target) error {
	name := t.Func.Name
	if spec.IsGlob(name) {
		names, err := compiler.Names(t, target)
		if err == nil && len(names) == 0 {
			err = compiler.NoMatch(t)
		}
		return err
	}
	if t.Probe != nil && (name == "" || target.Symbols != nil && len(target.Symbols.Lookup(name)) > 0) {
		return nil // at an address, or what BTF may not know
	}
	bare := *t // what its arguments are is another question
	bare.Items, bare.Cond = nil, nil
	_, err := compiler.FindFunction(&bare, target)
	return err
}

// sentence is an error without the place, for a line of results.
func sentence(err error) string {
	var refused *spec.Error
	if !errors.As(err, &refused) {
		return strings.ReplaceAll(err.Error(), "\n", " ")
	}
	text := refused.Msg
	if refused.Hint != "" {
		text += "; " + strings.ReplaceAll(refused.Hint, "\n", "; ")
	}
	return text
}
