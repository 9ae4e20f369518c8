package btfdump

import "strconv"

// array prints the elements, one a line. An element that does not follow the
// one before it in the text carries its index.
func (p *printer) array(o *op, at, depth int) bool {
	p.dst = append(p.dst, '[')
	p.newline()
	start := len(p.dst)
	if elem := &p.d.ops[o.first]; elem.size > 0 {
		p.elements(o, elem, at, depth+1)
	} else if o.n > 0 {
		p.empties(o, depth+1)
	}
	some := len(p.dst) > start
	p.newIndent(depth)
	p.dst = append(p.dst, ']')
	return some
}

func (p *printer) elements(o, elem *op, at, depth int) {
	size := int(elem.size)
	n := int(o.n)
	if o.tail {
		n = (len(p.data) - at) / size
	}
	next := 0
	for i := range n {
		index := noIndex
		if i != next {
			index = i
		}
		if p.item(elem, at+i*size, depth, true, index) {
			next = i + 1
		}
		if at+(i+1)*size > len(p.data) {
			// The last one was cut, and later ones are.
			p.markLine(depth)
			return
		}
	}
}

// empties counts elements without bytes: listed, a few bytes of BTF could make
// any amount of text.
func (p *printer) empties(o *op, depth int) {
	p.newIndent(depth)
	p.dst = append(p.dst, "/* "...)
	p.dst = strconv.AppendUint(p.dst, uint64(o.n), 10)
	p.dst = append(p.dst, " empty elements */"...)
	p.newline()
}

// chars prints a string, or the elements of what is no text.
func (p *printer) chars(o *op, at, depth int) bool {
	b := p.have(o, at)
	if !p.d.opts.EmitStrings || !isText(b) {
		return p.array(o, at, depth)
	}
	p.dst = appendQuoted(p.dst, trimZeros(b))
	p.markInline(o, len(b))
	return true
}

// bytes prints `[00 11 22]`.
func (p *printer) bytes(o *op, at int) {
	b := p.have(o, at)
	p.dst = append(p.dst, '[')
	for i, c := range b {
		if i > 0 {
			p.dst = append(p.dst, ' ')
		}
		p.dst = append(p.dst, hexDigits[c>>4], hexDigits[c&15])
	}
	p.markInline(o, len(b))
	p.dst = append(p.dst, ']')
}

// bools prints `[0 1 1]`. Numbers, because not every bool in memory is 0 or 1.
func (p *printer) bools(o *op, at int) {
	b := p.have(o, at)
	p.dst = append(p.dst, '[')
	for i, c := range b {
		if i > 0 {
			p.dst = append(p.dst, ' ')
		}
		p.dst = strconv.AppendUint(p.dst, uint64(c), 10)
	}
	p.markInline(o, len(b))
	p.dst = append(p.dst, ']')
}
