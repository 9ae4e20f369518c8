package btfdump

import (
	"math/bits"
	"strconv"
)

const hexDigits = "0123456789abcdef"

// scalarOrCut prints a value that is shown whole or not at all.
func (p *printer) scalarOrCut(o *op, at int) {
	if p.missing(o, at) {
		p.mark()
		return
	}
	p.scalar(o, at)
}

func (p *printer) scalar(o *op, at int) {
	switch {
	case o.kind == kindEnum:
		p.enum(o, p.number(o, at))
	case o.width != 0:
		p.bitfield(o, at)
	case o.kind == kindInt:
		p.decimal(o, p.number(o, at))
	case o.kind == kindChar:
		p.char(o, p.number(o, at))
	case o.kind == kindPointer:
		p.hex(p.number(o, at))
	case o.kind == kindFuncPtr:
		p.funcPtr(p.number(o, at), appendClean)
	case o.kind == kindFloat:
		p.float(p.have(o, at))
	default:
		p.wide(p.have(o, at))
	}
}

// number reads up to 64 bits, extended by the sign of the type.
func (p *printer) number(o *op, at int) uint64 {
	var v uint64
	width := uint(o.width)
	if width != 0 {
		_, v = p.bits(o, at)
	} else {
		width = 8 * uint(o.size)
		v = load(p.have(o, at), p.d.opts.BigEndian)
	}
	if o.signed {
		return signExtend(v, width)
	}
	return v
}

func (p *printer) decimal(o *op, v uint64) {
	if o.signed {
		p.dst = strconv.AppendInt(p.dst, int64(v), 10)
	} else {
		p.dst = strconv.AppendUint(p.dst, v, 10)
	}
}

func (p *printer) hex(v uint64) {
	p.dst = append(p.dst, "0x"...)
	for shift := (bits.Len64(v|1) - 1) &^ 3; shift >= 0; shift -= 4 {
		p.dst = append(p.dst, hexDigits[v>>shift&15])
	}
}

// char prints an element of a char array.
func (p *printer) char(o *op, v uint64) {
	switch {
	case v == '\'' || v == '\\':
		p.dst = append(p.dst, '\'', '\\', byte(v), '\'')
	case v >= ' ' && v <= '~':
		p.dst = append(p.dst, '\'', byte(v), '\'')
	default:
		p.decimal(o, v)
	}
}

// bitfield prints signed ones as numbers and all others, which tend to be
// flags, in hex.
func (p *printer) bitfield(o *op, at int) {
	if o.width <= 64 {
		if v := p.number(o, at); o.signed {
			p.decimal(o, v)
		} else {
			p.hex(v)
		}
		return
	}
	hi, lo := p.bits(o, at)
	p.hex128(hi, lo)
}

func (p *printer) hex128(hi, lo uint64) {
	if hi == 0 {
		p.hex(lo)
		return
	}
	p.hex(hi)
	for shift := 60; shift >= 0; shift -= 4 {
		p.dst = append(p.dst, hexDigits[lo>>shift&15])
	}
}

// wide prints an int of any size in hex.
func (p *printer) wide(b []byte) {
	p.dst = append(p.dst, "0x"...)
	start := len(p.dst)
	for i := range b {
		c := b[i]
		if !p.d.opts.BigEndian {
			c = b[len(b)-1-i]
		}
		if len(p.dst) > start || c > 15 {
			p.dst = append(p.dst, hexDigits[c>>4], hexDigits[c&15])
		} else if c != 0 {
			p.dst = append(p.dst, hexDigits[c])
		}
	}
	if len(p.dst) == start {
		p.dst = append(p.dst, '0')
	}
}

// funcPtr prints an address and, if it has one, its symbol, whose name is
// escaped by appendName.
func (p *printer) funcPtr(v uint64, appendName func(dst []byte, name string) []byte) {
	p.hex(v)
	if v == 0 || p.d.opts.Symbolize == nil {
		return
	}
	name, offset, ok := p.d.opts.Symbolize(v)
	if !ok {
		return
	}
	p.dst = append(p.dst, " <"...)
	p.dst = appendName(p.dst, name)
	if offset != 0 {
		p.dst = append(p.dst, '+')
		p.hex(offset)
	}
	p.dst = append(p.dst, '>')
}
