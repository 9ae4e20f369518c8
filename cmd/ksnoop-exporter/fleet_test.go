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

// TestFleet computes the table of docs/fleet.md again from the figures that the page
// names.
func TestFleet(t *testing.T) {
	page, err := os.ReadFile("../../docs/fleet.md")
	require.NoError(t, err)
	for _, figure := range []string{"a scrape every 30 s", "4 kB and 2.9 bytes", "1.5 are used", "3 ms and 1.3 µs", "disk in 15 days, GB"} {
		require.Contains(t, strings.Join(strings.Fields(string(page)), " "), figure)
	}
	rows := regexp.MustCompile(`(?m)^\| [^|]+ \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| ([\d.,]+) \| ([\d.,]+) \| ([\d.]+) \|$`).
		FindAllStringSubmatch(string(page), -1)
	require.GreaterOrEqual(t, len(rows), 5)
	for _, row := range rows {
		var n [8]float64
		for i := range row[1:] {
			n[i+1], err = strconv.ParseFloat(strings.ReplaceAll(row[i+1], ",", ""), 64)
			require.NoError(t, err)
		}
		samples := n[1] * n[2] / 30
		require.Equal(t, n[1]*n[2], n[3], row[0])
		for i, want := range map[int]float64{
			4: samples, 5: (4000 + 2.9*n[1]) * n[2] / 30 / 1000, 6: samples * 1.5 * 15 * 86400 / 1e9, 7: (3e-3 + 1.3e-6*n[1]) / 30 * 100,
		} {
			require.Less(t, math.Abs(n[i]/want-1), 0.05, "column %d of %s: %v", i, row[0], want)
		}
	}
}
