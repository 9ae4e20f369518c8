package codegen

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// truth is the result of a predicate or a condition. The result for a value that
// cannot be read is unknown, and so is its negation.
type truth int8

const (
	no truth = iota
	unknown
	yes
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// cond evaluates a condition from the results of its predicates.
func cond(c spec.Cond, leaf func(*spec.Item) truth) truth {
	switch c := c.(type) {
	case *spec.Not:
		return yes - cond(c.X, leaf)
	case *spec.And:
		return min(cond(c.X, leaf), cond(c.Y, leaf))
	case *spec.Or:
		return max(cond(c.X, leaf), cond(c.Y, leaf))
	}
	return leaf(c.(*spec.Item))
}

// holds returns the result of one predicate.
func (r *reference) holds(it *spec.Item) (truth, error) {
	if with := r.with(it); with != nil {
		return r.holdsWith(it, with)
	}
	if d, ok := it.Value.(*spec.Diff); ok {
		return r.diffHolds(it, d)
	}
	c, err := r.eval(it.Value)
	if err != nil {
		return no, err
	}
	p := it.Pred
	switch isString := p != nil && p.Const.Kind == spec.String; {
	case isString && isAddress(it, c.typ):
		return r.addressHolds(it, c)
	case isString && !isAddress(it, nil):
		return r.textHolds(it, c), nil
	}
	f := r.formatted(it, c)
	if f.bad {
		r.call.soft = r.call.soft || int64(f.base) < 0
		return unknown, nil
	}
	if p == nil {
		return truthOf(f.num != 0), nil
	}
	if p.Op == spec.IsErr {
		return truthOf(f.num > ^uint64(4095)), nil
	}
	n, neg, err := r.constant(p.Const, c.typ)
	if err != nil {
		return no, err
	}
	if p.Op == spec.Mask {
		return truthOf(cut(f.num&n, f.bits, false) != 0), nil
	}
	return truthOf(compare(p.Op, order(f, n, neg))), nil
}

// order compares a number with a constant without limits on their size.
func order(f formatted, n uint64, neg bool) int {
	switch less := f.signed && int64(f.num) < 0; {
	case less && !neg:
		return -1
	case neg && !less:
		return 1
	case f.num < n: // negative numbers have the same order
		return -1
	case f.num > n:
		return 1
	}
	return 0
}

func compare(op spec.Op, order int) bool {
	switch op {
	case spec.Eq:
		return order == 0
	case spec.Ne:
		return order != 0
	case spec.Lt:
		return order < 0
	case spec.Le:
		return order <= 0
	case spec.Gt:
		return order > 0
	}
	return order >= 0
}

// constant returns the value of a constant for a type: its 64 bits, and whether
// it is negative.
func (r *reference) constant(c spec.Constant, t *cType) (n uint64, neg bool, err error) {
	n, ok := integerIn(c.Text), true
	switch c.Kind {
	case spec.String:
		a, err := netip.ParseAddr(c.Str)
		if err != nil {
			return 0, false, err
		}
		b := a.As4()
		n = cut(uint64(binary.LittleEndian.Uint32(b[:])), 32, t.signed)
		return n, int64(n) < 0, nil
	case spec.Name:
		if n, ok = r.k.enums[c.Str]; ok {
			return n, int64(n) < 0, nil
		}
		switch c.Str {
		case "NULL", "false":
			return 0, false, nil
		case "true":
			return 1, false, nil
		}
		if n, ok = r.k.errors[c.Str]; !ok {
			return 0, false, fmt.Errorf("no constant %s", c.Str)
		}
	}
	if c.Neg && n != 0 {
		return -n, t.kind != cPointer, nil
	}
	return n, false, nil
}

// isAddress reports whether an item is an IP address that is not a number: the bytes of a
// type, or those behind a pointer. Without a type, it reports whether its format is one of
// these addresses.
func isAddress(it *spec.Item, t *cType) bool {
	switch it.Format.Name {
	case "ip", "ip4", "ip6":
		return t == nil || !t.scalar() || t.kind == cPointer
	}
	return false
}

// addressIn returns the bytes of an address. If they cannot be read, c becomes the
// cell that is bad.
func (r *reference) addressIn(it *spec.Item, c *cell) (b []byte, ok bool) {
	size := c.typ.size
	if c.typ.kind == cPointer {
		size = addressSizes[it.Format.Name]
		if *c = r.number(*c); c.bad {
			return nil, false
		}
		*c = cell{base: c.num}
	}
	if c.in == inWords {
		return c.words[:size], true
	}
	b = r.read(c, size)
	return b, !c.bad
}

// addressHolds returns the result of a predicate on an address.
func (r *reference) addressHolds(it *spec.Item, c cell) (truth, error) {
	want, err := netip.ParseAddr(it.Pred.Const.Str)
	if err != nil {
		return no, err
	}
	b, ok := r.addressIn(it, &c)
	if !ok {
		r.call.soft = r.call.soft || int64(c.base) < 0
		return unknown, nil
	}
	return truthOf(bytes.Equal(b, want.AsSlice()) == (it.Pred.Op == spec.Eq)), nil
}

// textHolds returns the result of a predicate on a string.
func (r *reference) textHolds(it *spec.Item, c cell) truth {
	var text string
	if c.typ.scalar() {
		f := r.formatted(it, c)
		s, ok := r.text(f.num, it.Format.Name == "ustring")
		if f.bad || !ok {
			return unknown
		}
		text = s
	} else {
		b := c.words
		if c.in == inMemory {
			if b = r.read(&c, c.typ.size); c.bad {
				return unknown
			}
		}
		b, _, _ = bytes.Cut(b[:c.typ.size], []byte{0})
		text = string(b)
	}
	switch it.Pred.Op {
	case spec.Glob:
		return truthOf(globMatches(it.Pred.Const.Str, text))
	case spec.Ne:
		return truthOf(text != it.Pred.Const.Str)
	}
	return truthOf(text == it.Pred.Const.Str)
}

// globMatches matches a string with a pattern without backslashes.
func globMatches(glob, s string) bool {
	back, from := -1, 0 // position after the last star, and the rest that it has not matched yet
	g, i := 0, 0
	for i < len(s) {
		if g < len(glob) && glob[g] == '*' {
			back, from = g+1, i
			g++
			continue
		}
		if n := globOne(glob[g:], s[i]); n > 0 {
			g, i = g+n, i+1
			continue
		}
		if back < 0 {
			return false
		}
		from++
		g, i = back, from
	}
	for g < len(glob) && glob[g] == '*' {
		g++
	}
	return g == len(glob)
}

// globOne returns the length of the first element of a glob if it matches c.
func globOne(glob string, c byte) int {
	switch {
	case glob == "":
		return 0
	case glob[0] != '[':
		return int(truthOf(glob[0] == '?' || glob[0] == c) / yes)
	}
	end := bytes.IndexByte([]byte(glob), ']')
	set, not := glob[1:end], false
	if set[0] == '!' {
		set, not = set[1:], true
	}
	in := false
	for i := 0; i < len(set); i++ {
		if i+2 < len(set) && set[i+1] == '-' {
			in = in || set[i] <= c && c <= set[i+2]
			i += 2
		} else {
			in = in || set[i] == c
		}
	}
	if in == not {
		return 0
	}
	return end + 1
}
