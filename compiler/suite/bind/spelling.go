package bind

import (
	"errors"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// Choose returns the trace that a spec of a probe file means on a kernel: the first whose
// function exists, or else that of the only copy of one. If there is none, it returns the
// first trace, and the error that says why its function was not found.
func Choose(spellings []*spec.Trace, target *compiler.Target) (*spec.Trace, error) {
	t, err := firstFound(spellings, target)
	if err != nil {
		if copied := onlyCopy(spellings, target); copied != nil && found(copied, target) == nil {
			return copied, nil
		}
	}
	return t, err
}

// firstFound returns the first trace whose function exists. If there is none, it
// returns the first trace, and the error that says why its function was not found.
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

// onlyCopy returns a trace of the only copy that the compiler has left of a function,
// such as f.isra.0, or nil if there is no such copy or several. The arguments of
// a copy may differ from those of the type, so the spec must not name any.
func onlyCopy(spellings []*spec.Trace, target *compiler.Target) *spec.Trace {
	for _, t := range spellings {
		if t.Line != nil || target.Symbols == nil || namesArguments(t) {
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

// namesArguments reports whether a trace uses an argument.
func namesArguments(t *spec.Trace) bool {
	names := t.Items == nil // nil means all of them
	for _, item := range t.AllItems() {
		item.Walk(func(e spec.Expr) {
			builtin, _ := e.(*spec.Builtin)
			_, arg := e.(*spec.Arg)
			names = names || arg || builtin != nil && strings.HasPrefix(builtin.Name.Name, "arg")
		})
	}
	return names
}

// found returns nil if the function exists, or one that the glob matches. Its error
// distinguishes a function without code from an unknown one.
func found(t *spec.Trace, target *compiler.Target) error {
	name := t.Func.Name
	if spec.IsGlob(name) {
		names, err := resolve.Names(t, target)
		if err == nil && len(names) == 0 {
			err = resolve.NoMatch(t)
		}
		return err
	}
	if t.Line != nil && (name == "" || target.Symbols != nil && len(target.Symbols.Lookup(name)) > 0) {
		return nil // at an address, or a function that BTF may not have
	}
	bare := *t // its arguments do not matter here
	bare.Items, bare.Cond = nil, nil
	_, err := resolve.FindFunction(&bare, target)
	if err == nil && t.Ending != nil {
		err = found(t.Ending, target)
	}
	return err
}

// Sentence returns the message of an error without the place, for a line of results.
func Sentence(err error) string {
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
