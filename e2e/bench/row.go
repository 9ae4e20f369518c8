// Package bench prints the table of tracing costs: rows with ksnoop's figure
// beside those of its peers.
//
//	bench.Text(os.Stdout, rows)
//	bench.JSON(file, rows)
package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// A Column names a tracer or program that ksnoop is compared with.
type Column string

// The columns, from left to right.
const (
	Empty  Column = "empty"           // programs of the same attach kind that do nothing
	BCC    Column = "bcc"             // ksnoop of bcc's libbpf-tools
	Kprobe Column = "bpftrace_kprobe" // bpftrace with kprobe and kretprobe
	Kfunc  Column = "bpftrace_kfunc"  // bpftrace with kfunc and kretfunc
)

var columns = []Column{Empty, BCC, Kprobe, Kfunc}

// A Row is one cost on one kernel. A peer that cannot do the job, or that
// cannot be measured, has no figure.
type Row struct {
	Kernel string `json:"kernel"` // its release; empty if the cost does not depend on the kernel
	Name   string `json:"row"`    // group/what/how; it does not change between versions
	Unit   string `json:"unit"`

	Ours   float64            `json:"ours"`
	Peers  map[Column]float64 `json:"peers,omitempty"`
	Budget *Budget            `json:"budget,omitempty"`
	Note   string             `json:"note,omitempty"`
}

// A Budget is the upper bound of a cost.
type Budget struct {
	Max float64 `json:"max"`
	Of  Column  `json:"of,omitempty"` // if set, Max is a factor of this column's figure
}

func (b *Budget) String() string {
	switch {
	case b == nil:
		return ""
	case b.Of == "":
		return number(b.Max)
	}
	return fmt.Sprintf("%g x %s", b.Max, b.Of)
}

// Ratio returns our figure divided by the column's, or false if the column has
// none.
func (r *Row) Ratio(c Column) (float64, bool) {
	peer, ok := r.Peers[c]
	return r.Ours / peer, ok && peer > 0
}

// Met reports whether the cost is within the budget. It returns false if the
// budget is a factor of a figure that is missing.
func (r *Row) Met() bool {
	switch {
	case r.Budget == nil:
		return true
	case r.Budget.Of == "":
		return r.Ours <= r.Budget.Max
	}
	ratio, ok := r.Ratio(r.Budget.Of)
	return ok && ratio <= r.Budget.Max
}

// A line is a row with the values that follow from it.
type line struct {
	Date string `json:"date"`
	*Row
	Ratios map[Column]float64 `json:"ratios,omitempty"`
	Met    *bool              `json:"met,omitempty"`
}

// JSON writes an object for each row, each on its own line.
func JSON(w io.Writer, date string, rows []Row) error {
	e := json.NewEncoder(w)
	for _, r := range rows {
		l := line{Date: date, Row: &r, Ratios: map[Column]float64{}}
		for _, c := range columns {
			if ratio, ok := r.Ratio(c); ok {
				l.Ratios[c] = ratio
			}
		}
		if r.Budget != nil {
			met := r.Met()
			l.Met = &met
		}
		if err := e.Encode(l); err != nil {
			return err
		}
	}
	return nil
}

// kernels lists the kernels of the rows, in order.
func kernels(rows []Row) (all []string) {
	for _, r := range rows {
		if !slices.Contains(all, r.Kernel) {
			all = append(all, r.Kernel)
		}
	}
	return all
}
