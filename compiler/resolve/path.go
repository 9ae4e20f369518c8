package resolve

import (
	"slices"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// pathTypes lists the structures that a walk to the names of a path goes through.
var pathTypes = []string{"file", "path", "dentry", "mount", "vfsmount", "inode", "super_block", "file_system_type"}

// toDentry has, for the structures that a path can be shown of, the members that
// lead to the dentry.
var toDentry = map[string][]string{"file": {"f_path", "dentry"}, "path": {"dentry"}, "dentry": nil}

// path makes a value the address of a structure, whose path is shown.
func (b *binder) path(v *compiler.Value, format spec.Ident, fail func(string) error) error {
	t := v.Type
	ptr, isPointer := btf.As[*btf.Pointer](t)
	if isPointer {
		t = ptr.Target
	}
	structure, ok := btf.As[*btf.Struct](t)
	if !ok {
		return fail("the path of a struct path, file or dentry")
	}
	members, ok := toDentry[structure.Name]
	switch {
	case !ok:
		return fail("the path of a struct path, file or dentry")
	case isPointer && v.Scalar.Width() != 64:
		return fail("the path behind whole pointers")
	case !isPointer && len(v.Path) == 0:
		return b.errorf(format.At, "'%s' is passed by value, and ':path' needs its address", v.Name).WithHint("write %s.dentry:path", v.Name)
	case !isPointer:
		last := &v.Path[len(v.Path)-1] // finish has copied the path
		last.Addr, last.Size, last.Direct = true, 8, false
		v.Type = &btf.Pointer{Target: t}
		v.Load = &compiler.Scalar{Size: 8}
		v.Scalar = v.Load
	}
	walk, missing := pathWalk(b.target.Kernel, structure, members)
	if missing != "" {
		return b.errorf(format.At, "':path' cannot be shown: %s of this kernel is not as expected", missing)
	}
	v.Pointee, v.Text, v.Walk = structure, compiler.PathText, walk
	return nil
}

// pathWalk determines the offsets of a walk. If a structure lacks a member, it
// returns the name of the structure.
func pathWalk(kernel *btf.Spec, structure *btf.Struct, members []string) (_ *compiler.PathWalk, missing string) {
	w := &compiler.PathWalk{Mount: -1}
	if len(members) > 0 {
		parent := append(slices.Clone(members[:len(members)-1]), "mnt")
		if w.Dentry, missing = memberAt(kernel, structure.Name, members...); missing == "" {
			w.Mount, missing = memberAt(kernel, structure.Name, parent...)
		}
	}
	for _, m := range []struct {
		at        *int
		structure string
		names     []string
	}{
		{&w.Parent, "dentry", []string{"d_parent"}}, {&w.Name, "dentry", []string{"d_name", "name"}},
		{&w.Hashed, "dentry", []string{"d_hash", "pprev"}},
		{&w.Inode, "dentry", []string{"d_inode"}}, {&w.Super, "dentry", []string{"d_sb"}},
		{&w.MountOf, "mount", []string{"mnt"}}, {&w.MountParent, "mount", []string{"mnt_parent"}},
		{&w.Mountpoint, "mount", []string{"mnt_mountpoint"}}, {&w.MountRoot, "vfsmount", []string{"mnt_root"}},
		{&w.SuperRoot, "super_block", []string{"s_root"}}, {&w.Type, "super_block", []string{"s_type"}},
		{&w.TypeName, "file_system_type", []string{"name"}}, {&w.Ino, "inode", []string{"i_ino"}},
	} {
		if missing != "" {
			break
		}
		*m.at, missing = memberAt(kernel, m.structure, m.names...)
	}
	if missing == "" && !walkFits(w) {
		missing = "struct dentry"
	}
	return w, missing
}

// walkFits reports whether the pointers that a walk reads together are near each other.
func walkFits(w *compiler.PathWalk) bool {
	near := func(a, b int) bool { return max(a, b)+8-min(a, b) <= compiler.WalkSpan }
	return near(w.Parent, w.Name) && near(w.Parent, w.Hashed) && near(w.MountParent, w.Mountpoint) &&
		(w.Mount < 0 || near(w.Mount, w.Dentry))
}

// memberAt returns the offset of the member of a struct that names lead to, each a
// member of the one before. If there is none, it returns the name of the struct.
func memberAt(kernel *btf.Spec, structure string, names ...string) (off int, missing string) {
	var s *btf.Struct
	if kernel.TypeByName(structure, &s) != nil {
		return 0, "struct " + structure
	}
	var t btf.Type = s
	for _, name := range names {
		at, ok := compiler.FindMember(t, name)
		if !ok {
			return 0, "struct " + structure
		}
		off += int(at.Offset.Bytes())
		t = at.Member.Type
	}
	return off, ""
}

// lastName returns the spec of the last name of a path.
func lastName(v *compiler.Value) string {
	ptr, _ := btf.As[*btf.Pointer](v.Type)
	structure, _ := btf.As[*btf.Struct](ptr.Target)
	text, arrow := v.Name, "->"
	if text[0] == '*' || text[0] == '(' {
		text = "(" + text + ")"
	}
	if n := len(v.Path); n > 0 && v.Path[n-1].Addr {
		arrow = "."
	}
	for _, m := range toDentry[structure.Name] {
		text += arrow + m
		arrow = "."
		if m == "dentry" {
			arrow = "->"
		}
	}
	return text + arrow + "d_name.name:string"
}
