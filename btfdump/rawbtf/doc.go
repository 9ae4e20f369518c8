// Package rawbtf reads BTF in place: it decodes only the types that are asked
// for, while package btf decodes all of them. It is the only package that knows
// the wire format (Documentation/bpf/btf.rst).
//
// Read returns the BTF of a file. Load reads all of it with package btf, unless Check
// refuses it, as that package cannot read all BTF safely:
//
//	raw, _, err := rawbtf.Read(file)
//	types, err := rawbtf.Load(raw, bytes.NewReader(raw))
//
// Index finds types by the beginning of their names:
//
//	types, err := rawbtf.Index(raw, nil)
//	for id, name := range types.Named("vfs_", rawbtf.Func) {
//		params := types.Fields(types.Target(id))
//	}
//
// Take copies the types that a trace needs. This takes a tenth of the time and
// memory that package btf takes, which indexes all types and decodes all types
// that can be reached from the wanted ones:
//
//	part, err := rawbtf.Take(raw, rawbtf.Want{Names: []string{"vfs_read"}})
//	var fn *btf.Func
//	err = part.Types.TypeByName("vfs_read", &fn)
//	id, err := part.Types.TypeID(fn)
//	id = part.ID(id) // the kernel's ID of the type
//
// The package trusts nothing in a file.
package rawbtf
