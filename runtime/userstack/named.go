package userstack

import "github.com/ksnoop/ksnoop/runtime/known"

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
