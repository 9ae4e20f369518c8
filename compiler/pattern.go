package compiler

import (
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// Pattern is a string, or with stars and sets a glob, to compare strings with.
type Pattern struct {
	Text string // as it is meant, without quotes
	Glob bool
	// Elements are what matches one character each.
	Elements []spec.GlobElement
	// Stars has bit i set if any characters may stand before element i, or
	// at the end.
	Stars uint64
}

// newGlob reads a pattern that package spec has checked.
func newGlob(text string) (*Pattern, error) {
	p := &Pattern{Text: text, Glob: true}
	elements, err := spec.ParseGlob(text)
	if err != nil {
		return nil, err
	}
	for _, e := range elements {
		if e.Star {
			p.Stars |= 1 << len(p.Elements)
		} else {
			p.Elements = append(p.Elements, e)
		}
	}
	return p, nil
}

// Matches says whether the pattern matches all of a string.
func (p *Pattern) Matches(s string) bool {
	if !p.Glob {
		return s == p.Text
	}
	state := uint64(1)
	for i := range len(s) {
		var m uint64
		for j, e := range p.Elements {
			if e.Match(s[i]) {
				m |= 1 << j
			}
		}
		state = state&m<<1 | state&p.Stars
	}
	return state>>len(p.Elements)&1 == 1
}

// textPredicate checks a comparison of a string.
func (b *binder) textPredicate(item *spec.Item, v *Value) (*Predicate, error) {
	p := item.Pred
	pred := &Predicate{Text: item.String(), Op: p.Op, Pattern: &Pattern{Text: p.Const.Str}}
	switch p.Op {
	case spec.Eq, spec.Ne:
	case spec.Glob:
		pattern, err := newGlob(p.Const.Str)
		if err != nil {
			return nil, err
		}
		pred.Pattern = pattern
	default:
		return nil, b.errorf(p.OpAt, "strings have no order: '%s' is compared by ==, != or ~", v.Name)
	}
	if v.inWords() && v.Text == NoText {
		return nil, b.errorf(item.Value.Span(), "'%s' is passed by value, and cannot be compared as a string", v.Name)
	}
	if strings.IndexByte(p.Const.Str, 0) >= 0 {
		return nil, b.errorf(p.Const.At, "'%s' can never hold: a string ends before its first \\x00", item)
	}
	if room := v.textRoom(); room > 0 && !pred.Pattern.Glob && len(p.Const.Str) > room {
		return nil, b.errorf(p.Const.At, "%s does not fit '%s', which holds %d characters", p.Const.Text, v.Name, room)
	}
	return pred, nil
}

// textRoom is how many characters an array holds; 0 for what is behind a
// pointer.
func (v *Value) textRoom() int {
	if v.Text != NoText {
		return 0
	}
	a, ok := btf.As[*btf.Array](v.Type)
	if !ok {
		return 0
	}
	return int(a.Nelems)
}
