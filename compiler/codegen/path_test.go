package codegen

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/resolve"
)

// fileTypes returns the types through which paths are found, in an order of members
// that no kernel has, and a function with arguments of these types.
func fileTypes() []btf.Type {
	member := func(name string, t btf.Type, off uint32) btf.Member {
		return btf.Member{Name: name, Type: t, Offset: btf.Bits(8 * off)}
	}
	ptr := compilertest.Ptr
	fsType := &btf.Struct{Name: "file_system_type", Size: 16, Members: []btf.Member{member("name", ptr(compilertest.Char), 8)}}
	super, dentry := &btf.Struct{Name: "super_block", Size: 24}, &btf.Struct{Name: "dentry", Size: 64}
	inode := &btf.Struct{Name: "inode", Size: 16, Members: []btf.Member{member("i_ino", compilertest.Ulong, 8)}}
	super.Members = []btf.Member{member("s_type", ptr(fsType), 8), member("s_root", ptr(dentry), 16)}
	hash := &btf.Struct{Name: "hlist_bl_node", Size: 16, Members: []btf.Member{member("next", ptr(compilertest.Void), 0), member("pprev", ptr(compilertest.Void), 8)}}
	qstr := &btf.Struct{Name: "qstr", Size: 16, Members: []btf.Member{member("hash_len", compilertest.Ulong, 0), member("name", ptr(compilertest.U8), 8)}}
	dentry.Members = []btf.Member{
		member("d_hash", hash, 0), member("d_name", qstr, 16), member("d_parent", ptr(dentry), 32), member("d_inode", ptr(inode), 40), member("d_sb", ptr(super), 48),
	}
	vfsmount := &btf.Struct{Name: "vfsmount", Size: 16, Members: []btf.Member{member("mnt_root", ptr(dentry), 8)}}
	mount := &btf.Struct{Name: "mount", Size: 40}
	mount.Members = []btf.Member{member("mnt_mountpoint", ptr(dentry), 0), member("mnt_parent", ptr(mount), 8), member("mnt", vfsmount, 16)}
	path := &btf.Struct{Name: "path", Size: 16, Members: []btf.Member{member("mnt", ptr(vfsmount), 0), member("dentry", ptr(dentry), 8)}}
	file := &btf.Struct{Name: "file", Size: 32, Members: []btf.Member{member("f_path", path, 16)}}
	return []btf.Type{
		mount, compilertest.Function("either", compilertest.Int, compilertest.Param("file", ptr(file)), compilertest.Param("path", ptr(path)), compilertest.Param("dentry", ptr(dentry))),
	}
}

// files builds file systems in the memory of a machine.
type files struct{ *rig }

// system returns the address of a super_block and of its root.
func (f files) system(name string) (super, root uint64) {
	fsType := f.alloc(le(uint64(0), f.alloc([]byte(name+"\x00"))))
	b := le(uint64(0), fsType, uint64(0))
	super = f.alloc(b)
	root = f.dentry(0, super, "/", 0)
	copy(b[16:], le(root))
	return super, root
}

// dentry returns the address of a dentry; without a parent it is its own.
func (f files) dentry(parent, super uint64, name string, hashed uint64) uint64 {
	inode := f.alloc(le(uint64(0), uint64(4711)))
	b := le(uint64(0), hashed, uint64(0), f.alloc([]byte(name+"\x00")), parent, inode, super, uint64(0))
	at := f.alloc(b)
	if parent == 0 {
		copy(b[32:], le(at))
	}
	return at
}

// mount returns the address of a mount; without a parent it is its own.
func (f files) mount(parent, mountpoint, root uint64) uint64 {
	b := le(mountpoint, parent, uint64(0), root, uint64(0))
	at := f.alloc(b)
	if parent == 0 {
		copy(b[8:], le(at))
	}
	return at
}

// path returns the address of a struct file; its struct path is at offset 16.
func (f files) path(mount, dentry uint64) uint64 {
	return f.alloc(le(uint64(0), uint64(0), mount+16, dentry))
}

