package codegen

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// memory has regions of fake kernel and user memory. No two of them touch.
type memory struct {
	regions []region // by address
	next    uint64   // for alloc
}

type region struct {
	addr  uint64
	bytes []byte
}

// alloc puts b into memory and returns its address.
func (m *memory) alloc(b []byte) uint64 {
	addr := m.next
	m.put(addr, b)
	m.next += uint64(len(b)+8192) &^ 4095
	return addr
}

// put puts b into memory at an address.
func (m *memory) put(addr uint64, b []byte) {
	i, there := slices.BinarySearchFunc(m.regions, addr, region.compare)
	if there {
		m.regions[i].bytes = b
		return
	}
	m.regions = slices.Insert(m.regions, i, region{addr, b})
}

func (r region) compare(addr uint64) int { return cmp.Compare(r.addr, addr) }

var errFault = errors.New("no memory there")

// at returns n bytes of memory.
func (m *memory) at(addr, n uint64) ([]byte, error) {
	i, there := slices.BinarySearchFunc(m.regions, addr, region.compare)
	if !there {
		i--
	}
	if i >= 0 {
		r := m.regions[i]
		if off := addr - r.addr; off <= uint64(len(r.bytes)) && n <= uint64(len(r.bytes))-off {
			return r.bytes[off:][:n], nil
		}
	}
	return nil, fault{addr, n}
}

// fault is the error for an access to unmapped memory. It is a type because
// formatting an error each time would be too slow.
type fault struct{ addr, n uint64 }

func (f fault) Error() string { return fmt.Sprintf("%#x+%d: %v", f.addr, f.n, errFault) }
func (f fault) Unwrap() error { return errFault }
