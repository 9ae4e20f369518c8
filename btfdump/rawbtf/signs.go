package rawbtf

import (
	"slices"

	"github.com/cilium/ebpf/btf"
)

// signTypes are the types that [CorrectSigns] looks at. [Take] copies them to each part.
var signTypes = []string{"signed char", "char", "pt_regs"}

// CorrectSigns makes signed characters signed in BTF that does not tell them from
// unsigned ones. Pahole wrote such BTF until dwarves commit d6c952893b1b, for example that of
// Debian's Linux 5.10. Kernels of that time have the char of their architecture,
// which is signed on x86; since Linux 6.2 it is unsigned everywhere. [Take] and [Load] have
// corrected their results.
func CorrectSigns(types *btf.Spec) {
	signed := charsNamed(types, signTypes[0])
	if len(signed) == 0 || signed[0].Encoding&btf.Signed != 0 {
		return
	}
	if isX86(types) {
		signed = append(signed, charsNamed(types, signTypes[1])...)
	}
	for _, i := range signed {
		i.Encoding |= btf.Signed
	}
}

// charsNamed returns the integers of a byte with this name.
func charsNamed(types *btf.Spec, name string) (chars []*btf.Int) {
	named, _ := types.AnyTypesByName(name) // an error means that there are none
	for _, t := range named {
		if i, ok := t.(*btf.Int); ok && i.Size == 1 {
			chars = append(chars, i)
		}
	}
	return chars
}

// isX86 reports whether the types are of a kernel for x86, by its registers.
func isX86(types *btf.Spec) bool {
	var registers *btf.Struct
	err := types.TypeByName(signTypes[2], &registers)
	return err == nil && slices.ContainsFunc(registers.Members, func(m btf.Member) bool { return m.Name == "di" })
}
