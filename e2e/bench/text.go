package bench

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Text writes a table for each kernel: the figures, and then ours divided by
// each of the others. The notes follow the table.
func Text(w io.Writer, date string, rows []Row) error {
	var b strings.Builder
	for i, kernel := range kernels(rows) {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s, %s\n\n", cmp.Or(kernel, "any kernel"), date)
		table(&b, kernel, rows)
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(strings.TrimPrefix(line, padding), " \n")); err != nil {
			return err
		}
	}
	return nil
}

const (
	padding = "  " // before each cell, including the first
	heading = "\tunit\tbudget\tours\tempty\tbcc\tbt kprobe\tbt kfunc\t/empty\t/bcc\t/kprobe\t/kfunc\t"
)

func table(b *strings.Builder, kernel string, rows []Row) {
	tw := tabwriter.NewWriter(b, 0, 0, len(padding), ' ', tabwriter.AlignRight)
	width := 0
	for _, r := range rows {
		width = max(width, len(r.Name))
	}
	fmt.Fprintln(tw, heading)
	var notes []string
	for _, r := range rows {
		if r.Kernel != kernel {
			continue
		}
		name := fmt.Sprintf("%-*s", width, r.Name) // the other cells are right-aligned
		fmt.Fprintln(tw, name+"\t"+strings.Join(r.cells(), "\t")+"\t")
		if r.Note != "" {
			notes = append(notes, "\n"+r.Name+": "+r.Note)
		}
	}
	tw.Flush() // a strings.Builder returns no error
	if notes != nil {
		fmt.Fprintln(b, strings.Join(notes, ""))
	}
}

// cells returns the cells of the row from the unit to the right. A figure over
// its budget gets an exclamation mark.
func (r *Row) cells() []string {
	ours := number(r.Ours)
	if !r.Met() {
		ours = "! " + ours
	}
	cells := []string{r.Unit, r.Budget.String(), ours}
	for _, c := range columns {
		cell := "-"
		if peer, ok := r.Peers[c]; ok {
			cell = number(peer)
		}
		cells = append(cells, cell)
	}
	for _, c := range columns {
		cell := ""
		if ratio, ok := r.Ratio(c); ok {
			cell = strconv.FormatFloat(ratio, 'f', 2, 64)
		}
		cells = append(cells, cell)
	}
	return cells
}

// number formats a figure with commas, and a small one with a decimal.
func number(f float64) string {
	if f > -100 && f < 100 && f != float64(int(f)) {
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	digits := strconv.FormatFloat(f, 'f', 0, 64)
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}
