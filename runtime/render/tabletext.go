package render

import "strings"

// tableText is a table as text: a line for each row, with the key first, and below it
// what takes more than a column, stacks and histograms.
type tableText struct {
	names []string
	right []bool // whether a column is aligned to the right
	keys  int    // number of columns of the key
	rows  []textRow
	notes []string
}

type textRow struct {
	cells  []string
	below  []string // lines that are indented
	blocks bool     // whether any of these is of a histogram
}

// append adds the lines of the table.
func (tt *tableText) append(text []byte, width int) []byte {
	heads, widths := tt.fit(width)
	if len(tt.rows) > 0 {
		for _, line := range heads {
			text = tt.appendLine(text, line, widths)
		}
	}
	for i, row := range tt.rows {
		if i > 0 && row.blocks && len(tt.names) > 0 {
			text = append(text, '\n')
		}
		if len(row.cells) > 0 {
			text = tt.appendLine(text, row.cells, widths)
		}
		for _, line := range row.below {
			text = append(append(append(text, belowIndent...), line...), '\n')
		}
	}
	for _, note := range tt.notes {
		text = append(append(append(text, "  "...), Wrap(note, max(0, width-2), 2)...), '\n')
	}
	return text
}

func (tt *tableText) appendLine(text []byte, cells []string, widths []int) []byte {
	start := len(text)
	for i, cell := range cells {
		text = append(append(text, "  "...), aligned(cutCell(cell, widths[i]), widths[i], tt.right[i])...)
	}
	for len(text) > start && text[len(text)-1] == ' ' {
		text = text[:len(text)-1]
	}
	return append(text, '\n')
}

// leastKey is the least width that a column of the key is cut to.
const leastKey = 8

// fit returns the lines of the heading and the widths of the columns. If the table does
// not fit, the names of aggregates are broken, and then the widest columns of the key
// become narrower, until it fits or all are as narrow as they may be.
func (tt *tableText) fit(width int) (heads [][]string, widths []int) {
	heads, widths = tt.columns(false)
	if width > 0 && total(widths) > width {
		heads, widths = tt.columns(true)
	}
	for left := total(widths); width > 0 && left > width; left-- {
		widest := -1
		for i := range tt.keys {
			if widths[i] > leastKey && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return heads, widths
}

func total(widths []int) (n int) {
	for _, w := range widths {
		n += 2 + w
	}
	return n
}

// columns returns the lines of the heading and the widths that the columns need, with
// the names of aggregates whole or broken.
func (tt *tableText) columns(broken bool) (heads [][]string, widths []int) {
	names := make([][]string, len(tt.names))
	lines := 0
	for i, name := range tt.names {
		if names[i] = []string{name}; broken && i >= tt.keys {
			names[i] = breakName(name)
		}
		lines = max(lines, len(names[i]))
	}
	widths = make([]int, len(tt.names))
	for n := range lines {
		line := make([]string, len(names))
		for i, pieces := range names {
			if at := n - lines + len(pieces); at >= 0 { // a short name stands on the last line
				line[i] = pieces[at]
				widths[i] = max(widths[i], columnsOf(line[i]))
			}
		}
		heads = append(heads, line)
	}
	for _, row := range tt.rows {
		for i, cell := range row.cells {
			widths[i] = max(widths[i], columnsOf(cell))
		}
	}
	return heads, widths
}

// breakName breaks the name of an aggregate behind parentheses and arrows.
func breakName(name string) (pieces []string) {
	for from := 0; from < len(name); {
		to := len(name)
		for _, sep := range []string{"(", "->"} {
			if at := strings.Index(name[from:], sep); at >= 0 && name[from:] != "()" {
				to = min(to, from+at+len(sep))
			}
		}
		if strings.TrimLeft(name[to:], ")") == "" {
			to = len(name)
		}
		pieces, from = append(pieces, name[from:to]), to
	}
	return pieces
}

// cutCell returns a text of at most width columns; a cut one ends in three dots.
func cutCell(text string, width int) string {
	if columnsOf(text) <= width {
		return text
	}
	left := width - 3
	for i, r := range text {
		if left -= Columns(r); left < 0 {
			return text[:i] + "..."
		}
	}
	return text
}
