package userstack

import (
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// fileID identifies a mapped file.
type fileID struct {
	device string
	inode  uint64
	name   string
}

// file describes a file with code.
type file struct {
	name     string
	id       string // build ID, 20 bytes; "" if it has none
	segments []elf.ProgHeader
	symbols  symbols
}

// frame returns the place at an offset in the file.
func (f *file) frame(offset uint64, caller bool) Frame {
	fr := Frame{File: f.name, Offset: offset, BuildID: hex.EncodeToString(trimID(f.id))}
	at := offset
	if caller {
		at-- // a call that never returns may be the last instruction of its function
	}
	for _, p := range f.segments {
		if at-p.Off < p.Filesz && at >= p.Off {
			addr := at - p.Off + p.Vaddr
			if name, start, ok := f.symbols.at(addr); ok {
				fr.Symbol, fr.In = name, addr-start+offset-at
			}
			break
		}
	}
	return fr
}

// openMapped opens the files with code of a process, so that they are known by
// their build IDs.
func (s *Stacks) openMapped(pid uint32, when time.Duration) {
	for i, m := range s.mapped(pid, when).mappings {
		if m.isFile() {
			s.open(pid, &s.maps[pid].mappings[i])
		}
	}
}

// mostFiles and mostBytesKept bound the files that are remembered, by their number and by
// the memory of their functions.
const (
	mostFiles     = 1000
	mostBytesKept = 256 << 20
)

// open describes a mapped file. If it cannot be read, only its name is known: if the
// process has just gone, another one may still have the file.
func (s *Stacks) open(pid uint32, m *mapping) *file {
	key := fileID{m.device, m.inode, m.name}
	if f := s.files[key]; f != nil {
		return f
	}
	if len(s.files) >= mostFiles || s.bytes >= mostBytesKept {
		clear(s.files)
		clear(s.byID)
		s.bytes = 0
	}
	f := s.read(pid, m)
	if f == nil {
		return &file{name: m.name}
	}
	f.name = m.name
	s.files[key] = f
	s.bytes += f.symbols.bytes()
	if f.id != "" && s.byID[f.id] == nil {
		s.byID[f.id] = f
	}
	return f
}

// read reads a file as the process has it: by the mapping itself, if that is
// allowed, or by its name below the root of the process, or, as the process may have
// gone, below ours. It returns nil if the file is not there.
func (s *Stacks) read(pid uint32, m *mapping) *file {
	dir := filepath.Join(s.proc, strconv.Itoa(int(pid)))
	root := dir + "/root"
	mapped, err := openRegular(fmt.Sprintf("%s/map_files/%x-%x", dir, m.start, m.end))
	if err != nil {
		mapped, err = openInode(root+m.name, m.inode)
	}
	if err != nil {
		root = ""
		mapped, err = openInode(m.name, m.inode)
	}
	if err != nil {
		return nil
	}
	defer mapped.Close()
	f := parse(mapped)
	if len(f.symbols.all) == 0 && f.id != "" {
		f.addDebug(root)
	}
	return f
}

// addDebug takes the symbols from the file that a package with debugging symbols
// has for the build ID.
func (f *file) addDebug(root string) {
	id := hex.EncodeToString(trimID(f.id))
	debug, err := openRegular(fmt.Sprintf("%s/usr/lib/debug/.build-id/%s/%s.debug", root, id[:2], id[2:]))
	if err != nil {
		return
	}
	defer debug.Close()
	if other := parse(debug); other.id == f.id {
		f.symbols = other.symbols // at the same addresses
	}
}

var (
	errNoFile = errors.New("not a file")
	errOther  = errors.New("another file")
)

// openRegular opens a file, unless it is something else, such as a pipe. The owner
// of the file decides what is there.
func openRegular(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), path)
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNoFile
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// openInode opens a regular file that has the inode number of a mapped one. Devices cannot
// be compared: overlayfs and btrfs show different ones.
func openInode(path string, inode uint64) (*os.File, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(int(f.Fd()), &st); err == nil && st.Ino != inode {
		err = errOther
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
