package render

import (
	goruntime "runtime"
	"sync"
	"sync/atomic"

	"github.com/ksnoop/ksnoop/kallsyms"
)

// PointerNames names what pointers inside values point to: functions and variables of
// the kernel. It reads the symbols in the background when it sees the first address
// that may have one, and names nothing before they are there: no event waits for them.
type PointerNames struct {
	read  func() (*kallsyms.Table, error)
	first uint64 // see firstKernelAddress
	begin sync.Once
	wait  bool                           // see Wait
	table atomic.Pointer[kallsyms.Table] // nil until it has been read
	known [1 << knownBits]pointerName    // names that were looked up
}

// pointerName is what is at an address. Most pointers are to the same few objects.
type pointerName struct {
	addr   uint64
	name   string // or "" if there is nothing
	offset uint64
}

const knownBits = 10

// NewPointerNames returns names by the table that read returns. If that fails, pointers
// stay without names.
func NewPointerNames(read func() (*kallsyms.Table, error)) *PointerNames {
	return NewPointerNamesOf(goruntime.GOARCH, read)
}

// NewPointerNamesOf returns names of a kernel of another architecture, as Go calls it.
func NewPointerNamesOf(arch string, read func() (*kallsyms.Table, error)) *PointerNames {
	return &PointerNames{read: read, first: firstKernelAddress[arch]}
}

// Set makes a table the one that names what pointers point to from now on.
func (p *PointerNames) Set(table *kallsyms.Table) {
	clear(p.known[:])
	p.table.Store(table)
}

// Wait makes the first value that has such an address wait for the symbols.
func (p *PointerNames) Wait() { p.wait = true }

func (p *PointerNames) start() {
	if p.wait {
		p.load()
		return
	}
	go p.load()
}

// at returns the function or variable that contains an address of the kernel, and the
// offset in it.
func (p *PointerNames) at(addr uint64) (name string, offset uint64, ok bool) {
	if addr < p.first {
		return "", 0, false
	}
	table := p.table.Load()
	if table == nil {
		p.begin.Do(p.start)
		if table = p.table.Load(); table == nil {
			return "", 0, false
		}
	}
	k := &p.known[(addr*hashFactor)>>(64-knownBits)]
	if k.addr != addr {
		*k = p.lookUp(table, addr)
	}
	return k.name, k.offset, k.name != ""
}

// firstKernelAddress is the least address that the kernel and its modules can have, by
// architecture. The memory that it allocates is mostly below that.
var firstKernelAddress = map[string]uint64{"amd64": 0xffffffff80000000, "arm64": 0xffff800000000000}

// hashFactor spreads addresses (2^64 divided by the golden ratio).
const hashFactor = 0x9e3779b97f4a7c15

// load reads the table, with the order of its addresses.
func (p *PointerNames) load() {
	table, err := p.read()
	if err != nil || table.NeedAddresses() != nil {
		return
	}
	table.At(0)
	p.table.Store(table)
}

// lookUp returns what is at an address. What comes after the last symbol of the
// kernel, or of a module, is allocated memory.
func (p *PointerNames) lookUp(table *kallsyms.Table, addr uint64) pointerName {
	symbol, offset, ok := pointedAt(table, addr)
	if !ok || symbol.Addr < p.first || offset > 0 && offset >= table.Size(symbol) {
		return pointerName{addr: addr}
	}
	return pointerName{addr, PlainName(symbol.Name), offset}
}
