package main

import (
	"fmt"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/suite"
)

// unmet says what a probe file requires first that the kernel does not have;
// "": it has everything. What cannot be known is taken to be there.
func unmet(requires []*suite.Require, target *compiler.Target, release string) string {
	for _, r := range requires {
		reason, met := "", true
		switch r.Kind {
		case suite.RequireKernel:
			met, reason = release == "" || r.Holds(r.Op, release), ", and this is "+release
		case suite.RequireFunc:
			if err := found(functionTrace(r.Name), target); err != nil {
				met, reason = false, ": "+sentence(err)
			}
		case suite.RequireBTF:
			met = hasRecord(target.Kernel, r.Record, r.Name)
		}
		if !met {
			return fmt.Sprintf("the file requires %s%s", strings.TrimSpace(strings.TrimPrefix(r.String(), "require")), reason)
		}
	}
	return ""
}

// functionTrace is a trace of a function, which may have its module before it.
func functionTrace(name string) *spec.Trace {
	t, err := spec.Parse(name)
	if err != nil { // not even a name: it is not found either
		return &spec.Trace{Text: name, Func: spec.Ident{Name: name, At: spec.Span{End: len(name)}}}
	}
	return t
}

// hasRecord says whether there is a type of a kind and name.
func hasRecord(types *btf.Spec, kind, name string) bool {
	found, err := types.AnyTypesByName(name)
	if err != nil {
		return false
	}
	for _, t := range found {
		is, ok := compiler.TypeKind(t)
		if _, alias := t.(*btf.Typedef); alias {
			is = "typedef"
		}
		if ok && is == kind {
			return true
		}
	}
	return false
}