// walked returns what a record has of a path.
func walked(rec []byte, ev *compiler.EventType, i int) string {
	s := ev.Layout.Slot(i, len(rec))
	switch fault := compiler.Fault(rec[ev.Layout.Faults+i]); fault {
	case compiler.NoFault:
	default:
		return fmt.Sprintf("fault %d at %#x", fault, word(rec[s.Off:][:8]))
	}
	return pathText(rec[s.Data:][:s.Cap])
}

// pathText returns how a walk has ended, and the names.
func pathText(data []byte) string {
	end := compiler.PathEnding(data[compiler.PathEnd])
	text := fmt.Sprintf("ending %d", end)
	if texts := []string{"whole", "cut", "detached", "nameless"}; int(end) < len(texts) {
		text = texts[end]
	}
	if data[compiler.PathGone] != 0 {
		text += " gone"
	}
	if end == compiler.PathNameless {
		cString := func(b []byte) []byte { before, _, _ := bytes.Cut(b, []byte{0}); return before }
		return fmt.Sprintf("%s %s %s %d", text, cString(data[compiler.PathNames:]), cString(data[compiler.PathName:]), word(data[compiler.PathIno:][:8]))
	}
	names := data[compiler.PathNames:]
	names = names[:min(word(data[compiler.PathLength:][:4]), uint64(len(names)))]
	return text + " " + string(bytes.ReplaceAll(names, []byte{0}, []byte{'<'}))
}

// The names of a path are read through the parents of dentries and mounts, in
// every attach kind.
func TestPaths(t *testing.T) {
	long := strings.Repeat("n", 255)
	for _, spec := range []string{"either(file:path)", "either(file->f_path:path)", "either(path:path)", "either((struct dentry *)dentry:path, file:path)",
		"either(file:path, return == 0)", "either(*path:path)", "either(path->dentry:path, path:path, file:x)"} {
		backEnds(t, func(t *testing.T, features compiler.Features) {
			r := newRigOn(t, compilertest.NewTarget(t, features, fileTypes()...), compiler.Options{MaxBytes: 2000}, resolve.Wishes{}, spec)
			f := files{r}
			ext4, root := f.system("ext4")
			tmpfs, tmp := f.system("tmpfs")
			pipefs, _ := f.system("pipefs")
			etc := f.dentry(root, ext4, "etc", 1)
			a := f.dentry(tmp, tmpfs, "a", 1)
			deep := root
			for range 10 {
				deep = f.dentry(deep, ext4, long, 1)
			}
			below := []uint64{root} // so many directories
			for n := range 200 {
				below = append(below, f.dentry(below[n], ext4, "s", 1))
			}
			rootfs := f.mount(0, 0, root)
			onEtc := f.mount(rootfs, etc, tmp)
			bound := f.mount(onEtc, a, f.dentry(etc, ext4, "sub", 1))
			bad := f.dentry(0xffff_8880_0000_0000, ext4, "bad", 1)
			sub := f.dentry(etc, ext4, "sub", 1)
			for _, tc := range []struct {
				mount, dentry uint64
				want, alone   string
			}{
				{rootfs, root, "whole ", "whole "},
				{rootfs, etc, "whole etc<", "whole etc<"},
				{rootfs, f.dentry(etc, ext4, "passwd", 0), "whole gone passwd<etc<", "whole gone passwd<etc<"},
				{onEtc, tmp, "whole etc<", "whole "},
				{onEtc, f.dentry(a, tmpfs, "b", 1), "whole b<a<etc<", "whole b<a<"},
				{bound, f.dentry(word(mustAt(t, r, bound+24)), ext4, "c", 1), "whole c<a<etc<", "whole c<sub<etc<"},
				{bound, sub, "detached sub<etc<", "whole sub<etc<"},
				{rootfs, f.dentry(0, pipefs, "", 0), "nameless pipefs  4711", "nameless pipefs  4711"},
				{rootfs, deep, "cut " + strings.Repeat(long+"<", 8), "cut " + strings.Repeat(long+"<", 8)},
				{rootfs, below[31], "whole " + strings.Repeat("s<", 31), "whole " + strings.Repeat("s<", 31)},
				{rootfs, below[32], "whole " + strings.Repeat("s<", 32), "whole " + strings.Repeat("s<", 32)},
				{rootfs, below[33], "whole " + strings.Repeat("s<", 33), "whole " + strings.Repeat("s<", 33)},
				{rootfs, below[200], "cut " + strings.Repeat("s<", 128), "cut " + strings.Repeat("s<", 128)},
				{rootfs, f.dentry(bad, ext4, "x", 1), "fault 1 at 0xffff888000000000", "fault 1 at 0xffff888000000000"},
				{0xffff_8880_0000_0010, etc, "fault 1 at 0xffff888000000020", "whole etc<"},
				{rootfs, 0, "fault 1 at 0x0", "fault 1 at 0x0"},
			} {
				file := f.path(tc.mount, tc.dentry)
				r.records = nil
				r.do(call{args: []uint64{file, file + 16, tc.dentry}, result: []uint64{0}})
				require.Len(t, r.records, 1)
				ev := r.unit.Events[0]
				for i, v := range ev.Items {
					if v.Walk == nil {
						continue
					}
					want := tc.want
					if v.Walk.Mount < 0 {
						want = tc.alone
					}
					require.Equal(t, want, walked(r.records[0], ev, i), "%s of %s", v.Name, spec)
				}
				if least := ev.Layout.Least() + ev.Layout.Strings*512; ev.Layout.Strings > 0 && strings.Count(tc.want, "<") < shortNames && !strings.HasPrefix(tc.want, "cut") {
					require.Len(t, r.records[0], least, "a short path takes a short record")
				}
			}
		})
	}
}

