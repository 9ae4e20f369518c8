package spec

import "strings"

// MostGlob is the largest number of elements in the pattern after a ~. The pattern is
// matched in the kernel.
const MostGlob = 60

// GlobElement is an element of a pattern. It matches one byte, or with Star any
// number of arbitrary bytes.
type GlobElement struct {
	Star   bool
	Not    bool        // matches a byte in none of the ranges; ? is Not without ranges
	Ranges []ByteRange // matches a byte in one of the ranges
}

// ByteRange is the range of bytes from Low to High, inclusive.
type ByteRange struct{ Low, High byte }

// Match reports whether the element matches the byte.
func (e GlobElement) Match(c byte) bool {
	for _, r := range e.Ranges {
		if r.Low <= c && c <= r.High {
			return !e.Not
		}
	}
	return e.Not || e.Star
}

// ParseGlob parses the pattern of a function or after a ~. A backslash escapes the
// next character. The error is an [*Error] about a place in the pattern.
func ParseGlob(pattern string) ([]GlobElement, error) {
	var elements []GlobElement
	for at := 0; at < len(pattern); {
		e, size, err := globElement(pattern, at)
		if err != nil {
			return nil, err
		}
		at += size
		if n := len(elements); !e.Star || n == 0 || !elements[n-1].Star {
			elements = append(elements, e)
		}
	}
	return elements, nil
}

// IsGlob reports whether name has wildcards.
func IsGlob(name string) bool { return strings.ContainsAny(name, wildcards) }

// GlobPrefix returns the prefix of glob without wildcards. All names that glob
// matches begin with it.
func GlobPrefix(glob string) string {
	if i := strings.IndexAny(glob, wildcards); i >= 0 {
		return glob[:i]
	}
	return glob
}

const wildcards = "*?["

// Matches reports whether glob matches the whole name. A glob that [ParseGlob] refuses
// matches nothing.
func Matches(glob, name string) bool {
	if !strings.ContainsAny(glob, `?[\`) {
		return matchesStars(glob, name)
	}
	at, n := 0, 0
	star, covered := -1, 0 // what follows the last star, and how much of name ends with what the star matches
	for at < len(glob) || n < len(name) {
		size := 0
		switch {
		case at < len(glob) && glob[at] == '*':
			at++
			star, covered = at, n
			continue
		case at < len(glob) && n < len(name):
			size = matchesByte(glob, at, name[n])
		}
		switch {
		case size > 0:
			at, n = at+size, n+1
		case star < 0 || covered == len(name):
			return false
		default:
			covered++
			at, n = star, covered
		}
	}
	return true
}

// matchesByte returns the length of the element at an offset of glob, or 0 if it does
// not match c.
func matchesByte(glob string, at int, c byte) int {
	if strings.IndexByte(`?[\`, glob[at]) < 0 { // as mostly: an element would take memory
		if glob[at] == c {
			return 1
		}
		return 0
	}
	e, size, err := globElement(glob, at)
	if err != nil || !e.Match(c) {
		return 0
	}
	return size
}

// matchesStars does the same as Matches for a glob whose only wildcards are stars. Trying
// the rest of the glob at each letter after a star takes ten times as long for the symbols
// of a kernel.
func matchesStars(glob, name string) bool {
	text, rest, star := strings.Cut(glob, "*")
	if !star {
		return glob == name
	}
	name, ok := strings.CutPrefix(name, text)
	for ok {
		if text, rest, star = strings.Cut(rest, "*"); !star {
			return strings.HasSuffix(name, text)
		}
		_, name, ok = strings.Cut(name, text)
	}
	return false
}

// globElement parses the element at an offset of the pattern and returns its
// length.
func globElement(pattern string, at int) (e GlobElement, size int, err error) {
	switch c := pattern[at]; {
	case c == '*':
		return GlobElement{Star: true}, 1, nil
	case c == '?':
		return GlobElement{Not: true}, 1, nil
	case c == '[':
		return globClass(pattern, at)
	case c == '\\' && at+1 == len(pattern):
		return e, 0, Errorf(pattern, Span{at, at + 1}, `nothing follows the last \ of the pattern`)
	case c == '\\':
		return GlobElement{Ranges: []ByteRange{{pattern[at+1], pattern[at+1]}}}, 2, nil
	default:
		return GlobElement{Ranges: []ByteRange{{c, c}}}, 1, nil
	}
}

// globClass parses the brackets at an offset of the pattern.
func globClass(pattern string, at int) (e GlobElement, size int, err error) {
	length := strings.IndexByte(pattern[at:], ']')
	if length < 0 {
		return e, 0, Errorf(pattern, Span{at, at + 1}, "the '[' has no closing ']'")
	}
	body := pattern[at+1 : at+length]
	place := Span{at, at + length + 1}
	if strings.HasPrefix(body, "^") {
		return e, 0, Errorf(pattern, place, "a '^' after '['").WithHint("everything but some is written [!%s]", body[1:])
	}
	body, e.Not = strings.CutPrefix(body, "!")
	if body == "" {
		return e, 0, Errorf(pattern, place, "nothing is between '[' and ']'")
	}
	for len(body) > 0 {
		r := ByteRange{body[0], body[0]}
		body = body[1:]
		if len(body) > 1 && body[0] == '-' {
			r.High, body = body[1], body[2:]
		}
		if r.Low > r.High {
			return e, 0, Errorf(pattern, place, "the range %c-%c is backwards", r.Low, r.High)
		}
		e.Ranges = append(e.Ranges, r)
	}
	return e, length + 1, nil
}

// checkGlob refuses a malformed pattern. The function place returns the offset in
// the spec of a byte of the pattern.
func (p *parser) checkGlob(pattern string, place func(int) int) error {
	_, err := ParseGlob(pattern)
	if err, ok := err.(*Error); ok {
		err.Text = p.text
		err.At = Span{place(err.At.Start), place(err.At.End)}
		return err
	}
	return nil
}

// pattern parses the string after a ~.
func (p *parser) pattern() (c Constant, err error) {
	if p.tok.kind != quoted || p.tok.text[0] != '"' {
		return c, p.badPattern()
	}
	if c, err = p.str(); err != nil {
		return c, err
	}
	place := func(at int) int { return c.At.Start + 1 + written(c.Text[1:], at) }
	if err := p.checkGlob(c.Str, place); err != nil {
		return c, err
	}
	if elements, _ := ParseGlob(c.Str); len(elements) > MostGlob {
		return c, p.errorf(c.At, "a pattern of %d elements is longer than the limit (%d)", len(elements), MostGlob)
	}
	return c, nil
}
