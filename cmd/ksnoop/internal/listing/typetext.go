package listing

import (
	"fmt"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// cacheLine is the size of a cache line in bytes, on nearly all CPUs.
const cacheLine = 64

// A typeWriter writes a type as C, with the offsets and sizes of members before
// them:
//
//	struct file {
//	/*     0        4 */  spinlock_t f_lock;
//	/*   4:0        4 */  unsigned int f_big : 1;
//	                      /* hole of 31 bits */
//	}; /* 8 bytes, 2 members, 1 hole */
//
// Holes come before the member after them.
type typeWriter struct {
	text  strings.Builder
	width int // of the terminal, or 0
	line  int // the cache line that was written last
	holes int // holes that were written
	bits  int // in all of these
}

// noPlace is as wide as the place of a member.
var noPlace = strings.Repeat(" ", len(place(0, 0, 0, false)))

// place returns the comment with an offset and a size.
func place(offset, bit, size int, bitfield bool) string {
	at := fmt.Sprintf("%6d  ", offset)
	if bitfield {
		at = fmt.Sprintf("%6d:%d", offset, bit)
	}
	return fmt.Sprintf("/* %s %6d */ ", at, size)
}

// typeText returns the definition of a type. note is added to the comment at its end.
func typeText(t btf.Type, note string, width int) (string, error) {
	w := typeWriter{width: width}
	for range mostNested {
		td, ok := t.(*btf.Typedef)
		if !ok || unnamed(td.Type) != nil {
			break
		}
		fmt.Fprintf(&w.text, "typedef %s; /* %s */\n", btfdump.Decl(td.Type, td.Name), describe(td, note))
		t, note = td.Type, ""
		if !hasBody(t) {
			return w.text.String(), nil
		}
	}
	begin, end := btfdump.Decl(t, "")+" {", "}"
	body := t
	if td, ok := t.(*btf.Typedef); ok {
		before, after, _ := strings.Cut(btfdump.Decl(td.Type, td.Name), "{...}")
		begin, end, body = "typedef "+before+"{", "}"+after, unnamed(td.Type)
	}
	if t.TypeName() == "" {
		begin = strings.Replace(begin, "{...} ", "", 1)
	}
	r, err := layoutOf(body)
	if err != nil {
		return "", err
	}
	switch body.(type) {
	case *btf.Enum:
		w.text.WriteString(begin + "\n")
		w.values(enumerators(body), "    ")
		fmt.Fprintf(&w.text, "%s; /* %s */\n", end, describe(t, note))
		return w.text.String(), nil
	case *btf.Struct, *btf.Union:
		w.text.WriteString(begin + "\n")
		w.members(r, 1)
		fmt.Fprintf(&w.text, "%s; /* %s */\n", end, w.summary(t, r, note))
		return w.text.String(), nil
	}
	fmt.Fprintf(&w.text, "%s; /* %s */\n", btfdump.Decl(t, ""), describe(t, note))
	return w.text.String(), nil
}

// hasBody reports whether more can be said of a type than its name.
func hasBody(t btf.Type) bool {
	switch t.(type) {
	case *btf.Struct, *btf.Union, *btf.Enum, *btf.Typedef:
		return true
	}
	return false
}

// describe returns the size of a type, and a note.
func describe(t btf.Type, note string) string {
	if v, ok := t.(*btf.Var); ok {
		t = v.Type
	}
	text := plural(sizeOf(t), "byte")
	if i, ok := t.(*btf.Int); ok && i.Encoding != btf.Unsigned {
		text += ", " + i.Encoding.String()
	}
	return text + note
}

// summary returns the comment at the end of a structure.
func (w *typeWriter) summary(t btf.Type, r *structure, note string) string {
	size := sizeOf(t)
	text := plural(size, "byte")
	if size > cacheLine {
		text += fmt.Sprintf(" in %d cache lines", (size+cacheLine-1)/cacheLine)
	}
	text += ", " + plural(len(r.Members), "member")
	if w.holes > 0 {
		text += fmt.Sprintf(", %s of %s", plural(w.holes, "hole"), bitsText(w.bits))
	}
	if r.Padding > 0 {
		text += fmt.Sprintf(", %s of padding", plural(r.Padding, "byte"))
	}
	return text + note
}

// members writes the members of a structure and its holes.
func (w *typeWriter) members(r *structure, depth int) {
	if r == nil {
		return
	}
	indent := strings.Repeat("    ", depth-1) + " "
	holes := r.Holes
	for _, m := range r.Members {
		for len(holes) > 0 && 8*holes[0].Offset+holes[0].Bit < 8*m.Offset+m.Bit {
			w.hole(holes[0], indent)
			holes = holes[1:]
		}
		w.member(m, indent, depth)
	}
	for _, h := range holes {
		w.hole(h, indent)
	}
	if r.Padding > 0 {
		fmt.Fprintf(&w.text, "%s%s/* padding of %s */\n", noPlace, indent, plural(r.Padding, "byte"))
	}
}

func (w *typeWriter) hole(h hole, indent string) {
	w.holes++
	w.bits += h.Bits
	fmt.Fprintf(&w.text, "%s%s/* hole of %s */\n", noPlace, indent, bitsText(h.Bits))
}

func (w *typeWriter) member(m member, indent string, depth int) {
	if line := m.Offset / cacheLine; line > w.line {
		w.line = line
		fmt.Fprintf(&w.text, "/* %6d: cache line %d */\n", line*cacheLine, line)
	}
	at := place(m.Offset, m.Bit, m.Size, m.Bits != 0) + indent
	decl := btfdump.Decl(m.typ, string(m.Name))
	if m.Name == "" {
		decl = strings.TrimSuffix(decl, " ")
	}
	if m.Bits != 0 {
		decl += fmt.Sprintf(" : %d", m.Bits)
	}
	before, after, ok := strings.Cut(decl, "{...}")
	if !ok || m.structure == nil && m.Values == nil {
		fmt.Fprintln(&w.text, render.Wrap(at+decl+";", w.width, len(at)+4))
		return
	}
	fmt.Fprintf(&w.text, "%s%s{\n", at, before)
	w.members(m.structure, depth+1)
	w.values(m.Values, noPlace+indent+"    ")
	fmt.Fprintf(&w.text, "%s%s}%s;\n", noPlace, indent, after)
}

func (w *typeWriter) values(all []enumerator, indent string) {
	for _, v := range all {
		number := ""
		if v.Value != nil {
			number = fmt.Sprintf(" = %d", v.Value)
		}
		fmt.Fprintf(&w.text, "%s%s%s,\n", indent, render.PlainName(string(v.Name)), number)
	}
}

// bitsText returns a number of bits as text: in bits if there are fewer than 32 and
// they are not whole bytes.
func bitsText(bits int) string {
	switch {
	case bits%8 == 0:
		return plural(bits/8, "byte")
	case bits < 32:
		return plural(bits, "bit")
	}
	return plural(bits/8, "byte") + " and " + plural(bits%8, "bit")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
