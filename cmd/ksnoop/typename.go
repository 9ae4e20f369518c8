package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// findType finds a type by its name in C, with or without struct, union or
// enum, or by #N.
func findType(types *btf.Spec, name string) (btf.Type, error) {
	if number, ok := strings.CutPrefix(name, "#"); ok {
		id, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			return nil, usagef("%q is not the number of a type", name)
		}
		t, err := types.TypeByID(btf.TypeID(id))
		if err != nil {
			return nil, usagef("there is no type %s", name)
		}
		return t, nil
	}
	kind, bare := "", strings.Join(strings.Fields(name), " ")
	if k, rest, ok := strings.Cut(bare, " "); ok && slices.Contains([]string{"struct", "union", "enum"}, k) {
		kind, bare = k, rest
	}
	named, err := types.AnyTypesByName(bare)
	if err != nil {
		return nil, unknownType(types, name, bare)
	}
	var found, other []btf.Type
	for _, t := range named {
		switch k, ok := typeKind(t); {
		case ok && (kind == "" || k == kind):
			found = append(found, t)
		case ok:
			other = append(other, t)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, ambiguousType(types, name, found)
	case len(other) > 0:
		k, _ := typeKind(other[0])
		return nil, usagef("there is no type %q: did you mean %q?", name, strings.TrimSpace(k+" "+bare))
	}
	return nil, unknownType(types, name, bare)
}

// typeKind is how C calls a type that has values; "" for names that stand
// alone, those of variables and sections among them.
func typeKind(t btf.Type) (kind string, ok bool) {
	switch t.(type) {
	case *btf.Var, *btf.Datasec:
		return "", true
	}
	return compiler.TypeKind(t)
}

func unknownType(types *btf.Spec, name, bare string) error {
	names := func(yield func(string) bool) {
		for t, err := range types.All() {
			if err != nil {
				return
			}
			if _, ok := typeKind(t); ok && !yield(t.TypeName()) {
				return
			}
		}
	}
	if near, ok := spec.Nearest(bare, names); ok {
		return usagef("there is no type %q: did you mean %q?", name, near)
	}
	return usagef("there is no type %q", name)
}

func ambiguousType(types *btf.Spec, name string, found []btf.Type) error {
	var list []string
	for _, t := range found {
		kind, _ := typeKind(t)
		size, _ := btf.Sizeof(t)
		id, err := types.TypeID(t)
		if err != nil {
			return err
		}
		list = append(list, fmt.Sprintf("#%d is %s of %d bytes", id, plainName(strings.TrimSpace(kind+" "+t.TypeName())), size))
	}
	return usagef("there are %d types %q: %s", len(found), name, some(list))
}
