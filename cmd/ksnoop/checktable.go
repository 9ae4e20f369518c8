package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/report"
)

// checkTable prints a row for each spec and a column for each kernel, then a
// line for each reason.
type checkTable struct {
	w       io.Writer
	rows    []*checkRow
	kernels []string
}

// checkRow is what came out for a spec.
type checkRow struct {
	spec    string
	cells   []string // by kernel
	reasons groups   // kernels, by reason
}

func (t *checkTable) Begin(report.Suite) error { return nil }

func (t *checkTable) Result(r report.Result) error {
	row, kernel := t.row(cmp.Or(fieldOf(r, "subject"), fieldOf(r, "spec"))), fieldOf(r, "kernel")
	if !slices.Contains(t.kernels, kernel) {
		t.kernels = append(t.kernels, kernel)
	}
	row.cells = append(row.cells, fieldOf(r, "reason"))
	if r.Status != report.Pass {
		row.reasons.add(plainName(r.Text), plainName(kernel))
	}
	return nil
}

// row is the row of a spec.
func (t *checkTable) row(spec string) *checkRow {
	i := slices.IndexFunc(t.rows, func(r *checkRow) bool { return r.spec == spec })
	if i < 0 {
		i = len(t.rows)
		t.rows = append(t.rows, &checkRow{spec: spec})
	}
	return t.rows[i]
}

func (t *checkTable) End() error {
	headings := []string{"SPEC"}
	for _, k := range t.kernels {
		headings = append(headings, plainName(k))
	}
	cells := newTable(headings...)
	var reasons strings.Builder
	for _, row := range t.rows {
		cells.row(append([]string{short(row.spec)}, row.cells...)...)
		for _, reason := range row.reasons.keys {
			fmt.Fprintf(&reasons, "%s: %s: %s\n", strings.Join(row.reasons.names[reason], ", "), short(row.spec), reason)
		}
	}
	text := cells.String()
	if reasons.Len() > 0 {
		text += "\n" + reasons.String()
	}
	_, err := io.WriteString(t.w, text)
	return err
}

func fieldOf(r report.Result, name string) string {
	for _, f := range r.Fields {
		if text, ok := f.Value.(string); ok && f.Name == name {
			return text
		}
	}
	return ""
}
