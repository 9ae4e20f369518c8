//go:build linux

package e2e

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/vm"
)

// featurePage is the page with the table of what works on each kernel for arm64.
const featurePage = "../docs/install.md"

// TestFeatures tries each feature on kernels for arm64 with two CPUs, and compares
// what it has seen with the table in featurePage. -full selects the kernels of
// TestARM64, -run any.
func TestFeatures(t *testing.T) {
	chosen := strings.Contains(flag.Lookup("test.run").Value.String(), "/")
	if !*full && !chosen {
		t.Skip("runs with -full")
	}
	t.Parallel()
	for _, suite := range longestFirst(vm.ARM64) {
		line := suite.String()
		if !chosen && !slices.Contains(arm64Kernels, line) {
			continue
		}
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			page, err := os.ReadFile(featurePage)
			require.NoError(t, err)
			documented := featureColumn(string(page), line)
			printed := testOn(t, line, vm.Machine{CPUs: 2, Kernel: vm.Kernel{Arch: vm.ARM64}}, "^TestGuestFeatures$")
			for row, seen := range featuresSeen(printed) {
				why, no := strings.CutPrefix(documented[row], "no: ")
				if no && slices.Contains(strings.Split(why, "; "), strings.TrimPrefix(seen, "no: ")) {
					seen = documented[row]
				}
				assert.Equal(t, documented[row], seen, "%s on %s", row, line)
				delete(documented, row)
			}
			require.Empty(t, documented, "rows that were not tried")
		})
	}
}

// featuresSeen returns the rows in a guest's output: yes, or the reason why not.
func featuresSeen(output string) map[string]string {
	rows := map[string]string{}
	for said := range strings.Lines(output) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(said), featureMark); ok {
			row, answer, _ := strings.Cut(text, "\t")
			rows[row] = answer
		}
	}
	return rows
}

// featureColumn returns the column of a kernel in the table of a page. Where it says
// no, the last column has the reasons of all kernels, separated by semicolons.
func featureColumn(page, line string) map[string]string {
	rows := map[string]string{}
	column := -1
	for text := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(text), "|"), " | ")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case cells[0] == "feature":
			column = slices.Index(cells, line)
		case column < 0 || strings.HasPrefix(cells[0], "---"):
		case len(cells) <= column:
			return rows
		case cells[column] == "no":
			rows[cells[0]] = "no: " + cells[len(cells)-1]
		default:
			rows[cells[0]] = cells[column]
		}
	}
	return rows
}

// TestFeatureColumn checks that the table has a row for each feature.
func TestFeatureColumn(t *testing.T) {
	page, err := os.ReadFile(featurePage)
	require.NoError(t, err)
	for _, suite := range vm.Matrix(vm.ARM64) {
		rows := featureColumn(string(page), suite.String())
		require.Len(t, rows, len(featureRows), "%v", rows)
		for _, row := range featureRows {
			require.Regexp(t, `^(yes|no: \S.*)$`, rows[row.name], "%s on %s", row.name, suite)
		}
	}
}
