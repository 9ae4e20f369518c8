package listing

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime"
)

// asksType reports whether a word of info can only be meant as a type: no function
// has such a name.
func asksType(word string) bool {
	_, name := splitModule(word)
	keyword, _ := splitType(name)
	first, _, more := strings.Cut(name, " ")
	return strings.HasPrefix(name, "#") || keyword != "" || more && slices.Contains(intWords, first)
}

// intWords are the first words of integer types of several words.
var intWords = []string{"unsigned", "signed", "long", "short", "char"}

// splitModule splits the name of a type with a module before it.
func splitModule(word string) (module, name string) {
	if module, name, ok := strings.Cut(word, ":"); ok && spec.IsName(module) {
		return module, strings.TrimSpace(name)
	}
	return "", strings.TrimSpace(word)
}

// namedType is a type that was found, and where.
type namedType struct {
	typ    btf.Type
	id     btf.TypeID
	module string // or "" for the kernel itself
}

// findTypes returns the types with a name, which may be none. If the kernel itself has
// none, it looks in the loaded modules, of which the target can read the types.
func findTypes(word string, kernel *compiler.Target) ([]namedType, error) {
	module, name := splitModule(word)
	if module != "" {
		found, err := moduleTypes(module, name, kernel)
		if errors.Is(err, compiler.ErrNoModuleBTF) {
			return nil, exit.Usagef("module %s is not loaded, or has no BTF", module)
		}
		return found, err
	}
	all, err := knownTypes(kernel.Kernel, name)
	if err != nil {
		return nil, err
	}
	if len(all) > 0 {
		return withIDs(kernel.Kernel, "", all)
	}
	var found []namedType
	for _, m := range modulesOf(kernel) {
		if more, err := moduleTypes(m, name, kernel); err == nil {
			found = append(found, more...)
		}
	}
	return found, nil
}

func moduleTypes(module, name string, kernel *compiler.Target) ([]namedType, error) {
	if kernel.Module == nil {
		return nil, compiler.ErrNoModuleBTF
	}
	types, err := kernel.Module(module)
	if err != nil {
		return nil, err
	}
	all, err := knownTypes(types, name)
	if err != nil {
		return nil, err
	}
	return withIDs(types, module, all)
}

func withIDs(types *btf.Spec, module string, all []btf.Type) (found []namedType, err error) {
	for _, t := range all {
		id, err := types.TypeID(t)
		if err != nil {
			return nil, err
		}
		found = append(found, namedType{t, id, module})
	}
	return found, nil
}

// modulesOf returns the modules of the running kernel that have types, or none if the
// target is another kernel.
func modulesOf(kernel *compiler.Target) (modules []string) {
	if kernel.Symbols == nil { // as target.Describe leaves it for a file
		return nil
	}
	return runtime.LoadedModules()
}

// infoTypes prints the types with a name.
func infoTypes(out *output, word string, kernel *compiler.Target) error {
	found, err := findTypes(word, kernel)
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return nearestType(word, kernel)
	}
	return printTypes(out, found)
}

// nearestType returns the error for a word that is not the name of a type.
func nearestType(word string, kernel *compiler.Target) error {
	types := kernel.Kernel
	module, name := splitModule(word)
	if module != "" {
		var err error
		if types, err = kernel.Module(module); err != nil {
			return err
		}
	}
	return unknownType(kernel, types, name)
}

func printTypes(out *output, found []namedType) error {
	for _, t := range found {
		note := ""
		if t.module != "" {
			note += ", of module " + t.module
		}
		if len(found) > 1 {
			note += fmt.Sprintf(", #%d of the types", t.id)
		}
		text, err := typeText(t.typ, note, out.width)
		if err != nil {
			return err
		}
		object, err := newTypeObject(t)
		if err != nil {
			return err
		}
		out.block(text, object)
	}
	return nil
}

// typeObject is a type as JSON.
type typeObject struct {
	Type    string             `json:"type"` // "type"
	Version int                `json:"version"`
	Name    btfdump.JSONString `json:"name"` // as in C
	Kind    string             `json:"kind"`
	ID      btf.TypeID         `json:"id"`
	Module  btfdump.JSONString `json:"module,omitempty"`
	Size    int                `json:"size"`
	Of      btfdump.JSONString `json:"of,omitempty"` // of a typedef or a variable: its type
	*structure
	Values []enumerator `json:"values,omitempty"`
}

func newTypeObject(t namedType) (*typeObject, error) {
	o := &typeObject{
		Type: "type", Version: jsonVersion, Name: btfdump.JSONString(btfdump.TypeName(t.typ)), ID: t.id,
		Module: btfdump.JSONString(t.module), Size: sizeOf(t.typ),
	}
	body := t.typ
	switch v := t.typ.(type) {
	case *btf.Typedef:
		o.Kind, o.Of = "typedef", btfdump.JSONString(btfdump.Decl(v.Type, ""))
		body = btf.UnderlyingType(v)
	case *btf.Var:
		o.Kind, o.Of, o.Size = "variable", btfdump.JSONString(btfdump.Decl(v.Type, "")), sizeOf(v.Type)
		o.Name = btfdump.JSONString(v.Name)
	case *btf.Struct:
		o.Kind = "struct"
	case *btf.Union:
		o.Kind = "union"
	case *btf.Enum:
		o.Kind = "enum"
	case *btf.Int:
		o.Kind = "int"
	case *btf.Float:
		o.Kind = "float"
	default:
		o.Kind = "other"
	}
	r, err := layoutOf(body)
	o.structure, o.Values = r, enumerators(body)
	return o, err
}
