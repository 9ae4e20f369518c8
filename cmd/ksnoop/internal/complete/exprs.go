package complete

import "github.com/ksnoop/ksnoop/compiler/spec"

// completeValues returns the completions of values that need no call, at their end.
func completeValues(source typeSource, word string) []*candidate {
	types := source.kernel()
	masked, closed := mask(word)
	if types == nil || !closed {
		return nil
	}
	c := &specWord{source: source, word: word, masked: masked}
	p := findPosition(masked, 0)
	p.inList, p.next = true, []string{","}
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
	return c.found
}

// anywhere adds the builtins that are known without a call.
func (c *specWord) anywhere(p position, prefix string) {
	for _, name := range spec.Builtins {
		more := p.next
		if name == "task" {
			more = append([]string{"->"}, more...)
		}
		if spec.WithoutCall(name) {
			c.add(prefix+name, "", more...)
		}
	}
}
