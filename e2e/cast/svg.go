//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
)

// The measures of a picture, in pixels.
const (
	charWidth  = 8.4
	lineHeight = 18
	border     = 14
	bar        = 30 // above the lines
)

// sheet is the style sheet of all pictures. The colours are those of a dark terminal,
// which can be read on light pages and on dark ones. Without animations the end is shown.
// Some browsers do not know xml:space, and others do not know white-space.
const sheet = `text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace;fill:#d5dbe3;white-space:pre}` +
	`.b{font-weight:bold;fill:#fff}.c{fill:#6cc7e6}.g{fill:#7fca7c}.r{fill:#ff8a80}.o{opacity:0}` +
	`@media(prefers-reduced-motion){g{animation:none!important}}`

// escape makes XML of a text.
var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// writeSVG draws a film as an SVG that moves by CSS alone.
func (f *film) writeSVG(w io.Writer, title string) error {
	width := int(float64(f.width)*charWidth) + 2*border
	height := f.height*lineHeight + bar + border
	out := &strings.Builder{}
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" xml:space="preserve">`, width, height)
	fmt.Fprintf(out, "<title>%s</title>\n<style>%s\ng{animation:%.1fs step-end infinite}\n", escape.Replace(title), sheet, float64(f.frames)*step.Seconds())
	groups := f.groups()
	for _, g := range groups {
		out.WriteString(g.keyframes(f.frames))
	}
	out.WriteString(f.scrolling())
	out.WriteString("</style>\n")
	fmt.Fprintf(out, `<rect x=".5" y=".5" width="%d" height="%d" rx="8" fill="#12161c" stroke="#59616b"/>`, width-1, height-1)
	for i, colour := range []string{"#ff5f56", "#ffbd2e", "#27c93f"} {
		fmt.Fprintf(out, `<circle cx="%d" cy="16" r="5" fill="%s"/>`, 18+18*i, colour)
	}
	fmt.Fprintf(out, "\n"+`<svg x="%d" y="%d" width="%d" height="%d"><g id="s">`+"\n", border, bar, width-2*border, f.height*lineHeight)
	for _, g := range groups {
		g.draw(out)
	}
	out.WriteString("</g></svg></svg>\n")
	_, err := io.WriteString(w, out.String())
	return err
}

// A group has the pieces that can be seen in the same frames.
type group struct {
	from, to int
	pieces   []piece
}

// groups returns the groups of a film, by time.
func (f *film) groups() (all []group) {
	for _, p := range f.pieces {
		i := slices.IndexFunc(all, func(g group) bool { return g.from == p.from && g.to == p.to })
		if i < 0 {
			i, all = len(all), append(all, group{from: p.from, to: p.to})
		}
		all[i].pieces = append(all[i].pieces, p)
	}
	return all
}

// name returns the name of the group's animation.
func (g group) name() string {
	if g.to == 0 {
		return fmt.Sprintf("f%d", g.from)
	}
	return fmt.Sprintf("f%d-%d", g.from, g.to)
}

// keyframes returns when the group can be seen.
func (g group) keyframes(frames int) string {
	text := fmt.Sprintf("@keyframes %s{0%%{opacity:0}%s{opacity:1}", g.name(), percent(g.from, frames))
	if g.from == 0 {
		text = fmt.Sprintf("@keyframes %s{0%%{opacity:1}", g.name())
	}
	if g.to != 0 {
		text += percent(g.to, frames) + "{opacity:0}"
	}
	return text + "}\n"
}

// scrolling returns the keyframes of all lines. What stays is the end.
func (f *film) scrolling() string {
	text := "@keyframes s{0%{transform:none}"
	for _, s := range f.scrolls {
		text += fmt.Sprintf("%s{transform:translateY(%dpx)}", percent(s.frame, f.frames), -s.lines*lineHeight)
	}
	return text + fmt.Sprintf("}\n#s{animation-name:s;transform:translateY(%dpx)}\n", -f.above()*lineHeight)
}

func percent(frame, frames int) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", 100*float64(frame)/float64(frames)), "0"), ".") + "%"
}

// draw draws the pieces. Those that are not there in the end cannot be seen without
// animation.
func (g group) draw(out *strings.Builder) {
	class := ""
	if g.to != 0 {
		class = ` class="o"`
	}
	fmt.Fprintf(out, `<g%s style="animation-name:%s">`, class, g.name())
	for _, p := range g.pieces {
		fmt.Fprintf(out, `<text x="%.4g" y="%d" textLength="%.4g">`, float64(p.column)*charWidth, p.line*lineHeight+13, float64(len(p.cells))*charWidth)
		for cells := p.cells; len(cells) > 0; {
			n := 1
			for n < len(cells) && (cells[n].style == cells[0].style || cells[n].char == ' ' && cells[n].style == "") {
				n++
			}
			text := &strings.Builder{}
			for _, c := range cells[:n] {
				text.WriteRune(c.char)
			}
			if escaped := escape.Replace(text.String()); cells[0].style == "" {
				out.WriteString(escaped)
			} else {
				fmt.Fprintf(out, `<tspan class="%s">%s</tspan>`, cells[0].style, escaped)
			}
			cells = cells[n:]
		}
		out.WriteString("</text>")
	}
	out.WriteString("</g>\n")
}

// draw returns the picture of a recording's file.
func draw(recording []byte) ([]byte, error) {
	r, err := ReadRecording(bytes.NewReader(recording))
	if err != nil {
		return nil, err
	}
	f, err := develop(r)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = f.writeSVG(&out, title)
	return out.Bytes(), err
}
