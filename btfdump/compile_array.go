package btfdump

import (
	"fmt"

	"github.com/cilium/ebpf/btf"
)

// array plans an array. One without elements at the very end of the value is
// flexible.
func (c *compiler) array(a *btf.Array, tail bool) (op, error) {
	if err := c.enter(); err != nil {
		return op{}, err
	}
	defer c.leave()

	first := c.reserve(1)
	elem, err := c.value(a.Type, false)
	if err != nil {
		return op{}, fmt.Errorf("element: %w", err)
	}
	size := uint64(elem.size) * uint64(a.Nelems)
	if size > maxSize {
		return op{}, errTooLarge
	}

	o := op{kind: kindArray, size: uint32(size), first: first, n: a.Nelems}
	o.tail = tail && a.Nelems == 0
	if i, ok := underlying(a.Type).(*btf.Int); ok && i.Size == 1 {
		o.kind = byteArray(i)
		elem.kind = kindChar
	}
	c.ops[first] = elem
	return o, nil
}

// byteArray tells text from flags from bytes.
func byteArray(i *btf.Int) kind {
	switch {
	case i.Name == "char" || i.Encoding&btf.Char != 0:
		return kindChars
	case i.Encoding&btf.Bool != 0:
		return kindBools
	}
	return kindBytes
}
