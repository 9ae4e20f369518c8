package btfdump

import "encoding/binary"

// ones returns a mask of the low width bits.
func ones(width uint) uint64 {
	if width >= 64 {
		return ^uint64(0)
	}
	return 1<<width - 1
}

// signExtend extends a signed number of width bits to 64 bits.
func signExtend(v uint64, width uint) uint64 {
	if width == 0 || width >= 64 {
		return v
	}
	return uint64(int64(v<<(64-width)) >> (64 - width))
}

// load reads a number of up to 8 bytes.
func load(b []byte, bigEndian bool) uint64 {
	if !bigEndian { // the common sizes, without the loop
		switch len(b) {
		case 8:
			return binary.LittleEndian.Uint64(b)
		case 4:
			return uint64(binary.LittleEndian.Uint32(b))
		case 1:
			return uint64(b[0])
		case 2:
			return uint64(binary.LittleEndian.Uint16(b))
		}
	}
	var v uint64
	for i, c := range b {
		if bigEndian {
			v = v<<8 | uint64(c)
		} else {
			v |= uint64(c) << (8 * i)
		}
	}
	return v
}

// bits reads a bitfield of up to 128 bits. The data must have all its bytes.
func (p *printer) bits(o *op, at int) (hi, lo uint64) {
	b := p.data[at : at+int(o.size)]
	if len(b) > 8 {
		return wideBits(b, uint(o.shift), uint(o.width), p.d.opts.BigEndian)
	}
	v := load(b, p.d.opts.BigEndian)
	shift := uint(o.shift)
	if p.d.opts.BigEndian {
		// Big endian machines count bits from the most significant one.
		shift = 8*uint(len(b)) - shift - uint(o.width)
	}
	return 0, v >> shift & ones(uint(o.width))
}

// wideBits reads a bitfield of up to 128 bits, bit by bit. No kernel type has one that
// spans more than 8 bytes.
func wideBits(b []byte, shift, width uint, bigEndian bool) (hi, lo uint64) {
	for i := range width {
		pos := shift + width - 1 - i
		flip := uint(0)
		if bigEndian {
			pos = shift + i
			flip = 7
		}
		bit := b[pos/8] >> (pos%8 ^ flip) & 1
		hi = hi<<1 | lo>>63
		lo = lo<<1 | uint64(bit)
	}
	return hi, lo
}
