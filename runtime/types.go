package runtime

import (
	"github.com/cilium/ebpf/btf"
)

// hasStruct says whether the kernel was built with a structure, which often
// depends on one option of its configuration.
func hasStruct(types *btf.Spec, name string) bool {
	var s *btf.Struct
	return types.TypeByName(name, &s) == nil
}

// hasMember says whether a structure has a member, be it in structures and
// unions inside it.
func hasMember(types *btf.Spec, name, member string) bool {
	var s *btf.Struct
	return types.TypeByName(name, &s) == nil && membersHave(s.Members, member)
}

func membersHave(members []btf.Member, name string) bool {
	for _, m := range members {
		if m.Name == name {
			return true
		}
		switch t := m.Type.(type) {
		case *btf.Struct:
			if membersHave(t.Members, name) {
				return true
			}
		case *btf.Union:
			if membersHave(t.Members, name) {
				return true
			}
		}
	}
	return false
}

// funcID is the BTF id of a function; 0 if there is no such function.
func funcID(types *btf.Spec, name string) btf.TypeID {
	var fn *btf.Func
	if types.TypeByName(name, &fn) != nil {
		return 0
	}
	id, err := types.TypeID(fn)
	if err != nil {
		return 0
	}
	return id
}
