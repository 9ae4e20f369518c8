//go:build linux

package e2e

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/runtime"
)

// costTable is the file with what tracing and starting cost on each kernel. Its
// lines are the kernel, the row and the figure, separated by tabs. -update
// writes the figures that a test has measured.
const costTable = "testdata/costs.txt"

// The largest increases over the table that pass. What a process does varies
// more than what is added to a call: Go's runtime collects garbage when it
// will. A kernel of another release than that of the table does other work.
const (
	callIncrease    = 1.03
	processIncrease = 1.10
	releaseIncrease = 1.15
	callNoise       = 3 // instructions
	memoryIncrease  = 1.25
	endedNoise      = 500 // million instructions: RCU tasks looks only every 100 ms whether a grace period is over
)

// processRow begins the names of rows about whole processes, and releaseRow is
// the row with the release of the kernel that the others were measured on. What
// the kernel alone takes is in baseRow, which has no limit: it differs by 5 % from
// boot to boot, and the other rows, which are what is added to it, do not.
// endedRow and memoryRow end the names of rows that have other limits.
const (
	processRow = "start: "
	releaseRow = "release"
	baseRow    = "a call without programs"
	endedRow   = ", millions until ended"
	memoryRow  = ", KB"
)

// costMark begins the lines of the guest's output that are rows of the table.
const costMark = "cost row "

// reportCost prints a row in the guest.
func reportCost(row string, figure float64) {
	fmt.Printf("\n%s%s\t%.0f\n", costMark, row, math.Round(figure))
}

// reportRelease prints the row with the kernel's release.
func reportRelease(t *testing.T) {
	release, err := runtime.Release()
	require.NoError(t, err)
	fmt.Printf("\n%s%s\t%s\n", costMark, releaseRow, release)
}

// costsLock guards the table: kernels run at once.
var costsLock sync.Mutex

// checkCosts compares the rows of a guest's output with the table, or puts them
// into it.
func checkCosts(t *testing.T, line, output string) {
	measured := map[string]string{}
	for said := range strings.Lines(output) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(said), costMark); ok {
			row, figure, _ := strings.Cut(text, "\t")
			measured[row] = figure
		}
	}
	require.NotEmpty(t, measured)
	if !*full && !named() {
		return
	}
	costsLock.Lock()
	defer costsLock.Unlock()
	text, err := os.ReadFile(costTable)
	require.NoError(t, err)
	table := parseCosts(string(text))
	if *updateCheck {
		if table[line] == nil {
			table[line] = map[string]string{}
		}
		maps.Copy(table[line], measured)
		require.NoError(t, os.WriteFile(costTable, formatCosts(table), 0o644))
		return
	}
	for row := range measured {
		if table[line][row] == "" {
			t.Logf("%s: %q has no limit until -update writes it to %s", line, row, costTable)
		}
	}
	for _, complaint := range compareCosts(table[line], measured) {
		t.Errorf("%s: %s: go test ./e2e -run '%s' -update writes %s", line, complaint, t.Name(), costTable)
	}
}

func parseCosts(text string) map[string]map[string]string {
	table := map[string]map[string]string{}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSpace(line), "\t")
		if len(cells) != 3 {
			continue
		}
		if table[cells[0]] == nil {
			table[cells[0]] = map[string]string{}
		}
		table[cells[0]][cells[1]] = cells[2]
	}
	return table
}

func formatCosts(table map[string]map[string]string) (text []byte) {
	for _, line := range slices.Sorted(maps.Keys(table)) {
		for _, row := range slices.Sorted(maps.Keys(table[line])) {
			text = fmt.Appendf(text, "%s\t%s\t%s\n", line, row, table[line][row])
		}
	}
	return text
}

// compareCosts returns a sentence for each row that costs more than in the table
// of the kernel. A row that is not in the table has no limit.
func compareCosts(table, measured map[string]string) (complaints []string) {
	same := table[releaseRow] == measured[releaseRow]
	for _, row := range slices.Sorted(maps.Keys(measured)) {
		if row == releaseRow || row == baseRow {
			continue
		}
		was, err := strconv.ParseFloat(table[row], 64)
		if err != nil {
			continue
		}
		is, _ := strconv.ParseFloat(measured[row], 64)
		most := was*callIncrease + callNoise
		if strings.HasPrefix(row, processRow) {
			most = was * processIncrease
		}
		if strings.HasSuffix(row, memoryRow) {
			most = was * memoryIncrease
		}
		if !same {
			most = max(most, was*releaseIncrease+callNoise)
		}
		if strings.HasSuffix(row, endedRow) {
			most += endedNoise
		}
		if is > most {
			complaints = append(complaints, fmt.Sprintf("%q takes %.0f, and %.0f on %s", row, is, was, table[releaseRow]))
		}
	}
	return complaints
}

func TestCompareCosts(t *testing.T) {
	table := parseCosts("6.12\trelease\t6.12.1\n6.12\tcall\t200\n6.12\tstart: one\t1000\n6.12\tstart: one, millions until ended\t10\n5.10\tcall\t1\n")
	require.Equal(t, "5.10\tcall\t1\n6.12\tcall\t200\n6.12\trelease\t6.12.1\n6.12\tstart: one\t1000\n6.12\tstart: one, millions until ended\t10\n", string(formatCosts(table)))
	for _, tc := range []struct {
		release, call, start, ended string
		want                        []string
	}{
		{"6.12.1", "209", "1100", "511", nil},
		{"6.12.1", "100", "10", "1", nil},
		{"6.12.1", "210", "1101", "512", []string{
			`"call" takes 210, and 200 on 6.12.1`, `"start: one" takes 1101, and 1000 on 6.12.1`, `"start: one, millions until ended" takes 512, and 10 on 6.12.1`,
		}},
		{"6.12.2", "232", "1153", "44", nil},
		{"6.12.2", "234", "1154", "44", []string{`"call" takes 234, and 200 on 6.12.1`, `"start: one" takes 1154, and 1000 on 6.12.1`}},
	} {
		measured := map[string]string{releaseRow: tc.release, "call": tc.call, "start: one": tc.start, "start: one" + endedRow: tc.ended}
		require.Equal(t, tc.want, compareCosts(table["6.12"], measured))
	}
	require.Empty(t, compareCosts(table["6.12"], map[string]string{"new": "1"}))
	require.Empty(t, compareCosts(map[string]string{baseRow: "1"}, map[string]string{baseRow: "2"}))
	table["6.12"]["start: one"+memoryRow] = "1000"
	for _, release := range []string{"6.12.1", "6.12.2"} {
		require.Empty(t, compareCosts(table["6.12"], map[string]string{releaseRow: release, "start: one" + memoryRow: "1250"}))
		require.Len(t, compareCosts(table["6.12"], map[string]string{releaseRow: release, "start: one" + memoryRow: "1251"}), 1)
	}
}
