package main

import (
	"strings"
	"unicode/utf8"
)

// table is text in columns, of which the first row is the headings. Columns of
// numbers stand to the right.
type table struct{ rows [][]string }

func newTable(headings ...string) *table { return &table{[][]string{headings}} }

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) String() string { return t.fit(0) }

// fit is the table for a terminal of so many columns: the last column is wrapped,
// and columns of numbers that have no room follow below; 0: it is as wide as it
// is.
func (t *table) fit(width int) string {
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
	for _, row := range t.rows {
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
		text.WriteString(wrap(strings.TrimRight(line, " "), width, indent) + "\n")
	}
	return text.String()
}

// fold puts columns that have no room below the others, with the first column
// beside them again.
func (t *table) fold(widths []int, width int) string {
	used, n := 2+widths[0], 1
	for n < len(widths) && (n == 1 || used+2+widths[n] <= width) {
		used += 2 + widths[n]
		n++
	}
	if n == len(widths) {
		return t.fit(0)
	}
	upper, lower := &table{}, &table{}
	for _, row := range t.rows {
		upper.rows = append(upper.rows, row[:n])
		lower.rows = append(lower.rows, append(row[:1:1], row[n:]...))
	}
	return upper.fit(0) + "\n" + lower.fit(width)
}

// columns are how wide each column is and whether it holds numbers alone.
func (t *table) columns() (widths []int, numbers []bool) {
	widths, numbers = make([]int, len(t.rows[0])), make([]bool, len(t.rows[0]))
	for i := range widths {
		numbers[i] = true
		for n, row := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
			numbers[i] = numbers[i] && (n == 0 || strings.Trim(row[i], "0123456789") == "")
		}
	}
	return widths, numbers
}