func mustAt(t *testing.T, r *rig, addr uint64) []byte {
	b, err := r.at(addr, 8)
	require.NoError(t, err)
	return b
}

// A NULL pointer has no path, and strings beside a path are whole.
func TestPathBesideStrings(t *testing.T) {
	for _, n := range []int{3, 300, 600} {
		backEnds(t, func(t *testing.T, features compiler.Features) {
			r := newRigOn(t, compilertest.NewTarget(t, features, fileTypes()...), compiler.Options{MaxBytes: 500}, resolve.Wishes{}, "p either f=+0($arg1):string", "either(dentry:path, (char *)file, path:path)")
			f := files{r}
			ext4, root := f.system("ext4")
			text := strings.Repeat("a", n)
			r.do(call{args: []uint64{f.alloc([]byte(text + "\x00")), 0, f.dentry(root, ext4, "etc", 1)}, result: []uint64{0}})
			rec, ev := r.records[1], r.unit.Events[1]
			require.Equal(t, "whole etc<", walked(rec, ev, 0))
			require.Equal(t, fmt.Sprintf("%q", text), showSlot(rec, ev, 1))
			require.Equal(t, "fault 1 at 0x0", walked(rec, ev, 2))
		})
	}
}

// What has no path, and what cannot be done with one, is refused.
func TestPathsRefused(t *testing.T) {
	for _, tc := range []struct{ spec, want string }{
		{"either(file->f_path.dentry->d_sb:path)", "'file->f_path.dentry->d_sb' is a pointer to struct super_block: ':path' shows the path of a struct path, file or dentry"},
		{"either(return:path)", "'return' is int: ':path' shows the path of a struct path, file or dentry"},
		{`either(file:path == "/etc/passwd")`, "'file' is a path, and the program in the kernel does not compare paths"},
		{`either(file:path) if file->f_path:path ~ "/etc/*"`, "compare the last name: file->f_path.dentry->d_name.name:string"},
		{"either(file:path, count())", "'file' is a path, which does not fit into a key"},
		{`either(dentry:path ~ "x")`, "compare the last name: dentry->d_name.name:string"},
		{`either(path->dentry:path != "x")`, "compare the last name: path->dentry->d_name.name:string"},
		{`either(*path:path != "x")`, "compare the last name: (*path).dentry->d_name.name:string"},
	} {
		_, err := resolve.All(compilertest.ParseAll(t, tc.spec), compilertest.NewTarget(t, compilertest.WithTrampoline, fileTypes()...), resolve.Wishes{})
		require.ErrorContains(t, err, tc.want, tc.spec)
	}
	_, err := resolve.All(compilertest.ParseAll(t, "send(dev:path)"), compilertest.NewTarget(t, compilertest.WithTrampoline), resolve.Wishes{})
	require.ErrorContains(t, err, "':path' shows the path of a struct path, file or dentry")
}
