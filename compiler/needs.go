package compiler

import (
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// Needs is what is looked up of a kernel to bind specs.
type Needs struct {
	Types     []string // names, of functions too
	Members   []string // whose names are known to be followed
	Functions []string // whose code must be known
	Variants  []string // that change what is known of them: if there are types of these names, that takes the symbol table
}

// fewTraces are no more than this: what more of them need takes as long to cut
// out as to read all.
const fewTraces = 256

// FewNeeds lists what a few specs need, if that can be told before they are
// bound. Of a kernel that has all of it they become the same probes as of the
// whole one; an error may come of what is missing.
func FewNeeds(traces []*spec.Trace) (n Needs, ok bool) {
	if len(traces) > fewTraces {
		return Needs{}, false
	}
	n.Types = []string{"thread_union", "task_struct"} // see findStacks, findComm
	for _, t := range traces {
		if !n.add(t) {
			return Needs{}, false
		}
	}
	for _, names := range []*[]string{&n.Types, &n.Members, &n.Functions, &n.Variants} {
		slices.Sort(*names)
		*names = slices.Compact(*names) // a function there twice would be two
	}
	return n, true
}

func (n *Needs) add(t *spec.Trace) bool {
	name := t.Func.Name
	switch {
	case t.Probe != nil && asksNames(t), t.Module.Name != "", spec.IsGlob(name), kallsyms.Base(name) != name, indexedWrong(name):
		return false
	case t.Tracepoint:
		n.Types = append(n.Types, tracepointType+name)
		for _, prefix := range tracepointNames {
			n.Types = append(n.Types, prefix+name)
		}
	default:
		n.Types = append(n.Types, name, name+implSuffix)
		n.Functions = append(n.Functions, name)
		n.Variants = append(n.Variants, name+implSuffix)
	}
	if t.Probe != nil {
		n.Types = append(n.Types, returnsKnown...)
	}
	return !slices.ContainsFunc(t.AllItems(), func(item *spec.Item) bool { return !n.addItem(item) })
}

// addItem is false for what may be anywhere, such as variables and constants that
// any enum may have, and for what goes through structures without their names.
func (n *Needs) addItem(item *spec.Item) bool {
	ok := item.Pred == nil || item.Pred.Const.Kind != spec.Name || knownName(item.Pred.Const.Str)
	if item.Value == nil || item.Type != nil && strings.HasPrefix(item.Type.Name, "%") {
		return false
	}
	spec.Walk(item.Value, func(e spec.Expr) {
		switch e := e.(type) {
		case *spec.Member:
			n.Members = append(n.Members, e.Name.Name)
		case *spec.Cast:
			words := strings.Fields(e.Type.Name)
			n.Types = append(n.Types, words[len(words)-1])
		case *spec.Arg, *spec.Return, *spec.Builtin, *spec.Index, *spec.Deref, *spec.Memory, *spec.Register,
			*spec.StackPointer, *spec.StackSlot, *spec.ReturnAddress, *spec.Immediate, *spec.Old, *spec.AllArgs, *spec.Field:
		default:
			ok = false
		}
	})
	return ok
}

// knownName says whether a constant's name needs no enum.
func knownName(name string) bool {
	return errnos[name] != 0 || name == "NULL" || name == "true" || name == "false"
}
