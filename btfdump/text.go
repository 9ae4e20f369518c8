package btfdump

import "strconv"

// noIndex means that no index is printed before a value.
const noIndex = -1

// printer prints one value by its code.
type printer struct {
	d    *Dumper
	dst  []byte
	data []byte
	cut  bool // the end of the data has been marked
}

// item prints one value with its label, and reports whether it printed anything.
// at is the offset of the value in the data.
func (p *printer) item(o *op, at, depth int, inArray bool, index int) bool {
	if depth > 0 && p.missing(o, at) {
		p.markLine(depth)
		return false
	}
	keep := depth == 0 || p.d.opts.EmitZeroes
	if !keep && p.zero(o, at) {
		return false
	}

	start := len(p.dst)
	p.newIndent(depth)
	if index != noIndex {
		p.dst = append(p.dst, '[')
		p.dst = strconv.AppendUint(p.dst, uint64(index), 10)
		p.dst = append(p.dst, "] = "...)
	}
	p.label(o, inArray)
	if !p.value(o, at, depth, inArray) && !keep {
		// All members are zero; only padding is not.
		p.dst = p.dst[:start]
		return false
	}
	if depth > 0 {
		p.dst = append(p.dst, ',')
		p.newline()
	}
	return true
}

// value prints a value without its label. It returns false if it printed nothing
// of a structure or an array.
func (p *printer) value(o *op, at, depth int, inArray bool) bool {
	switch o.kind {
	case kindStructure:
		return p.structure(o, at, depth, inArray)
	case kindSection:
		p.section(o)
	case kindArray:
		return p.array(o, at, depth)
	case kindChars:
		return p.chars(o, at, depth)
	case kindBytes:
		p.bytes(o, at)
	case kindBools:
		p.bools(o, at)
	case kindNothing:
	default:
		if p.missing(o, at) {
			p.mark()
		} else {
			p.scalar(o, at)
		}
	}
	return true
}

func (p *printer) structure(o *op, at, depth int, inArray bool) bool {
	p.dst = append(p.dst, '{')
	p.newline()
	start := len(p.dst)
	members := p.d.ops[o.first : o.first+o.n]
	if depth == 0 && !p.d.opts.EmitZeroes && at+int(o.size) <= len(p.data) && isZero(p.have(o, at)) {
		members = nil
	}
	before, quick := p.lines(depth+1, inArray)
	quick = quick && at+int(o.size) <= len(p.data)
	for i := range members {
		m := &members[i]
		switch {
		case !quick || at+int(m.off)+int(m.size) > len(p.data):
			p.item(m, at+int(m.off), depth+1, inArray, noIndex)
		case m.isNumber():
			p.numberLine(m, at+int(m.off), before)
		case m.kind == kindStructure && !m.tail:
			p.structureLine(m, at+int(m.off), depth+1, before)
		default:
			p.item(m, at+int(m.off), depth+1, inArray, noIndex)
		}
	}
	if depth == 0 && at+int(o.size) > len(p.data) {
		// This prints nothing if only padding is missing.
		p.markLine(depth + 1)
	}
	some := len(p.dst) > start
	p.newIndent(depth)
	p.dst = append(p.dst, '}')
	return some
}

// section prints the variables, each on a line of its own.
func (p *printer) section(o *op) {
	vars := p.d.ops[o.first : o.first+o.n]
	printed := false
	for i := range vars {
		v := &vars[i]
		if p.missing(v, int(v.off)) {
			continue
		}
		p.nextLine(printed)
		p.label(v, false)
		p.value(v, int(v.off), 0, false)
		p.dst = append(p.dst, ';')
		printed = true
	}
	if !p.cut && len(p.data) < int(o.size) {
		p.nextLine(printed)
		p.mark()
	}
}

func (p *printer) nextLine(printed bool) {
	if printed {
		p.newline()
		p.newIndent(0)
	}
}

func (p *printer) label(o *op, inArray bool) {
	switch {
	case p.d.opts.SkipNames && (o.name == 0 || o.label[0] == '.'):
	case inArray || p.d.opts.SkipNames: // SkipNames keeps the declaration of a variable
		p.dst = append(p.dst, o.label[:o.name]...)
	default:
		p.dst = append(p.dst, o.label...)
	}
}

func (p *printer) newline() {
	if !p.d.opts.Compact {
		p.dst = append(p.dst, '\n')
	}
}

// newIndent begins a line.
func (p *printer) newIndent(depth int) {
	o := &p.d.opts
	if o.Compact {
		return
	}
	ready := min(depth, indented)
	p.dst = append(p.dst, p.d.indent[:len(o.Indent)*(o.IndentLevel+ready)]...)
	for range depth - ready {
		p.dst = append(p.dst, o.Indent...)
	}
}
