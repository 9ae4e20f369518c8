//go:build linux

package e2e

import (
	"cmp"
	"flag"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/vm"
)

var (
	// full is off in make test, which should take ten minutes, and on in make
	// test-kernels.
	full      = flag.Bool("full", false, "more kernels, and what takes longest to build; without -run, what the tests without -full leave out")
	onlyShare = flag.Int("share", 0, "with -run of one kernel: boot only this machine of those that share its tests; 0: all")
	seed      = flag.Uint64("seed", 1, "of the machines: with another one, threads and interrupts come in another order")
	// long is on in make test-long.
	long = flag.Bool("long", false, "loops at their full length; with -full alone, those of ofRare on "+oneKernel)
)

// rounds returns how often a test repeats something: quick times, or atLength
// times with -long. The test makes the same assertions in both cases.
func rounds(quick, atLength int) int {
	if *long {
		return atLength
	}
	return quick
}

// ofRare lists the tests whose loops look for what happens rarely. With -full they
// have their full length on oneKernel.
var ofRare = []string{"accounting", "ends", "exits", "flood", "iterators", "pairing", "watching"}

// ofDist lists the scripts that need what takes longest to build: they are skipped
// without -full.
var ofDist = []string{"image", "packages"}

// mainJob lists the tests of TestGuest that show that ksnoop works on a kernel.
// Without -full the kernels other than oneKernel run only these, unless -run
// names others.
var mainJob = []string{"attach", "counts", "pairing", "printing", "stack", "trace", "values"}

// ofKsnoop lists the tests of TestGuest that depend on ksnoop and the architecture
// more than on the kernel. They run on the oldest kernel, oneKernel and the newest,
// and for arm64 on oneKernel only.
var ofKsnoop = []string{
	"aggregates", "bounds", "cli", "denied", "dump", "expressions", "faults", "format", "functions", "hostile", "iter", "json",
	"kprobe-events", "kprobe-files", "limited", "losses", "many", "mishaps", "mistakes", "offline", "opens", "over", "paths",
	"pointers", "print", "quiet", "rate", "record", "recordings", "scopes", "spans", "tree", "types", "verdicts", "verdicts-scope",
}

// ofARM64 lists the tests of TestGuest that show what differs between kernels for
// arm64: how a function is attached to, and what is read at its entry and return.
var ofARM64 = []string{
	"accounting", "casts", "chain", "doctor", "ends", "fallback", "frozen", "joined", "kstack", "language", "modules", "noroom",
	"part", "preemption", "refused", "runtime", "spanning", "strings", "sweep", "tables", "tagged", "unreadable", "ustack", "watch",
	"watching",
}

// skipWithFull skips a test that is the same with and without -full, unless -run
// names it: CI runs both.
func skipWithFull(t *testing.T) {
	if *full && !*long && !named() {
		t.Skip("runs without -full")
	}
}

// onlyWithFull skips a test that make test leaves out, unless -run names it.
func onlyWithFull(t *testing.T) {
	if !*full && !named() {
		t.Skip("runs with -full")
	}
}

// named reports whether -run names tests.
func named() bool { return flag.Lookup("test.run").Value.String() != "" }

// longHere reports whether the loops of TestGuest have their full length on a kernel.
func longHere(suite vm.Suite) bool {
	return *long || *full && !named() && suite.Arch == vm.AMD64 && suite.String() == oneKernel
}

// replaysHere reports whether the traces of scripts are replayed on a kernel.
func replaysHere(suite vm.Suite) bool {
	return *replays || *full && !named() && suite.Arch == vm.AMD64 && suite.String() == "5.10"
}

// leftOut lists the tests that -full leaves out on a kernel: those that run there
// without -full and are the same, and those that run on enough other kernels. With
// -long it is none.
func leftOut(t *testing.T, suite vm.Suite) (names []string) {
	if *long {
		return nil
	}
	line := suite.String()
	for _, name := range guestTests(t) {
		main, little := slices.Contains(mainJob, name), slices.Contains(ofKsnoop, name)
		var out bool
		switch {
		case suite.Arch == vm.ARM64 && line == oneKernel:
			out = main
		case suite.Arch == vm.ARM64:
			out = !main && !slices.Contains(ofARM64, name)
		case line == oneKernel:
			out = !slices.Contains(ofRare, name) && !slices.Contains(ofDist, name)
		default:
			out = main || little && slices.Contains(inBetween, line)
		}
		if out {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// inBetween lists the kernels for amd64 that leave out the tests in ofKsnoop.
var inBetween = []string{"6.1", "6.18"}

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

// weights lists the seconds that the longest tests of TestGuest take on oneKernel.
// They decide only which machine runs a test.
var weights = map[string]int{}

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

// TestShares checks that every test runs in one machine, and that the
// machines of a kernel have about the same work.
func TestShares(t *testing.T) {
	all := guestTests(t)
	require.Subset(t, all, slices.Collect(maps.Keys(weights)))
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

// TestLengths checks that -full leaves out only what other runs have.
func TestLengths(t *testing.T) {
	all := guestTests(t)
	require.Subset(t, all, slices.Concat(mainJob, ofKsnoop, ofARM64, ofRare, ofDist))
	for _, suite := range slices.Concat(vm.Matrix(vm.AMD64), vm.Matrix(vm.ARM64)) {
		left := leftOut(t, suite)
		switch one, line := suite.String() == oneKernel, suite.String(); {
		case suite.Arch == vm.ARM64 && one:
			require.Equal(t, mainJob, left)
		case suite.Arch == vm.ARM64:
			require.ElementsMatch(t, slices.Concat(mainJob, ofARM64, left), all)
		case one:
			require.ElementsMatch(t, slices.Concat(ofRare, ofDist, left), all)
		case slices.Contains(inBetween, line):
			require.ElementsMatch(t, slices.Concat(mainJob, ofKsnoop), left)
		default:
			require.Equal(t, mainJob, left)
		}
	}
}
