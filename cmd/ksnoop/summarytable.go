package main

import (
	"fmt"
	"strconv"
	"strings"
)

// text is a table with a row for each kind of event, for so many columns. What
// nobody counts is "-".
func (s summary) text(width int) string {
	t := newTable("FUNCTION", "KIND", "ATTACH", "HITS", "FILTERED", "MATCHED", "SHOWN", "LOST", "MISSED", "NO ROOM", "UNREADABLE", "UNPAIRED")
	for _, p := range s.Probes {
		row := []string{plainName(p.Func), p.Kind, p.Attach}
		for _, n := range []*uint64{p.Hits, p.Filtered, p.Matched, p.Delivered, p.Lost, p.Missed, p.NoRoom, p.Unreadable, p.Unpaired} {
			cell := "-"
			if n != nil {
				cell = strconv.FormatUint(*n, 10)
			}
			row = append(row, cell)
		}
		t.row(row...)
	}
	var text strings.Builder
	text.WriteString(t.fit(width))
	for _, m := range s.Shared {
		fmt.Fprintf(&text, "  the %d functions by %s that begin with %s missed %d in all\n", len(m.Funcs), m.Attach, plainName(m.Funcs[0]), m.Missed)
	}
	return text.String()
}
