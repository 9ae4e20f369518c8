// Package bench is the table of what tracing costs: rows of ksnoop's figure
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

// A Column is what ksnoop is compared with.
type Column string

// The columns, from the left to the right.
const (
	Empty  Column = "empty"           // programs of the same attach kind that do nothing
	BCC    Column = "bcc"             // ksnoop of bcc's libbpf-tools
	Kprobe Column = "bpftrace_kprobe" // bpftrace with kprobe and kretprobe
	Kfunc  Column = "bpftrace_kfunc"  // bpftrace with kfunc and kretfunc
)

var columns = []Column{Empty, BCC, Kprobe, Kfunc}

// A Row is one cost on one kernel. What a peer cannot do, or what cannot be
// asked of it, it has no figure for.
type Row struct {
	Kernel string `json:"kernel"` // its release; empty if the cost does not depend on it
	Name   string `json:"row"`    // group/what/how: a name that stays
	Unit   string `json:"unit"`

	Ours   float64            `json:"ours"`
	Peers  map[Column]float64 `json:"peers,omitempty"`
	Budget *Budget            `json:"budget,omitempty"`
	Note   string             `json:"note,omitempty"`
}

// A Budget is what a cost may be at most.
type Budget struct {
	Max float64 `json:"max"`
	Of  Column  `json:"of,omitempty"` // Max is a factor of this column, if there is one
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

// Ratio is ours divided by that of a column; false if it has none.
func (r *Row) Ratio(c Column) (float64, bool) {
	peer, ok := r.Peers[c]
	return r.Ours / peer, ok && peer > 0
}

// Met says whether the cost is within the budget. A factor of nothing is not.
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

// line is a row with what follows from it.
type line struct {
	Date string `json:"date"`
	*Row
	Ratios map[Column]float64 `json:"ratios,omitempty"`
	Met    *bool              `json:"met,omitempty"`
}

// JSON writes an object for each row, on a line of its own.
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

// kernels lists those of the rows, in their order.
func kernels(rows []Row) (all []string) {
	for _, r := range rows {
		if !slices.Contains(all, r.Kernel) {
			all = append(all, r.Kernel)
		}
	}
	return all
}
