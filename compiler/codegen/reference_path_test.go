package codegen

import (
	"encoding/binary"
	"fmt"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// showPath returns the names of a path, the last one first, as the kernel would find them
// (prepend_path in fs/d_path.c).
func (r *reference) showPath(it *spec.Item, c cell) (shown, error) {
	p := r.formatted(it, c)
	if p.bad {
		return shown{fault: compiler.ValueFault, number: true, head: p.base}, nil
	}
	record := c.typ
	if record.kind == cPointer {
		record = record.to
	}
	w := &referenceWalk{reference: r}
	text := ""
	switch files := r.k.files; record.name {
	case files.file.name:
		at, _ := record.find("f_path")
		text = w.path(p.num+uint64(at.offset/8), p.num)
	case files.path.name:
		text = w.path(p.num, p.num)
	case files.dentry.name:
		text = w.names(p.num, 0, 0)
	default:
		return shown{}, fmt.Errorf("%s has no path", it)
	}
	if w.failed {
		return shown{fault: compiler.ValueFault, number: true, head: w.bad}, nil
	}
	return shown{number: true, head: p.num, path: text}, nil
}

// referenceWalk is a walk from a dentry to the root.
type referenceWalk struct {
	*reference
	failed bool
	bad    uint64 // address of the first structure that could not be read
}

// pointer returns the pointer in a member of a structure, or 0. If it cannot be read,
// the walk has failed at the address blame.
func (w *referenceWalk) pointer(t *cType, addr uint64, blame uint64, names ...string) uint64 {
	for _, name := range names {
		m, ok := t.find(name)
		if !ok {
			panic(t.name + " has no " + name)
		}
		addr += uint64(m.offset / 8)
		t = m.typ
	}
	c := cell{base: addr}
	b := w.read(&c, 8)
	if c.bad {
		if !w.failed {
			w.failed, w.bad = true, blame
		}
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

// string returns the first bytes of a string, most at most.
func (w *referenceWalk) string(addr, blame uint64, most int) string {
	text, ok := w.text(addr, false)
	if !ok && !w.failed {
		w.failed, w.bad = true, blame
	}
	return text[:min(len(text), most)]
}

// path walks from a struct path. If that cannot be read, the walk has failed at blame.
func (w *referenceWalk) path(addr, blame uint64) string {
	files := w.k.files
	mnt := w.pointer(files.path, addr, blame, "mnt")
	dentry := w.pointer(files.path, addr, blame, "dentry")
	at, _ := files.mount.find("mnt")
	root := w.pointer(files.vfsmount, mnt, mnt, "mnt_root")
	if w.failed {
		return ""
	}
	return w.names(dentry, mnt-uint64(at.offset/8), root)
}

// names walks from a dentry on a mount, or on none, to the root of all mounts.
func (w *referenceWalk) names(dentry, mount, root uint64) string {
	files := w.k.files
	first := w.pointer(files.dentry, dentry, dentry, "d_parent")
	gone := w.pointer(files.dentry, dentry, dentry, "d_hash", "pprev") == 0 && first != dentry
	end, names := "cut", ""
	alone := mount == 0 && root == 0
	size := 0
	for range compiler.MostNames {
		if w.failed {
			return ""
		}
		if !alone && dentry == root {
			parent := w.pointer(files.mount, mount, mount, "mnt_parent")
			mountpoint := w.pointer(files.mount, mount, mount, "mnt_mountpoint")
			if parent == mount {
				end = "whole"
				break
			}
			mount, dentry = parent, mountpoint
			root = w.pointer(files.mount, mount, mount, "mnt", "mnt_root")
			continue
		}
		up := w.pointer(files.dentry, dentry, dentry, "d_parent")
		if w.failed {
			return ""
		}
		if up == dentry {
			return w.top(dentry, alone, gone, names)
		}
		if size > max(w.max, 64) { // no room for one more name
			break
		}
		at := w.pointer(files.dentry, dentry, dentry, "d_name", "name")
		name := w.string(at, at, 255)
		size += len(name) + 1
		names += name + "<"
		dentry = up
	}
	if gone {
		end += " gone"
	}
	return end + " " + names
}

// top returns what is found at a dentry that is its own parent.
func (w *referenceWalk) top(dentry uint64, alone, gone bool, names string) string {
	files := w.k.files
	mark := ""
	if gone {
		mark = " gone"
	}
	super := w.pointer(files.dentry, dentry, dentry, "d_sb")
	if alone && w.pointer(files.super, super, dentry, "s_root") == dentry && !w.failed {
		return "whole" + mark + " " + names
	}
	if names != "" {
		return "detached" + mark + " " + names
	}
	fsType := w.pointer(files.super, super, dentry, "s_type")
	system := w.string(w.pointer(files.fsType, fsType, dentry, "name"), dentry, 63)
	name := w.string(w.pointer(files.dentry, dentry, dentry, "d_name", "name"), dentry, 255)
	number := referenceWalk{reference: w.reference}
	inode := w.pointer(files.dentry, dentry, dentry, "d_inode")
	ino := number.pointer(files.inode, inode, 0, "i_ino") // 0 if there is no inode
	return fmt.Sprintf("nameless%s %s %s %d", mark, system, name, ino)
}
