package btfdump

import "strconv"

// AppendJSON appends the value in data to dst as JSON on one line. The JSON is
// valid for every type and all bytes, and has no control characters. AppendJSON
// does not allocate if dst has room. It uses only the options EmitZeroes,
// EmitStrings, BigEndian and Symbolize.
//
//   - A structure is an object with its members in order. The members of anonymous
//     structures are members of the enclosing object. A name that an earlier member
//     has gets a number: "x", "x#2".
//   - Zero members are left out unless EmitZeroes is set. Of arrays only the zeros
//     at the end are left out, so that elements keep their index.
//   - Ints of up to 64 bits are numbers with all their digits, wider ones strings
//     in hex. A bool is true or false, or a number if it is neither 0 nor 1.
//   - An enum is the enumerator's name, or a number if no enumerator has the value.
//   - Pointers are strings. If Symbolize finds a symbol, it follows the address:
//     "0xffffffff81234560 <tcp_v4_connect+0x10>".
//   - An array of char that holds text is a string if EmitStrings is set; bytes
//     in it that are not UTF-8 become U+FFFD. Other arrays of char are arrays of
//     numbers.
//   - Other arrays of bytes are strings with two hex digits per byte.
//   - Floats are numbers, or the strings "NaN", "Infinity" and "-Infinity". Those
//     that no float64 can hold are strings in hex.
//   - A variable is its value, a section an object of all its variables.
//   - If data is too short, the missing values are left out, and the outermost
//     object has "$cut", the number of missing bytes, as its last member. A value
//     that is not an object is wrapped in one: {"$value":[1,2],"$cut":4}.
func (d *Dumper) AppendJSON(dst, data []byte) []byte {
	// With cut set, the printer does not mark the end of the data itself.
	p := printer{d: d, dst: dst, data: data, cut: true}
	o := &d.root
	missing := int(o.size) - len(data)
	if missing <= 0 {
		p.jsonValue(o, 0)
		return p.dst
	}

	if o.kind == kindStructure || o.kind == kindSection {
		p.jsonValue(o, 0)
		p.dst = p.dst[:len(p.dst)-1] // }
	} else {
		p.dst = append(p.dst, '{')
		if !p.missing(o, 0) {
			p.jsonKey("$value")
			p.jsonValue(o, 0)
		}
	}
	p.jsonKey(cutKey)
	p.dst = strconv.AppendInt(p.dst, int64(missing), 10)
	p.dst = append(p.dst, '}')
	return p.dst
}

// jsonValue prints a value. It returns false if it printed nothing of a structure or
// an array.
func (p *printer) jsonValue(o *op, at int) bool {
	switch o.kind {
	case kindStructure:
		return p.jsonStructure(o, at)
	case kindSection:
		p.jsonSection(o)
	case kindArray, kindBools:
		return p.jsonArray(o, at)
	case kindChars:
		b := p.have(o, at)
		if !p.d.opts.EmitStrings || !isText(b) {
			return p.jsonArray(o, at)
		}
		p.dst = appendJSONString(p.dst, trimZeros(b))
	case kindBytes:
		p.jsonBytes(p.have(o, at))
	case kindNothing:
		p.dst = append(p.dst, "null"...)
	default:
		p.jsonScalar(o, at)
	}
	return true
}

// jsonFields returns the members of a structure or the variables of a section.
func (p *printer) jsonFields(o *op) []field {
	if o.n == 0 {
		return nil
	}
	obj := p.d.json.objects[o.first]
	return p.d.json.fields[obj.first : obj.first+obj.n]
}

func (p *printer) jsonStructure(o *op, at int) bool {
	p.dst = append(p.dst, '{')
	start := len(p.dst)
	fields := p.jsonFields(o)
	for i := range fields {
		p.jsonField(&fields[i], at)
	}
	some := len(p.dst) > start
	p.dst = append(p.dst, '}')
	return some
}

// jsonField prints a member of the structure at an offset.
func (p *printer) jsonField(f *field, at int) {
	o := &p.d.ops[f.op]
	at += int(f.off)
	keep := p.d.opts.EmitZeroes
	if p.missing(o, at) || !keep && p.zero(o, at) {
		return
	}
	start := len(p.dst)
	p.jsonKey(f.key)
	if !p.jsonValue(o, at) && !keep {
		// Only padding was not zero.
		p.dst = p.dst[:start]
	}
}

// jsonSection prints all variables, even zero ones, as each is a whole value.
func (p *printer) jsonSection(o *op) {
	p.dst = append(p.dst, '{')
	for _, f := range p.jsonFields(o) {
		v := &p.d.ops[f.op]
		if !p.missing(v, int(f.off)) {
			p.jsonKey(f.key)
			p.jsonValue(v, int(f.off))
		}
	}
	p.dst = append(p.dst, '}')
}

// jsonKey prints a comma, unless this is the first member, and the key. No value
// ends with an opening brace, so a brace before the key means the first member.
func (p *printer) jsonKey(key string) {
	if p.dst[len(p.dst)-1] != '{' {
		p.dst = append(p.dst, ',')
	}
	p.dst = append(p.dst, '"')
	p.dst = append(p.dst, key...)
	p.dst = append(p.dst, '"', ':')
}

// jsonArray prints the elements that the data has, up to the last one that is not
// zero. Elements without bytes are never printed, as a few bytes of BTF could
// describe any number of them.
func (p *printer) jsonArray(o *op, at int) bool {
	p.dst = append(p.dst, '[')
	end := len(p.dst) // after the last element to keep
	some := false
	if elem := &p.d.ops[o.first]; elem.size > 0 {
		size := int(elem.size)
		for i := range p.jsonCount(o, elem, at) {
			if i > 0 {
				p.dst = append(p.dst, ',')
			}
			if p.jsonValue(elem, at+i*size) || p.d.opts.EmitZeroes {
				end, some = len(p.dst), true
			}
		}
	}
	p.dst = append(p.dst[:end], ']')
	return some
}

// jsonCount returns the number of elements to print.
func (p *printer) jsonCount(o, elem *op, at int) int {
	size := int(elem.size)
	b := p.have(o, at)
	if o.tail || !elem.kind.compound() {
		// The last element is shown whole or not at all.
		b = b[:len(b)/size*size]
	}
	if !p.d.opts.EmitZeroes {
		b = trimZeros(b)
	}
	return (len(b) + size - 1) / size
}

func (p *printer) jsonBytes(b []byte) {
	p.dst = append(p.dst, '"')
	for _, c := range b {
		p.dst = append(p.dst, hexDigits[c>>4], hexDigits[c&15])
	}
	p.dst = append(p.dst, '"')
}
