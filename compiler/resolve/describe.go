package resolve

import (
	"fmt"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
)

// describe returns what a type is, for an error message.
func describe(t btf.Type) string {
	bare := describeBare(btf.UnderlyingType(t))
	if td, ok := t.(*btf.Typedef); ok {
		return fmt.Sprintf("%s (%s)", td.Name, bare)
	}
	return bare
}

func describeBare(t btf.Type) string {
	switch t := t.(type) {
	case *btf.Int:
		if t.Name == typeUnknown {
			return "of unknown type"
		}
		return t.Name
	case *btf.Enum:
		return strings.TrimSpace("enum " + t.Name)
	case *btf.Pointer:
		if isStructure(t.Target) {
			return "a pointer to " + structureName(t.Target)
		}
		return "a pointer"
	case *btf.Struct, *btf.Union:
		return structureName(t)
	case *btf.Array:
		size, _ := btf.Sizeof(t)
		return fmt.Sprintf("an array of %d bytes", size)
	case *btf.Float:
		return t.Name
	}
	return "of another kind"
}

// structureKind returns "struct" or "union".
func structureKind(t btf.Type) string {
	if compiler.IsUnion(t) {
		return "union"
	}
	return "struct"
}

func structureName(t btf.Type) string {
	switch t := btf.UnderlyingType(t).(type) {
	case *btf.Struct:
		return strings.TrimSpace("struct " + t.Name)
	case *btf.Union:
		return strings.TrimSpace("union " + t.Name)
	}
	return "the type"
}

// bounds returns the range of a scalar for an error message.
func bounds(s *compiler.Scalar) string {
	lo, hi := limits(s)
	if s.Signed {
		return fmt.Sprintf("%d to %d", int64(lo), int64(hi))
	}
	return fmt.Sprintf("%d to %d", lo, hi)
}
