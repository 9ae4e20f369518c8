package btfdump

import "strconv"

const hexDigits = "0123456789abcdef"

// scalar prints a scalar. The data must have all its bytes.
func (p *printer) scalar(o *op, at int) {
	switch {
	case o.kind == kindEnum:
		p.enum(o, p.number(o, at))
	case o.width != 0:
		p.bitfield(o, at)
	case o.kind == kindInt:
		p.decimal(o, p.number(o, at))
	case o.kind == kindChar:
		p.dst = appendChar(p.dst, o, byte(p.number(o, at)))
	case o.kind == kindPointer:
		p.pointer(p.number(o, at), appendPlain)
	case o.kind == kindFloat:
		p.float(p.have(o, at))
	default:
		p.wide(p.have(o, at))
	}
}

// number reads up to 64 bits, sign-extended if the type is signed.
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
	p.dst = appendHex(p.dst, v)
}

// appendChar appends an element of a char array.
func appendChar(dst []byte, o *op, c byte) []byte {
	switch {
	case c == '\'' || c == '\\':
		return append(dst, '\'', '\\', c, '\'')
	case c >= ' ' && c <= '~':
		return append(dst, '\'', c, '\'')
	case o.signed:
		return strconv.AppendInt(dst, int64(int8(c)), 10)
	}
	return strconv.AppendUint(dst, uint64(c), 10)
}

// bitfield prints a bitfield: in decimal if it is signed, else in hex, as
// unsigned bitfields are often flags.
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

// pointer prints an address and its symbol, if it has one. The function appendName
// escapes the name of the symbol.
func (p *printer) pointer(v uint64, appendName func(dst []byte, name string) []byte) {
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
