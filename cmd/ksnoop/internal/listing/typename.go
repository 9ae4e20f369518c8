package listing

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf/btf"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// findType returns the type with a name in C, with or without struct, union or
// enum, or with a number #N.
func findType(kernel *compiler.Target, name string) (btf.Type, error) {
	found, err := typesNamed(kernel, kernel.Kernel, name)
	if err == nil && len(found) > 1 {
		return nil, ambiguousType(kernel.Kernel, name, found)
	}
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

// declaredType returns the type that text declares as in C: one with a name, with a star
// for each pointer and a number of elements in brackets for each array, as in
// 'struct sock *' and 'u32[4]'.
func declaredType(kernel *compiler.Target, text string) (btf.Type, error) {
	var counts []uint32 // of the innermost array first
	rest, array := strings.CutSuffix(strings.TrimSpace(text), "]")
	for array {
		i := strings.LastIndexByte(rest, '[')
		n, err := strconv.ParseUint(strings.TrimSpace(rest[i+1:]), 0, 32)
		if i < 0 || err != nil {
			return nil, exit.Usagef("%q is not a type: an array of it has a number in brackets, as in 'u32[4]'", text)
		}
		counts = append(counts, uint32(n))
		rest, array = strings.CutSuffix(strings.TrimSpace(rest[:i]), "]")
	}
	name, stars := pointed(rest)
	var t btf.Type = &btf.Void{}
	if stars == 0 || name != "void" {
		var err error
		if t, err = findType(kernel, name); err != nil {
			return nil, err
		}
	}
	for range stars {
		t = &btf.Pointer{Target: t}
	}
	for _, n := range counts {
		t = &btf.Array{Type: t, Nelems: n}
	}
	return t, nil
}

// pointed returns the name of the type that text ends in a star for each pointer to.
// Qualifiers do not matter.
func pointed(text string) (name string, stars int) {
	name = strings.TrimRight(text, "* ")
	words := slices.DeleteFunc(strings.Fields(name), func(w string) bool { return w == "const" || w == "volatile" })
	return strings.Join(words, " "), strings.Count(text[len(name):], "*")
}

// typesNamed returns the types of a kernel or its module with a name in C, of which there
// is at least one.
func typesNamed(kernel *compiler.Target, types *btf.Spec, name string) ([]btf.Type, error) {
	found, err := knownTypes(types, name)
	if err == nil && len(found) == 0 {
		return nil, unknownType(kernel, types, name)
	}
	return found, err
}

// knownTypes returns the types with a name in C, which may be none. It does not look for
// the nearest name.
func knownTypes(types *btf.Spec, name string) ([]btf.Type, error) {
	if number, ok := strings.CutPrefix(name, "#"); ok {
		id, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			return nil, exit.Usagef("%q is not the number of a type", name)
		}
		t, err := types.TypeByID(btf.TypeID(id))
		if err != nil {
			return nil, exit.Usagef("there is no type %s", name)
		}
		return []btf.Type{t}, nil
	}
	kind, bare := splitType(name)
	if bare == "" { // that of a type without a name
		return nil, exit.Usagef("%q is not the name of a type: as in file or 'struct file'", name)
	}
	named, err := types.AnyTypesByName(bare)
	if err != nil {
		if named, err = types.AnyTypesByName(intName(bare)); err != nil {
			return nil, nil
		}
	}
	var found, other []btf.Type
	for _, t := range named {
		switch k, ok := typeKind(t); {
		case ok && (kind == "" || k == kind || kind == resolve.TypedefKind && isTypedef(t)):
			found = append(found, t)
		case ok:
			other = append(other, t)
		}
	}
	switch {
	case len(found) > 0:
		return found, nil
	case len(other) > 0:
		k, _ := typeKind(other[0])
		return nil, exit.Usagef("there is no type %q: did you mean %q?", name, strings.TrimSpace(k+" "+bare))
	}
	return nil, nil
}

// splitType returns the keyword of the name of a type, or "", and the name alone.
func splitType(name string) (keyword, bare string) {
	bare = strings.Join(strings.Fields(name), " ")
	if k, rest, ok := strings.Cut(bare, " "); ok && slices.Contains(typeKeywords, k) {
		return k, rest
	}
	return "", bare
}

// intName returns the name that BTF has for C's name of an integer, such as long
// unsigned int for unsigned long, or bare if it is not such a name.
func intName(bare string) string {
	counts := map[string]int{}
	for w := range strings.FieldsSeq(bare) {
		if counts[w]++; w != "int" && !slices.Contains(intWords, w) {
			return bare
		}
	}
	name := strings.Repeat("long ", counts["long"])
	switch {
	case counts["char"] > 0:
		return bare
	case counts["short"] > 0:
		name = "short "
	}
	if counts["unsigned"] > 0 {
		name += "unsigned "
	}
	return name + "int"
}

// typeKeywords are the words before names of types. C has no typedef there.
var typeKeywords = []string{"struct", "union", "enum", resolve.TypedefKind}

func isTypedef(t btf.Type) bool {
	_, ok := t.(*btf.Typedef)
	return ok
}

// typeKind returns the C keyword of a type that has values, or "" for names that
// stand alone, which include those of variables and sections.
func typeKind(t btf.Type) (kind string, ok bool) {
	switch t.(type) {
	case *btf.Var, *btf.Datasec:
		return "", true
	}
	return resolve.TypeKind(t)
}

// unknownType returns the error for a name that no type of a kernel or its module has.
func unknownType(kernel *compiler.Target, types *btf.Spec, name string) error {
	kind, bare := splitType(name)
	kinds := []string{kind}
	if kind == "" {
		kinds = []string{"struct", "union", "enum", "", resolve.VarKind}
	}
	if near, ok := resolve.NearestName(kernel, types, bare, kinds...); ok {
		if kind != resolve.TypedefKind {
			near = strings.TrimSpace(kind + " " + near)
		}
		return exit.Usagef("there is no type %q: did you mean %q?", name, near)
	}
	return exit.Usagef("there is no type %q", name)
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
		list = append(list, fmt.Sprintf("#%d is %s of %d bytes", id, render.PlainName(strings.TrimSpace(kind+" "+t.TypeName())), size))
	}
	return exit.Usagef("there are %d types %q: %s", len(found), name, some(list))
}
