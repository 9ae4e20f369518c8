package kprobe

import (
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// mostElements is the kernel's limit for the length of an array.
const mostElements = 64

// otherTypes has common names of types that lines do not have, with the equivalent
// types.
var otherTypes = map[string]string{
	"x": "x64", "hex": "x64", "ptr": "x64", "u": "u64", "d": "s64",
	"int": "s32", "short": "s16", "long": "s64", "unsigned": "u32", "size_t": "u64", "ssize_t": "s64",
	"int8_t": "s8", "int16_t": "s16", "int32_t": "s32", "int64_t": "s64", "bool": "u8", "byte": "u8",
	"uint8_t": "u8", "uint16_t": "u16", "uint32_t": "u32", "uint64_t": "u64", "str": "string", "sym": "symbol",
}

// fetchType parses the type after a colon.
func (p *parser) fetchType() (t *spec.FetchType, err error) {
	start := p.pos
	p.accept("%") // as in %pd
	p.run(spec.IsWord)
	t = &spec.FetchType{Name: p.text[start:p.pos]}
	switch {
	case t.Name == "":
		return nil, p.noType()
	case p.has("@"), isBitfield(t.Name):
		p.pos, t.Name = start, ""
		t.Field, err = p.bitfield()
	case !slices.Contains(spec.FetchTypes, t.Name):
		err = p.badType(spec.Ident{Name: t.Name, At: p.from(start)})
	}
	if err == nil && p.accept("[") {
		t.Count, err = p.count()
	}
	t.At = p.from(start)
	return t, err
}

func (p *parser) noType() error {
	all := strings.Join(spec.FetchTypes, " ")
	if p.pos == p.end {
		return p.errorf(p.at(0), "a type is missing after ':'").WithHint("the types are %s", all)
	}
	return p.expected("a type after ':'").WithHint("the types are %s", all)
}

func (p *parser) badType(id spec.Ident) error {
	err := p.errorf(id.At, "%s is not a type", spec.Quote(id.Name))
	if other, ok := otherTypes[id.Name]; ok {
		return err.WithMeant("%s", other)
	}
	if near, ok := spec.Nearest(id.Name, slices.Values(spec.FetchTypes)); ok {
		return err.WithMeant("%s", near)
	}
	return err.WithHint("the types are %s, and bWIDTH@OFFSET/CONTAINER", strings.Join(spec.FetchTypes, " "))
}

// isBitfield reports whether a name is the beginning of a bitfield's type.
func isBitfield(name string) bool {
	return len(name) > 1 && name[0] == 'b' && spec.IsDigit(name[1])
}

// bitfield parses bWIDTH@OFFSET/CONTAINER.
func (p *parser) bitfield() (f spec.Bitfield, err error) {
	start := p.pos
	p.accept("b")
	var sizes [3]uint64
	for i, part := range []string{"width of the bitfield", "offset of the bitfield after '@'", "container of the bitfield after '/'"} {
		if i > 0 && !p.accept("@/"[i-1:i]) {
			return f, p.expected("'" + "@/"[i-1:i] + "'").WithHint("a bitfield is bWIDTH@OFFSET/CONTAINER, all of them bits: b4@2/8")
		}
		if sizes[i], err = p.number("the " + part); err != nil {
			return f, err
		}
	}
	width, offset, container := sizes[0], sizes[1], sizes[2]
	at := p.from(start)
	switch {
	case !slices.Contains([]uint64{8, 16, 32, 64}, container):
		return f, p.errorf(at, "a bitfield in a number of %d bits", container).WithHint("there are numbers of 8, 16, 32 and 64 bits")
	case width == 0:
		return f, p.errorf(at, "a bitfield of no bits")
	case width > container || offset > container-width:
		return f, p.errorf(at, "a bitfield of %d bits from bit %d does not fit into %d", width, offset, container)
	}
	return spec.Bitfield{Width: int(width), Offset: int(offset), Container: int(container)}, nil
}

// count parses the length of an array, after the opening bracket.
func (p *parser) count() (int, error) {
	start := p.pos
	n, err := p.number("the length of the array after '['")
	at := p.from(start)
	switch {
	case err != nil:
		return 0, err
	case n == 0:
		return 0, p.errorf(at, "an array of no elements")
	case n > mostElements:
		return 0, p.errorf(at, "an array of %d elements is longer than the limit (%d)", n, mostElements)
	case !p.accept("]"):
		return 0, p.expected("']'")
	}
	return int(n), nil
}
