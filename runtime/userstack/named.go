package userstack

// Key identifies a frame of a process as the kernel has written it.
type Key struct {
	PID    uint32
	Caller bool // whether it is of a caller, and not the innermost one
	Raw    [FrameSize]byte
}

// Named remembers how frames were named. The zero value remembers none. A Stacks with
// a Named takes the names from there: of a process that is on another machine.
type Named struct {
	frames map[Key]Frame
	size   int // of the texts of all that were added, in bytes
}

// mostNamed is the number of frames that are remembered, and mostTexts the size of their
// texts in bytes. After that, all are forgotten. The writer of a recording and its
// reader do so at the same frame.
const (
	mostNamed = 1 << 16
	mostTexts = 64 << 20
)

// Add remembers a frame, and reports whether that is new.
func (n *Named) Add(k Key, f Frame) bool {
	if known, ok := n.frames[k]; ok && known == f {
		return false
	}
	size := len(f.Symbol) + len(f.File) + len(f.BuildID)
	if n.size += size; len(n.frames) >= mostNamed || n.size > mostTexts {
		clear(n.frames)
		n.size = size
	}
	if n.frames == nil {
		n.frames = map[Key]Frame{}
	}
	n.frames[k] = f
	return true
}
