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

func (t *table) String() string {
	widths, numbers := t.columns()
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
		text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return text.String()
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
