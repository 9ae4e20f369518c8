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
// are 0xff.
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

// add adds a symbol, and a mark where it ends. If its size is not known, the mark is in a
// module of its own, so that a reader does not know the size either.
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

// mostSymbols is the largest size of all symbols in bytes that is accepted. Those of a
// kernel take 10 MB.
const mostSymbols = 64 << 20

// symbols are those that a reader knows, in parts. Each part has more than twice the
// lines of all that follow it, so that there are few, and a line is parsed again only when
// its part has become twice as large.
type symbols struct {
	lines  []byte // of /proc/kallsyms
	parts  []symbolPart
	parsed int // bytes of lines, some of them repeatedly
}

// symbolPart has the lines from an offset until the next part.
type symbolPart struct {
	from  int
	table *kallsyms.Table
}

// add adds lines. That of a symbol comes with the mark of its end.
func (s *symbols) add(lines []byte) error {
	from, parts := len(s.lines), s.parts
	if s.lines = append(s.lines, lines...); len(s.lines) > mostSymbols || !bytes.HasSuffix(lines, []byte("\n")) {
		return errContent
	}
	for n := len(parts); n > 0 && from-parts[n-1].from <= 2*(len(s.lines)-from); n-- {
		from, parts = parts[n-1].from, parts[:n-1]
	}
	s.parsed += len(s.lines) - from
	table, err := kallsyms.Read(bytes.NewReader(s.lines[from:]), nil)
	if err == nil {
		s.parts = append(parts, symbolPart{from, table})
	}
	return err
}

// At returns the symbol that contains an address, and the offset in it. In a part that does
// not have this symbol, an earlier one may seem to reach as far: the nearest is right.
func (s *symbols) At(addr uint64) (found kallsyms.Symbol, offset uint64, ok bool) {
	for _, p := range s.parts {
		if other, off, there := p.table.At(addr); there && (!ok || off < offset) {
			found, offset, ok = other, off, true
		}
	}
	return found, offset, ok
}

// Size returns the number of bytes of a symbol, or 0 if it is not known.
func (s *symbols) Size(of kallsyms.Symbol) uint64 {
	for _, p := range s.parts {
		if _, offset, ok := p.table.At(of.Addr); ok && offset == 0 {
			return p.table.Size(of)
		}
	}
	return 0
}

// Lookup returns all symbols with exactly this name.
func (s *symbols) Lookup(name string) (all []kallsyms.Symbol) {
	for _, p := range s.parts {
		all = append(all, p.table.Lookup(name)...)
	}
	return all
}
