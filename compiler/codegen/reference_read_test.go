package codegen

// convert converts a number to another type.
func (t *cType) convert(n uint64) uint64 {
	if t.kind == cBool {
		if n != 0 {
			return 1
		}
		return 0
	}
	return cut(n, 8*t.size, t.signed)
}

// cut returns the number in the low bits.
func cut(n uint64, bits int, signed bool) uint64 {
	if bits == 64 {
		return n
	}
	n &= 1<<bits - 1
	if signed && n>>(bits-1) == 1 {
		n -= 1 << bits
	}
	return n
}

// width returns the number of bits of a cell's number.
func (c *cell) width() int {
	if c.bits != 0 {
		return c.bits
	}
	return 8 * c.typ.size
}

// number returns a cell with its number as 64 bits.
func (r *reference) number(c cell) cell {
	if c.in == isNumber || c.bad {
		c.in = isNumber
		return c
	}
	b := c.words
	if c.in == inMemory {
		b = r.read(&c, (c.shift+c.width()+7)/8)
	}
	if c.bad {
		c.in = isNumber
		return c
	}
	c.num = 0
	for i := range c.width() { // the last bit is the sign
		at := c.shift + i
		bit := uint64(b[at/8]) >> (at % 8) & 1
		if i == c.width()-1 && c.typ.signed {
			bit = -bit
		}
		c.num |= bit << i
	}
	c.in = isNumber
	return c
}

// read returns the bytes of a cell in memory.
func (r *reference) read(c *cell, n int) []byte {
	if c.bad {
		return nil
	}
	addr := c.base + c.off
	b, ok, straddles := r.k.mem.at(addr, uint64(n))
	r.open = r.open || straddles
	if !ok || int64(addr) >= 0 { // the helper for kernel memory does not read user memory
		c.bad = true
		return nil
	}
	return b
}

// text returns the string at an address.
func (r *reference) text(addr uint64, user bool) (string, bool) {
	if user != (int64(addr) >= 0) {
		return "", false
	}
	for n := uint64(0); ; n++ {
		b, ok, _ := r.k.mem.at(addr, n+1)
		if !ok {
			return "", false
		}
		if b[n] == 0 {
			return string(b[:n]), true
		}
	}
}
