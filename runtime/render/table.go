package render

import (
	"strings"

	"github.com/ksnoop/ksnoop/btfdump"
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

// Fit returns the table for a terminal of width columns: the last column is wrapped, or
// put on lines of its own, and columns of numbers that do not fit follow below. If width
// is 0, there is no limit.
func (t *Table) Fit(width int) string {
	widths, numbers := t.columns()
	if numbers[len(numbers)-1] {
		return t.fold(widths, numbers, width)
	}
	return t.lines(widths, numbers, width)
}

// Fold returns the table for a terminal of width columns, with all columns that do not fit
// below the others.
func (t *Table) Fold(width int) string {
	widths, numbers := t.columns()
	return t.fold(widths, numbers, width)
}

// fold puts columns that do not fit below the others, and repeats the first column
// there.
func (t *Table) fold(widths []int, numbers []bool, width int) string {
	used, n := 2+widths[0], 1
	for n < len(widths) && (n == 1 || width == 0 || used+2+widths[n] <= width) {
		used += 2 + widths[n]
		n++
	}
	if n == len(widths) {
		if numbers[n-1] {
			width = 0 // a number is not wrapped
		}
		return t.lines(widths, numbers, width)
	}
	upper, lower := &Table{}, &Table{}
	for _, row := range t.Rows {
		upper.Rows = append(upper.Rows, row[:n])
		lower.Rows = append(lower.Rows, append(row[:1:1], row[n:]...))
	}
	return upper.Fold(width) + "\n" + lower.Fold(width)
}

// lines returns the rows, with the last column wrapped. Where it has too little room, or
// a word of it has none, it is below the others.
func (t *Table) lines(widths []int, numbers []bool, width int) string {
	last, indent := len(widths)-1, 2
	for _, w := range widths[:last] {
		indent += 2 + w
	}
	const below = 4 // indentation
	narrow := indent+widths[last] > width && indent+leastWrapped > width
	var text strings.Builder
	for _, row := range t.Rows {
		line := ""
		for i, cell := range row[:last] {
			line += "  " + aligned(cell, widths[i], numbers[i])
		}
		end, under := aligned(row[last], widths[last], numbers[last]), indent
		if width > 0 && (narrow || indent+longestWord(row[last]) > width) {
			text.WriteString(Wrap(strings.TrimRight(line, " "), width, below) + "\n")
			if line, under = "  ", below; row[last] == "" {
				continue
			}
		}
		text.WriteString(Wrap(strings.TrimRight(line+"  "+end, " "), width, under) + "\n")
	}
	return text.String()
}

// longestWord returns the length of the longest word of a text.
func longestWord(text string) (longest int) {
	for _, word := range strings.Fields(text) {
		longest = max(longest, columnsOf(word))
	}
	return longest
}

// aligned returns a cell with blanks up to the width of its column, before
// it if right is set.
//
//go:noinline
func aligned(cell string, width int, right bool) string {
	pad := strings.Repeat(" ", width-columnsOf(cell))
	if right {
		return pad + cell
	}
	return cell + pad
}

// columns returns the width of each column, and whether it holds numbers only.
func (t *Table) columns() (widths []int, numbers []bool) {
	widths, numbers = make([]int, len(t.Rows[0])), make([]bool, len(t.Rows[0]))
	for i := range widths {
		numbers[i] = true
		for n, row := range t.Rows {
			widths[i] = max(widths[i], columnsOf(row[i]))
			numbers[i] = numbers[i] && (n == 0 || strings.Trim(row[i], "0123456789") == "")
		}
	}
	return widths, numbers
}

// PlainName returns a name from the kernel, or of a file, as [btfdump.Plain] does: it
// stays on its line.
func PlainName(name string) string { return btfdump.Plain(name) }
