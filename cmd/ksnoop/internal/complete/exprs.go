package complete

import (
	"slices"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// completeValues returns the completions of values that need no call, at their end.
func completeValues(source typeSource, word string) []*candidate {
	types := source.kernel()
	masked, closed := mask(word)
	if types == nil || !closed {
		return nil
	}
	c := &specWord{source: source, word: word, masked: masked}
	p := findPosition(masked, 0)
	p.inList = true
	switch p.kind {
	case placeBuiltin:
		c.at = p.at
		c.anywhere(p, "")
	case placeValue, placeIf:
		c.at = p.at
		c.anywhere(p, "$")
	default:
		c.complete(&call{types: types}, p)
	}
	for _, found := range c.found {
		if p.kind == placeType {
			break // ")" ends a cast
		}
		found.more = slices.DeleteFunc(slices.Clone(found.more), func(text string) bool { return text == ")" })
	}
	return c.found
}

// anywhere adds the builtins that are known without a call.
func (c *specWord) anywhere(p position, prefix string) {
	for _, name := range spec.Builtins {
		more := following(p.inList)
		if name == "task" {
			more = append([]string{"->"}, more...)
		}
		if spec.WithoutCall(name) {
			c.add(prefix+name, "", more...)
		}
	}
}
