package runtime

import (
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/cilium/ebpf/btf"
)

// typesFile has the kernel's types.
const typesFile = "/sys/kernel/btf/vmlinux"

// noTypes says why the kernel's types cannot be read, with the cure.
func noTypes(err error, stat func(string) (os.FileInfo, error)) error {
	if _, e := stat(path.Dir(path.Dir(typesFile))); e != nil {
		return fmt.Errorf("read the kernel's types: there is no %s, as sysfs is not mounted: mount -t sysfs sysfs /sys", typesFile)
	}
	if _, e := stat(typesFile); errors.Is(e, os.ErrNotExist) {
		return fmt.Errorf("read the kernel's types: there is no %s: boot a kernel built with CONFIG_DEBUG_INFO_BTF=y", typesFile)
	}
	return fmt.Errorf("read the kernel's types: %s is of no use (%w): it must be that of a kernel built with CONFIG_DEBUG_INFO_BTF=y, and readable", typesFile, err)
}

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
