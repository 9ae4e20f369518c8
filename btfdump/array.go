package btfdump

import "strconv"

// array prints the elements, one per line. An element has its index before it
// if the element before it in the array was left out.
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
	if elem.kind == kindChar && at+n <= len(p.data) {
		if before, quick := p.lines(depth, false); quick {
			p.charLines(elem, at, n, before)
			return
		}
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
			// The last element was cut, and so are all after it.
			p.markLine(depth)
			return
		}
	}
}

// empties prints the number of elements that have no bytes. If they were listed,
// a few bytes of BTF could produce any amount of text.
func (p *printer) empties(o *op, depth int) {
	p.newIndent(depth)
	p.dst = append(p.dst, "/* "...)
	p.dst = strconv.AppendUint(p.dst, uint64(o.n), 10)
	p.dst = append(p.dst, " empty elements */"...)
	p.newline()
}

// chars prints an array of char as a string, or by element if it holds no text.
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

// bools prints `[0 1 1]`. It prints numbers because not every bool in memory is
// 0 or 1.
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
