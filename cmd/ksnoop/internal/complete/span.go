package complete

import "strings"

// spanParts has offsets in a spec of two points. An offset of 0 means that the spec
// does not have the part.
type spanParts struct {
	end   int // of the second point
	on    int // of the word before the keys
	equal int // of what is between the keys
}

// findSpan finds the parts of a span. The word must be masked.
func findSpan(word string) (s spanParts) {
	arrow := strings.LastIndex(word, "=>")
	if arrow <= 0 {
		return s
	}
	s.end = skipBlanks(word, arrow+2)
	if on := strings.LastIndex(word[s.end:], " on "); on >= 0 {
		s.on = s.end + on + 1
		if equal := strings.Index(word[s.on:], "=="); equal >= 0 {
			s.equal = s.on + equal
		}
	}
	return s
}

func skipBlanks(word string, at int) int {
	for at < len(word) && (word[at] == ' ' || word[at] == '\t') {
		at++
	}
	return at
}

// key completes the key of a span: of the first point, and behind "==" of the second
// one.
func (c *specWord) key(s spanParts) {
	from, point, next := s.on, c.word, []string{" =="}
	if s.equal > 0 {
		from, point, next = s.equal, c.word[s.end:], nil
	}
	end := strings.IndexAny(point, "( \t=")
	fn := c.call(point[:end])
	if fn == nil {
		return
	}
	p := findPosition(c.masked, from)
	if p.at == skipBlanks(c.word, from+len("==")) { // as long as "on"
		p.kind = placeValue
	}
	if p.kind == placeConstant || p.kind == placeIf || p.kind == placeFormat {
		return
	}
	p.inList, p.next = false, next
	c.complete(fn, p)
}
