package compiler

// PathWalk describes how a program gets from a struct path, file or dentry to the
// names of the path: through the parents of dentries, and from the root of each
// mount to where it is mounted. All fields are offsets in bytes.
type PathWalk struct {
	// Mount and Dentry are the offsets of the two pointers of a struct path from
	// where the value points. Mount is -1 if the value points to a dentry, whose
	// mount is not known: the path ends at the root of its file system.
	Mount, Dentry int
	// These are in struct dentry. Hashed is the offset of the pointer that is NULL
	// when the name is gone.
	Parent, Name, Hashed, Inode, Super int
	// These are in struct mount, and in the struct vfsmount in it.
	MountOf, MountParent, Mountpoint, MountRoot int
	// These are in struct super_block, file_system_type and inode.
	SuperRoot, Type, TypeName, Ino int
}

// WalkSpan is the largest number of bytes that a walk reads at once, from one pointer
// of a structure to the end of another.
const WalkSpan = 64

// Offsets in the data of a path.
const (
	PathLength = 0 // u32: bytes of names
	PathEnd    = 4 // u8: a [PathEnding]
	PathGone   = 5 // u8: 1 if the file no longer has a name
	PathIno    = 8 // u64: number of the inode, for [PathNameless]
	PathNames  = 16
	// PathName is the offset of the name of a [PathNameless] file. The name of its
	// file system is at PathNames.
	PathName = PathNames + 64
)

// PathEnding tells where a walk ended.
type PathEnding uint8

// The endings.
const (
	PathWhole    PathEnding = iota // at the root
	PathCut                        // there was no room for more names
	PathDetached                   // at the root of a file system, of which the mount shows a directory that the file is not below
	PathNameless                   // the file is in no directory: a pipe, a socket
)

// MostNames is the largest number of steps of a walk: names and mounts.
const MostNames = 128

// LongestName is NAME_MAX with a NUL.
const LongestName = 256
