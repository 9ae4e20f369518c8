// Package userstack names the frames of stacks of processes: by the file that the
// code is in, the offset there, and the function, if the file has its name.
//
//	stacks := userstack.New("/proc")
//	frames := stacks.Frames(pid, data, when) // data as bpf_get_stack wrote it
package userstack

import (
	"encoding/binary"
	"encoding/hex"
	"os"
	"slices"
	"time"

	"github.com/ksnoop/ksnoop/runtime/known"
)

// FrameSize is the size of struct bpf_stack_build_id in bytes.
const FrameSize = 32

// Frame is a place in the code of a process.
type Frame struct {
	Symbol  string // the function, or "" if it is not known
	In      uint64 // offset in the function
	File    string // the file, or what the kernel calls the memory, such as [vdso]; "" if it is not known
	BuildID string // of the file, in hex; "" if it is not known
	Offset  uint64 // offset in the file, if File or BuildID is known
	Address uint64 // in memory, if the file is not known
}

// The values of bpf_stack_build_id.status (include/uapi/linux/bpf.h).
const (
	noFrame = iota
	validID
	addressOnly
)

// Stacks names frames. It remembers files by their ids, and the mappings of a process
// until it is asked for a later time.
type Stacks struct {
	// Named has frames that were named before, or is nil.
	Named *Named

	proc  string // directory of processes; "" if they cannot be found by their ids
	files map[fileID]*file
	byID  map[string]*file         // by build ID
	none  map[string]time.Duration // until when no mapped file has a build ID, by process and ID
	maps  map[uint32]*snapshot
	bytes int // that the functions of files take
}

// Key identifies a frame of a process as the kernel has written it.
type Key struct {
	PID    uint32
	Caller bool // whether it is of a caller, and not the innermost one
	Raw    [FrameSize]byte
}

// Named remembers how frames were named. The zero value remembers none. A Stacks with
// a Named takes names from there, such as those of processes on another machine.
type Named struct{ frames known.Names[Key, Frame] }

// Cleared returns how often all frames were forgotten, as there were too many.
func (n *Named) Cleared() int { return n.frames.Cleared }

// Add remembers a frame, and reports whether that is new.
func (n *Named) Add(k Key, f Frame) bool {
	return n.frames.Add(k, f, len(f.Symbol)+len(f.File)+len(f.BuildID))
}

// New returns a Stacks that finds processes in a directory such as /proc, by the ids
// of the initial pid namespace. If proc is "", it names no files.
func New(proc string) *Stacks {
	return &Stacks{proc: proc, files: map[fileID]*file{}, byID: map[string]*file{}, none: map[string]time.Duration{}, maps: map[uint32]*snapshot{}}
}

// initialPIDNamespace is the link that /proc shows for the initial pid namespace
// (PROC_PID_INIT_INO in include/linux/proc_ns.h).
const initialPIDNamespace = "pid:[4026531836]"

// Running returns a Stacks for the running system. In a pid namespace of its own,
// where /proc has other ids, it names no files.
func Running() *Stacks {
	if ns, err := os.Readlink("/proc/self/ns/pid"); err != nil || ns != initialPIDNamespace {
		return New("")
	}
	return New("/proc")
}

// Frames decodes the frames of a process's stack at a time of CLOCK_MONOTONIC, the
// innermost first. The process need not exist any more: then files that it has in
// common with others are still known by their build IDs.
func (s *Stacks) Frames(pid uint32, data []byte, when time.Duration) []Frame {
	var frames []Frame
	s.Each(pid, data, when, func(_ Key, f Frame) { frames = append(frames, f) })
	return frames
}

// Each calls f with each frame that Frames returns.
func (s *Stacks) Each(pid uint32, data []byte, when time.Duration, f func(Key, Frame)) {
	k := Key{PID: pid}
	for raw := range slices.Chunk(data, FrameSize) {
		if len(raw) < FrameSize {
			break
		}
		copy(k.Raw[:], raw)
		if frame, ok := s.frame(&k, when); ok {
			f(k, frame)
			k.Caller = true
		}
	}
}

// frame names a frame. It returns false if there is none.
func (s *Stacks) frame(k *Key, when time.Duration) (Frame, bool) {
	if s.Named != nil {
		if f, ok := s.Named.frames.Of(*k); ok {
			return f, true
		}
	}
	var f Frame
	number := binary.NativeEndian.Uint64(k.Raw[24:])
	switch binary.NativeEndian.Uint32(k.Raw[:]) {
	case validID:
		if int64(number) < 0 { // no address of a file: the kernel names the mapping that follows it
			return Frame{}, false
		}
		f = s.byBuildID(k.PID, string(k.Raw[4:24]), number, when, k.Caller)
	case addressOnly:
		f = s.byAddress(k.PID, number, when, k.Caller)
	default:
		return Frame{}, false
	}
	f.Symbol, f.File = cut(f.Symbol), cut(f.File)
	return f, true
}

// HasAddresses reports whether a stack has addresses in memory, which mean something else
// in another process. Places in files with build IDs do not.
func HasAddresses(data []byte) bool {
	for i := 0; i+FrameSize <= len(data); i += FrameSize {
		if binary.NativeEndian.Uint32(data[i:]) == addressOnly {
			return true
		}
	}
	return false
}

// MostName is the largest size in bytes of a text of a [Frame]. Of longer ones, which
// any process can have, only the beginning is known.
const MostName = 4 << 10

func cut(name string) string { return name[:min(len(name), MostName)] }

// mostNone bounds what is remembered of files that were not found, and they are looked for
// again after noneFor: the process may have mapped more, or another one may have its id.
const (
	mostNone = 10_000
	noneFor  = time.Second
)

// byBuildID names a frame in the file with a build ID.
func (s *Stacks) byBuildID(pid uint32, id string, offset uint64, when time.Duration, caller bool) Frame {
	f := s.byID[id]
	missing := string(binary.NativeEndian.AppendUint32(nil, pid)) + id
	if f == nil && when >= s.none[missing] {
		s.openMapped(pid, when)
		if f = s.byID[id]; f == nil {
			if len(s.none) >= mostNone {
				clear(s.none)
			}
			s.none[missing] = when + noneFor
		}
	}
	if f == nil {
		return Frame{BuildID: hex.EncodeToString(trimID(id)), Offset: offset}
	}
	return f.frame(offset, caller)
}

// trimID removes the zeroes behind a build ID of fewer than 20 bytes.
func trimID(id string) []byte {
	n := len(id)
	for n > 8 && id[n-1] == 0 {
		n--
	}
	return []byte(id[:n])
}

// byAddress names a frame by what is mapped at its address.
func (s *Stacks) byAddress(pid uint32, addr uint64, when time.Duration, caller bool) Frame {
	at := addr
	if caller {
		at-- // of the call, which may be the last instruction of the mapping
	}
	m := s.mapped(pid, when).at(at)
	switch {
	case m == nil || m.name == "" || m.since > when:
		return Frame{Address: addr}
	case !m.isFile():
		return Frame{File: m.name, Offset: addr - m.start}
	}
	return s.open(pid, m).frame(addr-m.start+m.offset, caller)
}
