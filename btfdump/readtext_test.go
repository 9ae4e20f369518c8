package btfdump

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/cilium/ebpf/btf"
)

// textReader reads the text of a value back.
type textReader struct {
	*image
	s  string
	at int
}

func (r *textReader) space() {
	for r.at < len(r.s) && (r.s[r.at] == '\n' || r.s[r.at] == '\t') {
		r.at++
	}
}

// skip skips token if it comes next, and reports whether it did.
func (r *textReader) skip(token string) bool {
	r.space()
	if len(r.s)-r.at < len(token) || r.s[r.at:r.at+len(token)] != token {
		return false
	}
	r.at += len(token)
	return true
}

func (r *textReader) want(token string) error {
	if !r.skip(token) {
		return r.errorf("want %q", token)
	}
	return nil
}

func (r *textReader) errorf(format string, args ...any) error {
	return fmt.Errorf("%s at %.60q", fmt.Sprintf(format, args...), r.s[r.at:])
}

// word reads the text up to one of the bytes in stop.
func (r *textReader) word(stop string) string {
	start := r.at
	for r.at < len(r.s) && bytes.IndexByte([]byte(stop), r.s[r.at]) < 0 {
		r.at++
	}
	return r.s[start:r.at]
}

func (r *textReader) value(t btf.Type, p spot) error {
	switch t := btf.UnderlyingType(t).(type) {
	case *btf.Array:
		return r.array(t, p)
	case *btf.Struct, *btf.Union:
		return r.structure(t, p)
	case *btf.Int:
		if r.skip("'") {
			c := r.s[r.at]
			if c == '\\' {
				r.at++
				c = r.s[r.at]
			}
			r.at++
			if err := r.bytes(p, []byte{c}); err != nil {
				return err
			}
			return r.want("'")
		}
	}
	r.space()
	v, err := scalarBits(t, p, r.word(",\n"))
	if err != nil {
		return r.errorf("%v", err)
	}
	return r.set(p, t, v)
}

func (r *textReader) structure(t btf.Type, p spot) error {
	if err := r.want("{"); err != nil {
		return err
	}
	for !r.skip("}") {
		if r.hollow() {
			continue
		}
		m, at, err := r.label(t, p)
		if err != nil {
			return err
		}
		r.skip("(" + TypeName(m.Type) + ")")
		if err := r.value(m.Type, at); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		if err := r.want(","); err != nil {
			return err
		}
	}
	return nil
}

// hollow skips an anonymous member without named members, because it was cut.
func (r *textReader) hollow() bool {
	depth := 0
	for i := r.at; i < len(r.s) && r.s[i] != '.'; i++ {
		switch r.s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				r.at = i + 1
				return r.skip(",")
			}
		}
	}
	return false
}

// label reads a member's name. The first name in an anonymous member identifies that
// member.
func (r *textReader) label(t btf.Type, p spot) (btf.Member, spot, error) {
	if r.skip(".") {
		name := r.word(" ")
		for _, m := range membersOf(t) {
			if m.Name == name {
				return m, p.member(m), r.want(" = ")
			}
		}
		return btf.Member{}, p, r.errorf("%v has no member %s", t, name)
	}
	ahead := textReader{s: r.s, at: r.at}
	ahead.word(".")
	ahead.at++
	first := ahead.word(" ")
	for _, m := range membersOf(t) {
		if anonymous(m) {
			if _, _, ok := memberNamed(btf.UnderlyingType(m.Type), p, first); ok {
				return m, p.member(m), nil
			}
		}
	}
	return btf.Member{}, p, r.errorf("%v has no anonymous member with %s", t, first)
}

func (r *textReader) array(a *btf.Array, p spot) error {
	r.space()
	i, ok := arrayOfBytes(a)
	switch {
	case ok && r.s[r.at] == '"':
		return r.text(p)
	case ok && byteArray(i) == kindBytes:
		return r.row(p, 16)
	case ok && byteArray(i) == kindBools:
		return r.row(p, 10)
	}
	if err := r.want("["); err != nil {
		return err
	}
	r.skip(fmt.Sprintf("/* %d empty elements */", a.Nelems))
	for i := 0; !r.skip("]"); i++ {
		if n, ok := r.index(); ok {
			i = n
		}
		if err := r.value(a.Type, p.add(i*sizeof(a.Type))); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
		if err := r.want(","); err != nil {
			return err
		}
	}
	return nil
}

// index reads `[7] = `.
func (r *textReader) index() (int, bool) {
	ahead := *r
	if !ahead.skip("[") {
		return 0, false
	}
	n, err := strconv.Atoi(ahead.word("]"))
	if err != nil || !ahead.skip("] = ") {
		return 0, false
	}
	r.at = ahead.at
	return n, true
}

// row reads `[00 11]`.
func (r *textReader) row(p spot, base int) error {
	if err := r.want("["); err != nil {
		return err
	}
	var b []byte
	for _, w := range bytes.Fields([]byte(r.word("]"))) {
		v, err := strconv.ParseUint(string(w), base, 8)
		if err != nil {
			return err
		}
		b = append(b, byte(v))
	}
	if err := r.bytes(p, b); err != nil {
		return err
	}
	return r.want("]")
}

// text reads a C string.
func (r *textReader) text(p spot) error {
	var b []byte
	for r.at++; r.s[r.at] != '"'; r.at++ {
		c := r.s[r.at]
		if c == '\\' {
			r.at++
			if c = r.s[r.at]; c >= '0' && c <= '7' {
				v, err := strconv.ParseUint(r.s[r.at:r.at+3], 8, 8)
				if err != nil {
					return err
				}
				c = byte(v)
				r.at += 2
			} else if i := bytes.IndexByte([]byte("abtnvfr"), c); i >= 0 {
				c = '\a' + byte(i)
			}
		}
		b = append(b, c)
	}
	r.at++
	return r.bytes(p, b)
}
