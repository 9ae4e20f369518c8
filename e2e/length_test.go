//go:build linux

package e2e

import (
	"cmp"
	"flag"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/vm"
)

var (
	// full is off in make test, which takes ten minutes, and on in make test-kernels.
	full = flag.Bool("full", false, "every test on every kernel, with loops at their full length")
	seed = flag.Uint64("seed", 1, "of the machines: with another one, threads and interrupts come in another order")
)

// rounds returns how often a test repeats something: quick times, or atLength
// times with -full. The test makes the same assertions in both cases.
func rounds(quick, atLength int) int {
	if *full {
		return atLength
	}
	return quick
}

// named reports whether -run names tests.
func named() bool { return flag.Lookup("test.run").Value.String() != "" }

// mainJob lists the tests of TestGuest that show that ksnoop works on a kernel.
// Without -full the kernels other than oneKernel run only these, unless -run
// names others.
var mainJob = []string{"attach", "dump", "kprobe-files", "stack", "trace", "values", "verdicts-scope"}

// weights lists the seconds that the longest tests of TestGuest take on oneKernel
// with -full. They decide only which machine runs a test.
var weights = map[string]int{
	"pairing": 40, "runtime": 36, "measures": 28, "kprobe-events": 26, "many": 25, "json": 24, "doctor": 23, "verdicts": 21, "functions": 18,
	"attaching": 18, "language": 16, "privileges": 15, "losses": 14, "attach": 13, "tree": 12, "bounds": 12, "values": 11, "flood": 11, "sweep": 9,
	"lockdown": 9, "check": 9, "mistakes": 8, "denied": 8, "image": 8, "unreadable": 8, "cycles": 8, "kprobe-files": 8,
}

// lightWeight is the weight of all other tests, in seconds.
const lightWeight = 4

// share divides tests into parts of about equal weight, each in the order of names.
func share(names []string, parts int) [][]string {
	weight := func(name string) int { return cmp.Or(weights[name], lightWeight) }
	heaviest := slices.Clone(names)
	slices.SortStableFunc(heaviest, func(a, b string) int { return weight(b) - weight(a) })
	shares, sums := make([][]string, parts), make([]int, parts)
	for _, name := range heaviest {
		least := slices.Index(sums, slices.Min(sums))
		shares[least] = append(shares[least], name)
		sums[least] += weight(name)
	}
	for _, s := range shares {
		slices.SortFunc(s, func(a, b string) int { return slices.Index(names, a) - slices.Index(names, b) })
	}
	return shares
}

// shares returns, for each machine of a kernel, the pattern that selects its
// tests. -run selects them at the third level. Otherwise all tests run, on
// oneKernel in two machines at once; or the main job, without -full on the other kernels.
func shares(t *testing.T, suite vm.Suite) (patterns []string) {
	const all = "^TestGuest$"
	switch run := selectedBelow(all, 2); {
	case run != all:
		return []string{run}
	case suite.String() != oneKernel && !*full:
		return []string{all + "/" + oneOf(mainJob)}
	}
	for _, names := range share(guestTests(t), 2) {
		patterns = append(patterns, all+"/"+oneOf(names))
	}
	return patterns
}

// oneOf returns a pattern that matches these names and no others.
func oneOf(names []string) string { return "^(" + strings.Join(names, "|") + ")$" }

// guestTests lists the tests of TestGuest.
func guestTests(t *testing.T) (names []string) {
	for _, test := range inProcess {
		names = append(names, test.name)
	}
	for _, dir := range []string{"", lastScripts, onceScripts} {
		for _, f := range scriptFiles(t, dir, guestScripts) {
			names = append(names, strings.TrimSuffix(filepath.Base(f.Path), ".txtar"))
		}
	}
	return names
}

// TestShares checks that every test runs in one machine, and that the
// machines of a kernel have about the same work.
func TestShares(t *testing.T) {
	all := guestTests(t)
	require.Subset(t, all, mainJob)
	parts := share(all, 2)
	require.ElementsMatch(t, all, slices.Concat(parts...))
	var sums []int
	for _, names := range parts {
		sum := 0
		for _, name := range names {
			sum += cmp.Or(weights[name], lightWeight)
		}
		sums = append(sums, sum)
	}
	require.InDelta(t, sums[0], sums[1], lightWeight)
}
