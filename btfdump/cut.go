package btfdump

import (
	"bytes"
	"encoding/binary"
	"strconv"
)

// have returns the bytes of a value, or fewer if the data ends earlier.
func (p *printer) have(o *op, at int) []byte {
	if at > len(p.data) {
		return nil
	}
	if o.tail {
		return p.data[at:]
	}
	return p.data[at:min(at+int(o.size), len(p.data))]
}

// missing reports whether the data ends before any part of the value that could
// be shown.
func (p *printer) missing(o *op, at int) bool {
	if o.size == 0 {
		return false
	}
	if o.kind.compound() {
		return at >= len(p.data)
	}
	return at+int(o.size) > len(p.data)
}

// zero reports whether all bytes of a value are zero, padding included. It
// returns false for a value that is cut, as its end has to be marked.
func (p *printer) zero(o *op, at int) bool {
	if !p.cut && at+int(o.size) > len(p.data) {
		return o.size == 0
	}
	if o.width != 0 {
		hi, lo := p.bits(o, at)
		return hi|lo == 0
	}
	return isZero(p.have(o, at))
}

func isZero(b []byte) bool {
	if len(b) >= 64 {
		// Comparing each byte with the one before it is the fastest way.
		return b[0] == 0 && bytes.Equal(b[1:], b[:len(b)-1])
	}
	for len(b) >= 8 {
		if binary.LittleEndian.Uint64(b) != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// mark prints the number of missing bytes.
func (p *printer) mark() {
	p.cut = true
	p.dst = append(p.dst, "/* "...)
	p.dst = strconv.AppendInt(p.dst, int64(p.d.root.size)-int64(len(p.data)), 10)
	p.dst = append(p.dst, " bytes cut */"...)
}

// markLine marks the end of the data in place of a member or an element, once.
func (p *printer) markLine(depth int) {
	if p.cut {
		return
	}
	p.newIndent(depth)
	p.mark()
	p.newline()
}

// markInline marks the end of the data after the n bytes of a value that are
// present, if the value is cut.
func (p *printer) markInline(o *op, n int) {
	if p.cut || n >= int(o.size) {
		return
	}
	if n > 0 || o.kind == kindChars {
		p.dst = append(p.dst, ' ')
	}
	p.mark()
}
