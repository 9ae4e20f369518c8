package runtime

import (
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/ksnoop/ksnoop/compiler"
)

// appendPath appends the path whose names a walk has read, see [compiler.PathWalk],
// as the kernel writes it: behind " (deleted)" is a file without a name, and a path
// that begins at nothing mounted begins with "(unreachable)". If the first names
// are missing, the path begins with ".../", and cut is set.
func appendPath(dst, data []byte) (_ []byte, cut bool) {
	names := data[compiler.PathNames:]
	names = names[:min(uint64(binary.NativeEndian.Uint32(data[compiler.PathLength:])), uint64(len(names)))]
	switch compiler.PathEnding(data[compiler.PathEnd]) {
	case compiler.PathNameless:
		return appendNameless(dst, data), false
	case compiler.PathDetached:
		dst = append(dst, "(unreachable)"...)
	case compiler.PathCut:
		dst, cut = append(dst, "..."...), true
	}
	if len(names) == 0 {
		dst = append(dst, '/')
	}
	dst = appendNames(dst, names)
	if data[compiler.PathGone] != 0 {
		dst = append(dst, " (deleted)"...)
	}
	return dst, cut
}

// appendNames appends names in the opposite order, each behind a slash. In names,
// each ends with a NUL.
func appendNames(dst, names []byte) []byte {
	from := len(dst)
	dst = append(dst, names...)
	path := dst[from:]
	slices.Reverse(path) // now each name is behind its NUL, backwards
	for i := 0; i < len(path); {
		path[i] = '/'
		end := i + 1
		for end < len(path) && path[end] != 0 {
			end++
		}
		slices.Reverse(path[i+1 : end])
		i = end
	}
	return dst
}

// namelessSystems has what the kernel shows before the number of an inode.
var namelessSystems = map[string]string{"pipefs": "pipe", "sockfs": "socket", "pidfs": "pidfd"}

// appendNameless appends what the kernel shows for a file in no directory, such as
// "pipe:[4711]". What that is depends on code of the file system; where it is not
// known here, it is the name of the file system.
func appendNameless(dst, data []byte) []byte {
	system := untilNUL(data[compiler.PathNames:compiler.PathName])
	name := untilNUL(data[compiler.PathName:])
	switch string(system) {
	case "anon_inodefs":
		return append(append(dst, "anon_inode:"...), name...)
	case "tmpfs", "hugetlbfs", "secretmem": // memory that is shared by processes
		dst = append(append(dst, '/'), name...)
		return append(dst, " (deleted)"...)
	}
	if name, ok := namelessSystems[string(system)]; ok {
		dst = append(dst, name...)
	} else {
		dst = append(dst, system...)
	}
	dst = append(dst, ":["...)
	dst = strconv.AppendUint(dst, binary.NativeEndian.Uint64(data[compiler.PathIno:]), 10)
	return append(dst, ']')
}
