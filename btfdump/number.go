package btfdump

import (
	"encoding/binary"
	"math/bits"
	"strconv"
)

// lines returns what a member of a structure at depth has before its label. If it returns
// false, numbers are printed as everything else is.
func (p *printer) lines(depth int, inArray bool) (before string, ok bool) {
	o := &p.d.opts
	switch {
	case inArray || o.SkipNames || o.BigEndian || depth > indented:
		return "", false
	case o.Compact:
		return "", true
	}
	return p.d.indent[:len(o.Indent)*(o.IndentLevel+depth)], true
}

// endLine appends what a member has after its value. Here and below, appending single
// bytes takes less time than appending strings.
func (p *printer) endLine(dst []byte) []byte {
	dst = append(dst, ',')
	if !p.d.opts.Compact {
		dst = append(dst, '\n')
	}
	return dst
}

// isNumber reports whether a value is printed as one number of up to 64 bits.
func (o *op) isNumber() bool { return (o.kind == kindInt || o.kind == kindPointer) && o.size <= 8 }

// numberLine prints a member that is a number, none of whose bytes is missing. Most
// members are numbers, and a structure takes half the time that it would with
// [printer.item].
func (p *printer) numberLine(o *op, at int, before string) {
	v := load(p.data[at:at+int(o.size)], false)
	width := 8 * uint(o.size)
	if o.width != 0 {
		width = uint(o.width)
		v = v >> o.shift & ones(width)
	}
	if v == 0 && !p.d.opts.EmitZeroes {
		return
	}
	dst := p.dst
	if before != "" {
		dst = append(dst, before...)
	}
	dst = append(dst, o.label...)
	switch {
	case o.kind == kindPointer && p.d.opts.Symbolize == nil:
		dst = appendHex(dst, v)
	case o.kind == kindPointer:
		p.dst = dst
		p.pointer(v, appendPlain)
		dst = p.dst
	case o.width != 0 && !o.signed:
		dst = appendHex(dst, v)
	case o.signed:
		dst = strconv.AppendInt(dst, int64(signExtend(v, width)), 10)
	default:
		dst = strconv.AppendUint(dst, v, 10)
	}
	p.dst = p.endLine(dst)
}

// charLines prints the elements of an array of char, none of which is missing, as
// [printer.elements] does.
func (p *printer) charLines(elem *op, at, n int, before string) {
	next, dst := 0, p.dst
	for i, c := range p.data[at : at+n] {
		if c == 0 && !p.d.opts.EmitZeroes {
			continue
		}
		dst = append(dst, before...)
		if i != next {
			dst = append(strconv.AppendUint(append(dst, '['), uint64(i), 10), "] = "...)
		}
		next = i + 1
		dst = p.endLine(appendChar(dst, elem, c))
	}
	p.dst = dst
}

// structureLine prints a member that is a structure, none of whose bytes is missing, as
// [printer.item] does.
func (p *printer) structureLine(o *op, at, depth int, before string) {
	if !p.d.opts.EmitZeroes && isZero(p.data[at:at+int(o.size)]) {
		return
	}
	start := len(p.dst)
	p.dst = append(append(p.dst, before...), o.label...)
	if !p.structure(o, at, depth, false) && !p.d.opts.EmitZeroes {
		p.dst = p.dst[:start]
		return
	}
	p.dst = p.endLine(p.dst)
}

// appendHex appends a number as 0x and its digits.
func appendHex(dst []byte, v uint64) []byte {
	if v < 16 {
		return append(dst, '0', 'x', hexDigits[v])
	}
	var text [18]byte
	binary.BigEndian.PutUint64(text[2:], digitsOf(v>>32))
	binary.BigEndian.PutUint64(text[10:], digitsOf(v&(1<<32-1)))
	at := len(text) - (bits.Len64(v|1)+3)/4 - 2
	text[at], text[at+1] = '0', 'x'
	return append(dst, text[at:]...)
}

// digitsOf returns the eight hex digits of a 32-bit number, each in a byte.
func digitsOf(v uint64) uint64 {
	v = (v<<16 | v) & 0x0000ffff0000ffff
	v = (v<<8 | v) & 0x00ff00ff00ff00ff
	v = (v<<4 | v) & 0x0f0f0f0f0f0f0f0f
	letters := (v + 0x0606060606060606) >> 4 & 0x0101010101010101
	return v + 0x3030303030303030 + letters*('a'-'0'-10)
}
