package btfdump

import "github.com/cilium/ebpf/btf"

// underlying looks through typedefs, qualifiers and tags.
func underlying(t btf.Type) btf.Type { return strip(t, true) }

// strip removes qualifiers and tags, and typedefs too if asked. It is nil for
// types that go round in circles.
func strip(t btf.Type, typedefs bool) btf.Type {
	for range maxNested {
		switch v := t.(type) {
		case *btf.Typedef:
			if !typedefs {
				return t
			}
			t = v.Type
		case *btf.Const:
			t = v.Type
		case *btf.Volatile:
			t = v.Type
		case *btf.Restrict:
			t = v.Type
		case *btf.TypeTag:
			t = v.Type
		default:
			return t
		}
	}
	return nil
}
