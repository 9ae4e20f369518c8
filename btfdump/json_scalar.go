package btfdump

import (
	"math"
	"slices"
	"strconv"
)

// jsonScalar prints a value. The data must have all its bytes.
func (p *printer) jsonScalar(o *op, at int) {
	switch o.kind {
	case kindEnum:
		p.jsonEnum(o, p.number(o, at))
	case kindPointer:
		p.dst = append(p.dst, '"')
		p.pointer(p.number(o, at), appendJSONName)
		p.dst = append(p.dst, '"')
	case kindFloat:
		p.jsonFloat(p.have(o, at))
	default:
		p.jsonInt(o, at)
	}
}

// jsonInt prints numbers of up to 64 bits with all their digits. Wider numbers
// are strings in hex, since few JSON parsers would keep all their digits.
func (p *printer) jsonInt(o *op, at int) {
	switch {
	case o.width > 64:
		p.dst = append(p.dst, '"')
		p.hex128(p.bits(o, at))
		p.dst = append(p.dst, '"')
	case o.width == 0 && o.size > 8:
		p.jsonWide(p.have(o, at))
	default:
		p.jsonNumber(o, p.number(o, at))
	}
}

// jsonNumber prints a number. A bool that is neither 0 nor 1 is printed as a
// number too.
func (p *printer) jsonNumber(o *op, v uint64) {
	switch {
	case o.truth && v == 0:
		p.dst = append(p.dst, "false"...)
	case o.truth && v == 1:
		p.dst = append(p.dst, "true"...)
	default:
		p.decimal(o, v)
	}
}

func (p *printer) jsonWide(b []byte) {
	p.dst = append(p.dst, '"')
	p.wide(b)
	p.dst = append(p.dst, '"')
}

func (p *printer) jsonEnum(o *op, v uint64) {
	e := o.enum
	i, ok := slices.BinarySearch(e.values, v&ones(e.width))
	if !ok {
		p.decimal(o, v)
		return
	}
	p.dst = append(p.dst, '"')
	p.dst = appendJSONName(p.dst, e.names[i])
	p.dst = append(p.dst, '"')
}

// jsonFloat prints the fewest digits that identify the number.
func (p *printer) jsonFloat(b []byte) {
	v := load(b[:min(len(b), 8)], p.d.opts.BigEndian)
	switch n := len(b); {
	case n == 2:
		p.jsonDouble(half(uint16(v)), 64)
	case n == 4:
		p.jsonDouble(float64(math.Float32frombits(uint32(v))), 32)
	case n == 8:
		p.jsonDouble(math.Float64frombits(v), 64)
	case (n == 12 || n == 16) && !p.d.opts.BigEndian:
		p.jsonExtended(v, uint16(load(b[8:10], false)))
	default:
		p.jsonWide(b)
	}
}

func (p *printer) jsonExtended(mantissa uint64, signExp uint16) {
	if f, ok := extended(mantissa, signExp); ok {
		p.jsonDouble(f, 64)
		return
	}
	p.dst = append(p.dst, '"')
	p.beyondDouble(mantissa, signExp)
	p.dst = append(p.dst, '"')
}

// jsonDouble prints a number. NaN and infinities, which JSON does not have, are
// strings in the spelling that JavaScript, Python and Go parse.
func (p *printer) jsonDouble(v float64, size int) {
	switch {
	case math.IsNaN(v):
		p.dst = append(p.dst, `"NaN"`...)
	case math.IsInf(v, 1):
		p.dst = append(p.dst, `"Infinity"`...)
	case math.IsInf(v, -1):
		p.dst = append(p.dst, `"-Infinity"`...)
	default:
		p.dst = strconv.AppendFloat(p.dst, v, 'g', -1, size)
	}
}
