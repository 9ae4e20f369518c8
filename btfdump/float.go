package btfdump

import (
	"math"
	"strconv"
)

// float prints a number like C's %f. No kernel has values of these types; they
// occur in the BTF of user space and in tests.
func (p *printer) float(b []byte) {
	switch v := load(b[:min(len(b), 8)], p.d.opts.BigEndian); len(b) {
	case 2:
		p.double(half(uint16(v)))
	case 4:
		p.double(float64(math.Float32frombits(uint32(v))))
	case 8:
		p.double(math.Float64frombits(v))
	case 12, 16:
		if p.d.opts.BigEndian {
			p.wide(b) // not x86: there are several formats, and BTF does not say which
			return
		}
		signExp := uint16(load(b[8:10], false))
		if f, ok := extended(v, signExp); ok {
			p.double(f)
			return
		}
		p.beyondDouble(v, signExp)
	default:
		p.wide(b)
	}
}

func (p *printer) double(v float64) {
	switch {
	case math.IsNaN(v) && math.Signbit(v):
		p.dst = append(p.dst, "-nan"...)
	case math.IsNaN(v):
		p.dst = append(p.dst, "nan"...)
	case math.IsInf(v, 1):
		p.dst = append(p.dst, "inf"...)
	case math.IsInf(v, -1):
		p.dst = append(p.dst, "-inf"...)
	default:
		p.dst = strconv.AppendFloat(p.dst, v, 'f', 6, 64)
	}
}

// half converts an IEEE 754 binary16 number.
func half(v uint16) float64 {
	exp := int(v >> 10 & 31)
	frac := float64(v & 0x3ff)
	f := math.Ldexp(1024+frac, exp-25)
	switch {
	case exp == 0:
		f = math.Ldexp(frac, -24)
	case exp == 31 && frac != 0:
		f = math.NaN()
	case exp == 31:
		f = math.Inf(1)
	}
	if v>>15 != 0 {
		return math.Copysign(f, -1)
	}
	return f
}

// extended returns the double nearest to a number in x86's 80-bit format. It
// returns false if the number is out of range.
func extended(mantissa uint64, signExp uint16) (f float64, ok bool) {
	sign := 1 - 2*float64(signExp>>15)
	exp := int(signExp & 0x7fff)
	if exp == 0x7fff {
		f := math.Inf(1)
		if mantissa<<1 != 0 {
			f = math.NaN()
		}
		return math.Copysign(f, sign), true
	}
	f = math.Ldexp(float64(mantissa), extendedExp(signExp))
	return math.Copysign(f, sign), !math.IsInf(f, 0)
}

// extendedExp returns the exponent for a mantissa taken as an integer.
func extendedExp(signExp uint16) int {
	return max(int(signExp&0x7fff), 1) - 16383 - 63
}

// beyondDouble prints a number of x86's 80-bit format as C's %a does.
func (p *printer) beyondDouble(mantissa uint64, signExp uint16) {
	if signExp>>15 != 0 {
		p.dst = append(p.dst, '-')
	}
	p.hex(mantissa)
	p.dst = append(p.dst, "p+"...)
	p.dst = strconv.AppendInt(p.dst, int64(extendedExp(signExp)), 10)
}
