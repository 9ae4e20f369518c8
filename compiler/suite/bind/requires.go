// Package bind determines whether a kernel has what a probe file names: the functions of
// its specs, and what its require lines ask for.
package bind

import (
	"fmt"
	"strings"

	"github.com/cilium/ebpf/btf"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/suite"
)

// Unmet returns the first requirement of a probe file that the kernel does not meet,
// or "" if it meets all. What cannot be known is assumed to be met.
func Unmet(requires []*suite.Require, target *compiler.Target, release string) string {
	for _, r := range requires {
		reason, met := "", true
		switch r.Kind {
		case suite.RequireKernel:
			met, reason = release == "" || r.Holds(r.Op, release), ", and this is "+release
		case suite.RequireFunc:
			if err := found(FunctionTrace(r.Name), target); err != nil {
				met, reason = false, ": "+Sentence(err)
			}
		case suite.RequireBTF:
			met = hasType(target.Kernel, r.Keyword, r.Name)
		}
		if !met {
			return fmt.Sprintf("the file requires %s%s", strings.TrimSpace(strings.TrimPrefix(r.String(), "require")), reason)
		}
	}
	return ""
}

// FunctionTrace returns a trace of a function, given by its name, which its module may
// precede.
func FunctionTrace(name string) *spec.Trace {
	t, err := spec.Parse(name)
	if err != nil { // not even a name, so it is not found either
		return &spec.Trace{Text: name, Func: spec.Ident{Name: name, At: spec.Span{End: len(name)}}}
	}
	return t
}

// hasType reports whether there is a type of a kind and name.
func hasType(types *btf.Spec, kind, name string) bool {
	found, err := types.AnyTypesByName(name)
	if err != nil {
		return false
	}
	for _, t := range found {
		is, ok := resolve.TypeKind(t)
		if _, alias := t.(*btf.Typedef); alias {
			is = "typedef"
		}
		if ok && is == kind {
			return true
		}
	}
	return false
}
