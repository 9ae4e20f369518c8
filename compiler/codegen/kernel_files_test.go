package codegen

import (
	"slices"

	"github.com/cilium/ebpf/btf"
)

// pathTypes are the types through which the names of a path are found, with their
// members in a random order.
type pathTypes struct {
	path, file, dentry *cType // those that a path is shown of
	mount, vfsmount    *cType
	inode, super       *cType
	fsType             *cType
	all                []*cType
}

// newPathTypes creates the types. Pointers to those that a path is shown of are all over
// the kernel.
func (m *typeMaker) newPathTypes() *pathTypes {
	f := &pathTypes{}
	record := func(name string) *cType {
		t := &cType{kind: cRecord, name: "struct " + name, as: &btf.Struct{Name: name}}
		f.all = append(f.all, t)
		return t
	}
	f.path, f.file, f.dentry = record("path"), record("file"), record("dentry")
	f.mount, f.vfsmount = record("mount"), record("vfsmount")
	f.inode, f.super, f.fsType = record("inode"), record("super_block"), record("file_system_type")
	hash, name := record("hlist_bl_node"), record("qstr")
	long := cNumber("long", "long int", 8, true)
	member := func(name string, t *cType) cMember { return cMember{name: name, typ: t} }
	m.shuffled(name, member("hash_len", long), member("name", pointerTo(cChar)))
	m.shuffled(hash, member("next", pointerTo(cNothing)), member("pprev", pointerTo(cNothing)))
	m.shuffled(f.vfsmount, member("mnt_flags", long), member("mnt_root", pointerTo(f.dentry)), member("mnt_sb", pointerTo(f.super)))
	m.shuffled(f.mount, member("mnt_id", long), member("mnt_parent", pointerTo(f.mount)), member("mnt_mountpoint", pointerTo(f.dentry)), member("mnt", f.vfsmount))
	m.shuffled(f.path, member("mnt", pointerTo(f.vfsmount)), member("dentry", pointerTo(f.dentry)))
	m.shuffled(f.file, member("f_mode", cNumber("int", "int", 4, true)), member("f_path", f.path), member("f_pos", long))
	m.shuffled(f.dentry, member("d_hash", hash), member("d_name", name), member("d_parent", pointerTo(f.dentry)), member("d_inode", pointerTo(f.inode)), member("d_sb", pointerTo(f.super)))
	m.shuffled(f.inode, member("i_mode", cNumber("short", "short int", 2, true)), member("i_ino", cNumber("", "long unsigned int", 8, false)))
	m.shuffled(f.super, member("s_flags", long), member("s_type", pointerTo(f.fsType)), member("s_root", pointerTo(f.dentry)))
	m.shuffled(f.fsType, member("fs_flags", long), member("name", pointerTo(cChar)))
	f.link()
	return f
}

// shown reports whether a path is shown of a type.
func (f *pathTypes) shown(t *cType) bool { return t == f.path || t == f.file || t == f.dentry }

// shuffled lays out the members of a structure in a random order.
func (m *typeMaker) shuffled(t *cType, members ...cMember) {
	m.rnd.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	t.align = 1
	end := 0
	for _, member := range members {
		t.place(&member, &end, false)
		t.members = append(t.members, member)
	}
	t.size = (end + 8*t.align - 1) / (8 * t.align) * t.align
	t.describe()
}

// link makes objects of the types refer to each other as those of a kernel do, mostly: a
// root is its own parent, and a mount has two structures in one.
func (f *pathTypes) link() {
	for _, t := range f.all {
		t.links = map[string]link{}
		for _, m := range t.members {
			if to := m.typ.to; m.typ.kind == cPointer && to.kind != cVoid {
				t.links[m.name] = func(h *heap, _ uint64) uint64 { return h.object(to) }
			}
		}
	}
	inner, _ := f.mount.find("mnt")
	f.path.links["mnt"] = func(h *heap, _ uint64) uint64 { return h.object(f.mount) + uint64(inner.offset/8) }
	up := func(t *cType) link { // mostly to an object that was made before, and so to the first
		return func(h *heap, self uint64) uint64 {
			switch i, chance := slices.Index(h.objects[t], self), h.rnd.IntN(12); {
			case chance == 0:
				return h.object(t)
			case i < 1 || chance == 1:
				return self
			case chance < 8:
				return h.objects[t][i-1]
			default:
				return pick(h.rnd, h.objects[t][:i])
			}
		}
	}
	top := func(h *heap, _ uint64) uint64 {
		if at := h.object(f.dentry); h.rnd.IntN(2) == 0 || len(h.objects[f.dentry]) == 0 {
			return at
		}
		return h.objects[f.dentry][0]
	}
	f.dentry.links["d_parent"], f.mount.links["mnt_parent"] = up(f.dentry), up(f.mount)
	f.vfsmount.links["mnt_root"], f.super.links["s_root"] = top, top
	hash, _ := f.dentry.find("d_hash")
	hash.typ.links["pprev"] = func(h *heap, self uint64) uint64 { return uint64(h.rnd.IntN(3)) * self }
	f.dentry.many, f.mount.many = true, true
}

// link returns what a pointer of an object at an address is.
type link func(h *heap, self uint64) uint64
