package main

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFleet computes the tables of docs/fleet.md again from the figures that the page
// names.
func TestFleet(t *testing.T) {
	page, err := os.ReadFile("../../docs/fleet.md")
	require.NoError(t, err)
	for _, figure := range []string{
		"a scrape every 30 s", "4 kB and 2.9 bytes", "1.5 are used", "3 ms and 1.3 µs", "2.2 kB a series and 1.1 µs a sample", "disk in 15 days, GB",
		"| a line | 202 bytes;", "at most 4 µs an event", "202 bytes a line and 4 µs of CPU time an event", "took 32 µs of CPU time a line",
	} {
		require.Contains(t, strings.Join(strings.Fields(string(page)), " "), figure)
	}
	counts := numbersOf(t, string(page), `\| [^|]+ `, 9)
	require.GreaterOrEqual(t, len(counts), 5)
	for _, n := range counts {
		samples := n[0] * n[1] / 30
		require.Equal(t, n[0]*n[1], n[2], n)
		requireNear(t, n[3:], samples, (4000+2.9*n[0])*n[1]/30/1000, samples*1.5*15*86400/1e9, (3e-3+1.3e-6*n[0])/30*100, n[2]*2.2e3/1e9, samples*1.1e-6)
	}
	events := numbersOf(t, string(page), "", 7)
	require.Len(t, events, 4)
	for _, n := range events {
		lines := n[0] * n[1]
		require.Equal(t, 10_000.0, n[1])
		requireNear(t, n[2:], lines, lines*202/1e6, lines*202*86400/1e9, n[0]*4e-6*100, lines*32e-6)
	}
}

// numbersOf returns the last columns of the table rows that have a beginning.
func numbersOf(t *testing.T, page, beginning string, columns int) (rows [][]float64) {
	row := regexp.MustCompile(`(?m)^` + beginning + strings.Repeat(`\| [\d.,]+ `, columns) + `\|$`)
	for _, text := range row.FindAllString(page, -1) {
		var numbers []float64
		cells := strings.Split(strings.Trim(text, "| "), "|")
		for _, cell := range cells[len(cells)-columns:] {
			n, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimSpace(cell), ",", ""), 64)
			require.NoError(t, err)
			numbers = append(numbers, n)
		}
		rows = append(rows, numbers)
	}
	return rows
}

// requireNear checks that numbers are those that are wanted, to 5 %.
func requireNear(t *testing.T, have []float64, want ...float64) {
	require.Len(t, have, len(want))
	for i := range have {
		require.Less(t, math.Abs(have[i]/want[i]-1), 0.05, "%v, not %v", have[i], want[i])
	}
}
