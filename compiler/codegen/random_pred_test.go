package codegen

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// numberPredicate returns a comparison with a number near the true one.
func (w *writer) numberPredicate(it *spec.Item, c cell) string {
	if w.rnd.IntN(16) == 0 {
		return "" // in a condition this means that it is not zero
	}
	f := w.ref.formatted(it, c)
	if f.bits == 64 && !f.signed && w.rnd.IntN(4) == 0 {
		return " is-err"
	}
	op := pick(w.rnd, []string{"==", "==", "==", "!=", "<", "<=", ">", ">=", "&"})
	if op == "&" {
		return " & " + w.notation(it.Value.String(), cut(f.num|1<<w.rnd.IntN(f.bits), f.bits, false))
	}
	return fmt.Sprintf(" %s %s", op, w.number(it, c, f))
}

// number returns a constant in one of its possible notations.
func (w *writer) number(it *spec.Item, c cell, f formatted) string {
	n := f.num
	switch w.rnd.IntN(8) {
	case 0:
		n--
	case 1:
		n++
	case 2:
		n = w.rnd.Uint64()
	}
	n = cut(n, f.bits, f.signed)
	for name, e := range w.errors {
		if n == -e && (f.signed || c.typ.kind == cPointer) {
			return "-" + name
		}
	}
	switch {
	case (it.Format.Name == "ip4" || it.Format.Name == "ip") && c.typ.kind != cPointer:
		return fmt.Sprintf("%q", netip.AddrFrom4([4]byte(binary.LittleEndian.AppendUint32(nil, uint32(n)))))
	case n == 0 && c.typ.kind == cPointer && w.rnd.IntN(2) == 0 && it.Format.Name == "":
		return "NULL"
	case n < 2 && c.typ.kind == cBool && w.rnd.IntN(2) == 0:
		return []string{"false", "true"}[n]
	case w.rnd.IntN(8) == 0: // a whole number of kilobytes, as they have a notation
		n = uint64(int64(n) / 1024 * 1024)
		if !f.signed {
			n = n / 1024 * 1024
		}
	}
	if f.signed && int64(n) < 0 {
		return "-" + w.notation(it.Value.String(), -n)
	}
	for _, e := range c.typ.enumerators {
		if e.Value == n && it.Format.Name == "" {
			return e.Name
		}
	}
	return w.notation(it.Value.String(), n)
}

// notation writes a number as the language can beside a value: decimal, hexadecimal,
// octal, or with the suffix of a size, which no duration has.
func (w *writer) notation(beside string, n uint64) string {
	sizes := []string{"", "k", "M", "G", "T"}
	if beside != "$duration" && w.rnd.IntN(2) == 0 {
		i := min(bits.TrailingZeros64(n)/10, len(sizes)-1)
		if n != 0 && i > 0 {
			i = 1 + w.rnd.IntN(i)
			return fmt.Sprint(n>>(10*i)) + strings.Replace(sizes[i], "k", pick(w.rnd, []string{"k", "K"}), 1)
		}
	}
	return fmt.Sprintf(pick(w.rnd, []string{"%d", "%d", "%#x", "0o%o", "0%o"}), n)
}

// addressPredicate returns a comparison with an address near the true one, in one of its
// notations.
func (w *writer) addressPredicate(it *spec.Item, c cell) string {
	b, ok := w.ref.addressIn(it, &c)
	if !ok {
		b = make([]byte, pick(w.rnd, []int{4, 16}))
	}
	b = slices.Clone(b)
	switch w.rnd.IntN(8) {
	case 0, 1, 2:
		b[w.rnd.IntN(len(b))]++
	case 3:
		b[w.rnd.IntN(len(b))] = 0
	}
	a, _ := netip.AddrFromSlice(b) // of 4 or 16 bytes
	text := pick(w.rnd, []string{a.String(), a.StringExpanded(), strings.ToUpper(a.String())})
	if a.Is6() && w.rnd.IntN(4) == 0 {
		text = ""
		for i := 0; i < 12; i += 2 {
			text += fmt.Sprintf("%x:", binary.BigEndian.Uint16(b[i:]))
		}
		text += fmt.Sprintf("%d.%d.%d.%d", b[12], b[13], b[14], b[15])
	}
	return fmt.Sprintf(" %s %q", pick(w.rnd, []string{"==", "!="}), text)
}

// textPredicate returns a comparison with a string near the true one.
func (w *writer) textPredicate(it *spec.Item, c cell) string {
	s := "abc"
	if c.typ.scalar() {
		if text, ok := w.ref.text(w.ref.formatted(it, c).num, it.Format.Name == "ustring"); ok {
			s = text
		}
	} else if b := c.words; c.typ.size > 0 {
		if c.in == inMemory {
			b = w.ref.read(&c, c.typ.size)
		}
		if len(b) >= c.typ.size {
			s, _, _ = strings.Cut(string(b[:c.typ.size]), "\x00")
		}
	}
	if s = s[:min(len(s), 200)]; s != "" {
		switch w.rnd.IntN(6) {
		case 0:
			s = s[:len(s)-1]
		case 1:
			s += "a"
		case 2:
			s = s[:len(s)-1] + "b"
		}
	}
	if w.rnd.IntN(3) == 0 {
		return " ~ " + quoteText(w.glob(s))
	}
	return pick(w.rnd, []string{" == ", " == ", " != "}) + quoteText(s)
}

// glob makes a pattern from a string.
func (w *writer) glob(s string) string {
	var b strings.Builder
	for i := 0; i < len(s) && i < 50; i++ {
		switch c := s[i]; {
		case w.rnd.IntN(8) == 0:
			b.WriteByte('?')
		case w.rnd.IntN(8) == 0:
			b.WriteByte('*')
			i += w.rnd.IntN(4)
		case strings.IndexByte("abc01", c) >= 0 && w.rnd.IntN(4) == 0:
			b.WriteString(pick(w.rnd, []string{"[a-c]", "[!x]", "[0-9ab]", "[!0-9]", "[" + string(c) + "]"}))
		case strings.IndexByte(`*?[]\`, c) >= 0:
			b.WriteByte('?')
		default:
			b.WriteByte(c)
		}
	}
	if b.Len() == 0 || len(s) > 50 {
		b.WriteByte('*')
	}
	return b.String()
}

// quoteText writes a string constant.
func quoteText(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			fmt.Fprintf(&b, `\x%02x`, c)
		} else {
			b.WriteByte(c)
		}
	}
	return `"` + b.String() + `"`
}
