package check

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/listing"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/report"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// table prints a row for each spec and a column for each kernel, then a
// line for each reason.
type table struct {
	w       io.Writer
	rows    []*row
	kernels []string
}

// row holds the results of a spec.
type row struct {
	spec    string
	cells   []string       // by kernel
	reasons listing.Groups // kernels, by reason
}

func (t *table) Begin(report.Suite) error { return nil }

func (t *table) Result(r report.Result) error {
	row, kernel := t.row(cmp.Or(fieldOf(r, "subject"), fieldOf(r, "spec"))), fieldOf(r, "kernel")
	if !slices.Contains(t.kernels, kernel) {
		t.kernels = append(t.kernels, kernel)
	}
	row.cells = append(row.cells, fieldOf(r, "reason"))
	switch watch := fieldOf(r, "watch"); {
	case r.Status != report.Pass:
		row.reasons.Add(render.PlainName(r.Text), render.PlainName(kernel))
	case watch != "":
		row.reasons.Add(render.PlainName(watch), render.PlainName(kernel))
	}
	return nil
}

// row returns the row of a spec, and adds it if it is new.
func (t *table) row(spec string) *row {
	i := slices.IndexFunc(t.rows, func(r *row) bool { return r.spec == spec })
	if i < 0 {
		i = len(t.rows)
		t.rows = append(t.rows, &row{spec: spec})
	}
	return t.rows[i]
}

func (t *table) End() error {
	headings := []string{"SPEC"}
	for _, k := range t.kernels {
		headings = append(headings, render.PlainName(k))
	}
	cells := render.NewTable(headings...)
	width := term.WidthOf(t.w)
	var reasons strings.Builder
	for _, row := range t.rows {
		cells.Row(append([]string{target.Short(row.spec)}, row.cells...)...)
		for _, reason := range row.reasons.Keys {
			line := fmt.Sprintf("%s: %s: %s", strings.Join(row.reasons.Names[reason], ", "), target.Short(row.spec), reason)
			reasons.WriteString(render.Wrap(line, width, 2) + "\n")
		}
	}
	text := cells.Fold(width)
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
