package recording

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// firstKernelAddress is the least address that the kernel and its modules can have, by
// architecture.
var firstKernelAddress = map[string]uint64{"amd64": 0xffffffff80000000, "arm64": 0xffff800000000000}

// names finds the symbols that records refer to: whatever looks like an address of
// the kernel's code or data, wherever it is.
type names struct {
	finder kallsyms.Finder
	first  uint64
	told   map[kallsyms.Symbol]bool // in the file, without their types
	seen   [1 << seenBits]uint64
	lines  []byte // for the next block
}

const seenBits = 10

func newNames(finder kallsyms.Finder, arch string) *names {
	return &names{finder: finder, first: firstKernelAddress[arch], told: map[kallsyms.Symbol]bool{}}
}

// in adds the symbols at the addresses in data. The two highest bytes of all of them
// are set.
func (n *names) in(data []byte) {
	if n == nil {
		return
	}
	for at := 7; at < len(data); at++ {
		i := bytes.IndexByte(data[at:], 0xff)
		if i < 0 {
			return
		}
		if at += i; data[at-1] != 0xff {
			continue
		}
		if addr := order.Uint64(data[at-7:]); addr >= n.first {
			n.at(addr)
		}
	}
}

// at adds the symbols that contain an address and the one before it: a return address
// may be that of the next function.
func (n *names) at(addr uint64) {
	seen := &n.seen[addr*0x9e3779b97f4a7c15>>(64-seenBits)]
	if *seen == addr {
		return
	}
	*seen = addr
	for _, a := range []uint64{addr - 1, addr} {
		if s, _, ok := n.finder.At(a); ok {
			n.add(s)
		}
	}
}

// add adds a symbol, and a mark where it ends. That of one without a known size is in
// no module, so that a reader does not know the size either.
func (n *names) add(s kallsyms.Symbol) {
	key := s
	key.Type = 0
	if n.told[key] {
		return
	}
	n.told[key] = true
	if s.Type == 0 { // the kernel was asked, and does not tell
		s.Type = unknownType
	}
	n.line(s)
	end := kallsyms.Symbol{Addr: s.Addr + n.finder.Size(s), Type: s.Type, Name: kallsyms.EndMark, Module: s.Module}
	if end.Addr == s.Addr {
		end.Addr, end.Module = s.Addr+kallsyms.Reach, kallsyms.EndMark
	}
	n.line(end)
}

// unknownType is nm(1)'s type of what it does not know.
const unknownType = '?'

func (n *names) line(s kallsyms.Symbol) {
	n.lines = fmt.Appendf(n.lines, "%016x %c %s", s.Addr, s.Type, s.Name)
	if s.Module != "" {
		n.lines = fmt.Appendf(n.lines, "\t[%s]", s.Module)
	}
	n.lines = append(n.lines, '\n')
}

// places adds the symbols of the functions whose places kprobe_events lines show.
func (n *names) places(unit *compiler.Unit) {
	if n == nil {
		return
	}
	var done []string
	for _, ev := range unit.Events {
		name := ev.Probe.Func.Symbol
		if ev.Probe.Trace == nil || ev.Probe.Trace.Line == nil || slices.Contains(done, name) {
			continue
		}
		done = append(done, name)
		for _, s := range n.finder.Lookup(name) {
			if first, _, ok := n.finder.At(s.Addr); ok && (first.Name != s.Name || first.Module != s.Module) {
				n.add(first) // before s, as it is what At finds
			}
			n.add(s)
		}
	}
}
