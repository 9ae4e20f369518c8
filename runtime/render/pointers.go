package render

import (
	goruntime "runtime"
	"sync"
	"sync/atomic"

	"github.com/ksnoop/ksnoop/kallsyms"
)

// PointerNames names what pointers inside values point to: functions and variables of
// the kernel. It opens what finds symbols in the background when it sees the first address
// that may have one, and names nothing before that is there: no event waits for it.
type PointerNames struct {
	open   func() (kallsyms.Finder, error)
	first  uint64    // see firstKernelAddress
	begin  sync.Once // in the background
	loaded sync.Once
	wait   bool                            // see Wait
	finder atomic.Pointer[kallsyms.Finder] // nil until it has been opened
	known  [1 << knownBits]pointerName     // names that were looked up
}

// pointerName names an address. Most pointers are to the same few objects.
type pointerName struct {
	addr   uint64
	name   string // or "" if there is nothing
	offset uint64
}

const knownBits = 10

// NewPointerNames returns names by what open returns. If that fails, pointers stay
// without names.
func NewPointerNames(open func() (kallsyms.Finder, error)) *PointerNames {
	return NewPointerNamesOf(goruntime.GOARCH, open)
}

// NewPointerNamesOf returns names of a kernel of another architecture, as Go calls it.
func NewPointerNamesOf(arch string, open func() (kallsyms.Finder, error)) *PointerNames {
	return &PointerNames{open: open, first: firstKernelAddress[arch]}
}

// Set replaces the finder by which pointers are named.
func (p *PointerNames) Set(f kallsyms.Finder) {
	clear(p.known[:])
	p.finder.Store(&f)
}

// Wait makes the first value that has an address of the kernel wait for the symbols.
func (p *PointerNames) Wait() { p.wait = true }

// start begins to open the finder of symbols.
func (p *PointerNames) start() { go p.loaded.Do(p.load) }

// at returns the function or variable that contains an address of the kernel, and the
// offset in it. It returns false before the symbols are there, unless Wait was called.
func (p *PointerNames) at(addr uint64) (name string, offset uint64, ok bool) {
	return p.find(addr, p.wait)
}

// awaited returns what at returns, but waits for the symbols.
func (p *PointerNames) awaited(addr uint64) (name string, offset uint64, ok bool) {
	return p.find(addr, true)
}

func (p *PointerNames) find(addr uint64, wait bool) (name string, offset uint64, ok bool) {
	if addr < p.first {
		return "", 0, false
	}
	finder := p.finder.Load()
	if finder == nil {
		if wait {
			p.loaded.Do(p.load)
		} else {
			p.begin.Do(p.start)
		}
		if finder = p.finder.Load(); finder == nil {
			return "", 0, false
		}
	}
	k := &p.known[(addr*hashFactor)>>(64-knownBits)]
	if k.addr != addr {
		*k = p.lookUp(*finder, addr)
	}
	return k.name, k.offset, k.name != ""
}

// firstKernelAddress is the least address that the kernel and its modules can have, by
// architecture. The memory that it allocates is mostly below that.
var firstKernelAddress = map[string]uint64{"amd64": 0xffffffff80000000, "arm64": 0xffff800000000000}

// hashFactor spreads addresses (2^64 divided by the golden ratio).
const hashFactor = 0x9e3779b97f4a7c15

// load opens what finds symbols. A table sorts its addresses at the first lookup.
func (p *PointerNames) load() {
	finder, err := p.open()
	if err != nil {
		return
	}
	finder.At(0)
	p.finder.Store(&finder)
}

// lookUp returns the name of an address. Memory after the last symbol of the kernel,
// or of a module, was allocated and has none.
func (p *PointerNames) lookUp(finder kallsyms.Finder, addr uint64) pointerName {
	symbol, offset, ok := pointedAt(finder, addr)
	if !ok || symbol.Addr < p.first || offset > 0 && offset >= finder.Size(symbol) {
		return pointerName{addr: addr}
	}
	return pointerName{addr, PlainName(symbol.Name), offset}
}
