package resolve

import (
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// Needs lists what must be looked up in a kernel to bind specs.
type Needs struct {
	Globs       []*spec.Trace // globs of functions and tracepoints, which [Needs.Expand] replaces by what they match
	Types       []string      // names of types and functions
	Members     []string      // names of the members to follow
	Enumerators []string      // names that may be those of enumerators
	Functions   []string      // functions whose code must be known
	Variables   []string      // variables whose addresses must be known
	Variants    []string      // if types with these names exist, they change what is known of the functions, and the symbol table is needed
}

// fewTraces is the largest number of traces for which a part of BTF is
// extracted. For 500 it takes as long as reading all of BTF, but several MB less
// memory.
const fewTraces = 1024

// fewMatches is the same for the functions that globs match.
const fewMatches = 500

// FewNeeds lists what a few specs need, if that can be told before they are
// bound. A kernel reduced to these needs yields the same probes as the whole
// one if it has all of them; otherwise binding may fail.
func FewNeeds(traces []*spec.Trace) (n Needs, ok bool) {
	if len(traces) > fewTraces {
		return Needs{}, false
	}
	n.Types = []string{"thread_union", "task_struct"} // see findStacks, FindComm
	for _, t := range traces {
		if !n.add(t) {
			return Needs{}, false
		}
	}
	n.sort()
	return n, true
}

// Settled reports whether an error, with which specs do not fit a target, is the same if they
// are bound to the whole kernel of which the target has only the needs: if it is about a name,
// of which a part has all that is said.
func Settled(err error, target *compiler.Target) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		settled := true
		for _, e := range joined.Unwrap() {
			settled = settled && Settled(e, target)
		}
		return settled
	}
	var refused *spec.Error
	if !errors.As(err, &refused) {
		return err == nil
	}
	switch refused.Kind {
	case spec.NoFunction, spec.NoTracepoint:
		return target.TypeNames != nil
	case spec.NoMember, spec.NoArgument, spec.NamesInHint, spec.NoResult:
		return true
	}
	return false
}

// sort sorts all names, and removes those that are listed twice: a function would count
// as two.
func (n *Needs) sort() {
	for _, names := range []*[]string{&n.Types, &n.Members, &n.Enumerators, &n.Functions, &n.Variables, &n.Variants} {
		slices.Sort(*names)
		*names = slices.Compact(*names)
	}
}

// Expand adds the types of what the globs match. names lists the names of vmlinux of a
// kind ([FuncKind] or [TypedefKind]) that have a prefix. It returns false if the globs match
// so much that all types are needed.
func (n *Needs) Expand(names func(kind, prefix string) iter.Seq[string]) bool {
	found := 0
	for _, t := range n.Globs {
		kind, prefix, types := FuncKind, "", namesOfFunction
		if t.Tracepoint {
			kind, prefix, types = TypedefKind, tracepointType, namesOfTracepoint
		}
		for name := range names(kind, prefix+spec.GlobPrefix(t.Func.Name)) {
			name = name[len(prefix):]
			if !spec.IsName(name) || !spec.Matches(t.Func.Name, name) {
				continue
			}
			if found++; found > fewMatches {
				return false
			}
			n.Types = append(n.Types, types(name)...)
		}
	}
	n.sort()
	return true
}

// namesOfFunction lists the names in BTF of a function.
func namesOfFunction(name string) []string { return []string{name, name + implSuffix} }

// namesOfTracepoint lists the names in BTF of a tracepoint.
func namesOfTracepoint(name string) []string {
	types := []string{tracepointType + name}
	for _, prefix := range TracepointNames {
		types = append(types, prefix+name)
	}
	return types
}

// otherWords lists the names in BTF that decide what is said of a name that is neither a
// function nor a tracepoint, see [otherWord].
func otherWords(name string) (types []string) {
	types = []string{tracepointType + name}
	for _, arch := range compiler.Arches {
		types = append(types, syscallFunction(arch, name))
	}
	if strings.HasPrefix(name, "sys_e") {
		types = append(append(types, namesOfTracepoint("sys_enter")...), namesOfTracepoint("sys_exit")...)
	}
	return types
}

