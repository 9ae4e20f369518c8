// Package btfpart takes out of the kernel's BTF the few types that a trace
// needs, which takes a tenth of the time and memory of package btf, whose
// indices are of all types and whose types come with all that can be reached
// from them.
//
//	part, err := btfpart.Take(raw, btfpart.Want{Names: []string{"vfs_read"}})
//	var fn *btf.Func
//	err = part.Types.TypeByName("vfs_read", &fn)
//	id, err := part.Types.TypeID(fn)
//	id = part.ID(id) // as the kernel counts
//
// A record that nothing wanted is inside of is a forward declaration in the
// part.
package btfpart
