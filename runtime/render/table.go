package render

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Table is text in columns, with the headings in the first row. Columns of numbers
// are right-aligned.
type Table struct{ Rows [][]string }

// NewTable returns a table with these headings.
func NewTable(headings ...string) *Table { return &Table{[][]string{headings}} }

// Row adds a row.
func (t *Table) Row(cells ...string) { t.Rows = append(t.Rows, cells) }

// String returns the table at its full width.
func (t *Table) String() string { return t.Fit(0) }

// Fit returns the table for a terminal of width columns: the last column is wrapped,
// and columns of numbers that do not fit follow below. If width is 0, there is no
// limit.
func (t *Table) Fit(width int) string {
	widths, numbers := t.columns()
	last, total := len(widths)-1, 0
	for _, w := range widths {
		total += 2 + w
	}
	if width > 0 && total > width && numbers[last] {
		return t.fold(widths, width)
	}
	indent := total - widths[last]
	var text strings.Builder
	for _, row := range t.Rows {
		line := ""
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if numbers[i] {
				cell = pad + cell
			} else {
				cell += pad
			}
			line += "  " + cell
		}
		text.WriteString(Wrap(strings.TrimRight(line, " "), width, indent) + "\n")
	}
	return text.String()
}

// fold puts columns that do not fit below the others, and repeats the first column
// there.
func (t *Table) fold(widths []int, width int) string {
	used, n := 2+widths[0], 1
	for n < len(widths) && (n == 1 || used+2+widths[n] <= width) {
		used += 2 + widths[n]
		n++
	}
	if n == len(widths) {
		return t.Fit(0)
	}
	upper, lower := &Table{}, &Table{}
	for _, row := range t.Rows {
		upper.Rows = append(upper.Rows, row[:n])
		lower.Rows = append(lower.Rows, append(row[:1:1], row[n:]...))
	}
	return upper.Fit(0) + "\n" + lower.Fit(width)
}

// columns returns the width of each column, and whether it holds numbers only.
func (t *Table) columns() (widths []int, numbers []bool) {
	widths, numbers = make([]int, len(t.Rows[0])), make([]bool, len(t.Rows[0]))
	for i := range widths {
		numbers[i] = true
		for n, row := range t.Rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
			numbers[i] = numbers[i] && (n == 0 || strings.Trim(row[i], "0123456789") == "")
		}
	}
	return widths, numbers
}

// PlainName returns a name from the kernel, or of a file, escaped so that it stays
// on its line.
func PlainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, name)
}