func (n *Needs) add(t *spec.Trace) bool {
	name := t.Func.Name
	switch {
	case t.Watch && !t.Values: // all functions that end objects
		return false
	case t.Values:
	case t.Line != nil && asksNames(t), t.Module.Name != "", spec.IsGlob(name) && (t.Line != nil || t.Iterator), kallsyms.Base(name) != name, indexedWrong(name):
		return false
	case spec.IsGlob(name):
		n.Globs = append(n.Globs, t)
	case t.Tracepoint:
		n.Types = append(append(n.Types, namesOfTracepoint(name)...), otherWords(name)...)
	case t.Iterator:
		n.Types = append(n.Types, iteratorType+name)
	default:
		n.Types = append(append(n.Types, namesOfFunction(name)...), otherWords(name)...)
		n.Functions = append(n.Functions, name)
		n.Variants = append(n.Variants, name+implSuffix)
	}
	if t.Line != nil {
		n.Types = append(n.Types, returnsKnown...)
	}
	if slices.ContainsFunc(t.AllItems(), func(item *spec.Item) bool { return !n.addItem(item) }) {
		return false
	}
	return t.Ending == nil || n.add(t.Ending)
}

// addItem adds what an item needs. It returns false if that cannot be told, or if the
// item goes through structures without naming their members.
func (n *Needs) addItem(item *spec.Item) bool {
	ok := true
	if item.Pred != nil {
		n.addConstant(item.Pred.Const)
	}
	if item.Value == nil || item.Type != nil && strings.HasPrefix(item.Type.Name, "%") {
		return false
	}
	if item.Format.Name == "path" {
		n.Types = append(n.Types, pathTypes...)
	}
	item.Walk(func(e spec.Expr) {
		switch e := e.(type) {
		case *spec.Builtin:
			if e.Name.Name == "ppid" {
				n.Members = append(n.Members, parentMembers...)
			}
		case *spec.Member:
			n.Members = append(n.Members, e.Name.Name)
		case *spec.Global:
			n.Types = append(n.Types, e.Name.Name)
			n.Variables = append(n.Variables, symbolsOf(e)...)
		case *spec.Cast:
			words := strings.Fields(e.Type.Name)
			n.Types = append(n.Types, words[len(words)-1])
			if words[0] == "enum" { // one without a name is called by an enumerator
				n.Enumerators = append(n.Enumerators, words[len(words)-1])
			}
		case *spec.Binary:
			for _, x := range []spec.Expr{e.X, e.Y} {
				if arg, ok := x.(*spec.Arg); ok { // or an enumerator
					n.Enumerators = append(n.Enumerators, arg.Name.Name)
				}
			}
		case *spec.Aggregate:
			for _, c := range e.Bounds {
				n.addConstant(c)
			}
		case *spec.After, *spec.Diff, *spec.Number, *spec.Arg, *spec.Return, *spec.Index, *spec.Range, *spec.Deref, *spec.Memory, *spec.Register,
			*spec.StackPointer, *spec.StackSlot, *spec.ReturnAddress, *spec.Immediate, *spec.Old, *spec.AllArgs, *spec.Field:
		default:
			ok = false
		}
	})
	return ok
}

// addConstant adds the enumerator that a constant may be.
func (n *Needs) addConstant(c spec.Constant) {
	if c.Kind == spec.Name && !knownName(c.Str) {
		n.Enumerators = append(n.Enumerators, c.Str)
	}
}

// knownName reports whether the name of a constant can be resolved without
// enums.
func knownName(name string) bool {
	return compiler.Errnos[name] != 0 || name == "NULL" || name == "true" || name == "false"
}

// Symbols returns the symbols that the specs need, for reading a symbol table.
func Symbols(traces []*spec.Trace) kallsyms.Wanted {
	names := map[string]bool{}
	var globs []string
	for _, t := range points(traces) {
		switch {
		case t.Line != nil && asksNames(t):
			return kallsyms.Wanted{}
		case t.Values, t.Iterator:
		case t.Tracepoint:
			names[tracepointSymbol+t.Func.Name] = true
		case spec.IsGlob(t.Func.Name):
			globs = append(globs, t.Func.Name)
		default:
			base := kallsyms.Base(t.Func.Name)
			names[base], names[base+implSuffix] = true, true
		}
		for _, item := range t.AllItems() {
			item.Walk(func(e spec.Expr) {
				switch e := e.(type) {
				case *spec.Global:
					for _, name := range symbolsOf(e) {
						names[name] = true
					}
				case *spec.Address:
					names[e.Symbol.Name] = true
				}
			})
		}
	}
	prefixes := slices.Sorted(maps.Keys(names)) // the program that finds the symbols is always the same
	for _, g := range globs {
		prefixes = append(prefixes, spec.GlobPrefix(g))
	}
	return kallsyms.Wanted{Prefixes: prefixes, Keep: func(name string) bool {
		return names[kallsyms.Base(name)] || names[name] || matchesAny(globs, name) ||
			matchesAny(globs, strings.TrimSuffix(name, implSuffix))
	}}
}
