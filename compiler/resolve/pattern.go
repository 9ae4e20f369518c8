package resolve

import (
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// newGlob parses a pattern that package spec has checked.
func newGlob(text string) (*compiler.Pattern, error) {
	p := &compiler.Pattern{Text: text, Glob: true}
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

// textPredicate checks a comparison of a string.
func (b *binder) textPredicate(item *spec.Item, v *compiler.Value) (*compiler.Predicate, error) {
	p := item.Pred
	if v.Text == compiler.PathText {
		return nil, b.errorf(p.OpAt, "'%s' is a path, and the program in the kernel does not compare paths", v.Name).
			WithHint("compare the last name: %s", lastName(v))
	}
	pred := &compiler.Predicate{Text: item.String(), Op: p.Op, Pattern: &compiler.Pattern{Text: p.Const.Str}}
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
	if v.InWords() && v.Text == compiler.NoText {
		return nil, b.errorf(item.Value.Span(), "'%s' is passed by value, and cannot be compared as a string", v.Name)
	}
	if strings.IndexByte(p.Const.Str, 0) >= 0 {
		return nil, b.errorf(p.Const.At, "'%s' can never hold: a string ends before its first \\x00", item)
	}
	if room := textRoom(v); room > 0 && !pred.Pattern.Glob && len(p.Const.Str) > room {
		return nil, b.errorf(p.Const.At, "%s does not fit '%s', which holds %d characters", p.Const.Text, v.Name, room)
	}
	return pred, nil
}

// textRoom returns the number of characters that an array holds, or 0 for the
// target of a pointer.
func textRoom(v *compiler.Value) int {
	if v.Text != compiler.NoText {
		return 0
	}
	a, ok := btf.As[*btf.Array](v.Type)
	if !ok {
		return 0
	}
	return int(a.Nelems)
}
