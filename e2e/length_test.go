//go:build linux

package e2e

import (
	"cmp"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/vm"
)

var (
	// full is off in make test, which should not take much more than ten minutes, and on in make test-kernels.
	full = flag.Bool("full", false, "every test on every kernel (of arm64 on three) with loops of full length (but on arm64), packages, the table of costs, and other tracers")
	seed = flag.Uint64("seed", 1, "of the machines: with another one, threads and interrupts come in another order")
)

// onlyShares lists the machines that -share names, from 1 on; if empty, all boot.
var onlyShares []int

func init() {
	flag.Func("share", "with -run of one kernel: boot only the `machines` 1,2,... of those that share its tests", func(text string) error {
		for number := range strings.SplitSeq(text, ",") {
			n, err := strconv.Atoi(number)
			if err != nil || n < 1 {
				return errors.New("numbers from 1 on with commas between them, please")
			}
			onlyShares = append(onlyShares, n)
		}
		return nil
	})
}

// sharesToBoot returns which of the machines that share the tests of a kernel boot, from 0
// on. A machine that shares with none always does.
func sharesToBoot(machines int) (booted []int) {
	for i := range machines {
		if machines == 1 || len(onlyShares) == 0 || slices.Contains(onlyShares, i+1) {
			booted = append(booted, i)
		}
	}
	return booted
}

// machinesAtLength is how many machines share the tests of a kernel with -full: two in each
// of two jobs of CI.
const machinesAtLength = 4

// rounds returns how often a test repeats something: quick times, or atLength
// times with -full. The test makes the same assertions in both cases.
func rounds(quick, atLength int) int {
	if *full {
		return atLength
	}
	return quick
}

// mainJob lists the tests of TestGuest that show that ksnoop works on a kernel:
// traces, entry values at return, stacks, dumps, lines of kprobe_events and verdicts;
// and the errors of helpers, which the compiler's tests take for granted.
// Without -full the kernels other than oneKernel run only these, unless -run
// names others.
var mainJob = []string{"helpers", "main"}

// anyArch lists the tests of what ksnoop prints, refuses, may do, and counts as a verdict,
// which the architecture does not change. For arm64 they run on oneKernel alone.
var anyArch = []string{
	"cli", "denied", "format", "json", "lockdown", "memlock", "mistakes", "privileges", "quiet", "record", "scopes", "types",
	"verdicts", "verdicts-scope",
}

// alsoOn lists what kernels for amd64 run besides, without -full: the probe file in
// docs/ci.md is red on 6.1, and green on oneKernel.
var alsoOn = map[string][]string{"6.1": {"regression"}}

// onlyWithFull skips a test that make test leaves out, unless -run names it.
func onlyWithFull(t *testing.T) {
	if !*full && !named() {
		t.Skip("runs with -full")
	}
}

// named reports whether -run names tests.
func named() bool { return flag.Lookup("test.run").Value.String() != "" }

// replaysHere reports whether the traces of scripts are replayed on a kernel.
func replaysHere(suite vm.Suite) bool {
	return *replays || *full && suite.Arch == vm.AMD64 && (suite.String() == "5.10" || suite.String() == oneKernel)
}

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

// weights lists the seconds of CPU that the longest tests of TestGuest take on oneKernel.
// They decide only which machine runs a test.
var weights = map[string]int{
	"astyped": 6, "attach": 7, "attaching": 8, "casts": 6, "chain": 6, "check": 9, "denied": 12, "doctor": 16, "exits": 13,
	"expressions": 6, "fallback": 7, "follow": 36, "image": 6, "iter": 11, "json": 6, "kprobe-events": 14, "language": 7,
	"lines": 7, "lockdown": 12, "look": 10, "losses": 8, "measures": 17, "mistakes": 15, "modules": 6,
	"noroom": 11, "over": 10, "pairing": 10, "part": 17, "printing": 6, "privileges": 15, "record": 14,
	"recordings": 8, "replaced": 6, "runtime": 17, "spanning": 6, "spans": 12, "stack": 9, "tables": 11,
	"taken": 10, "types": 12, "unreadable": 6, "verdicts": 23, "verdicts-scope": 6, "watch": 10,
	"watch-objects": 12,
}

// weightsAtLength lists the same of tests whose loops are long with -full.
var weightsAtLength = map[string]int{"accounting": 20, "casts": 410, "chain": 45, "ends": 45, "follow": 80, "replaced": 10, "tables": 210, "taken": 190}

// lightWeight is the weight of all other tests, in seconds.
const lightWeight = 3

func weight(name string) int {
	if *full && weightsAtLength[name] != 0 {
		return weightsAtLength[name]
	}
	return cmp.Or(weights[name], lightWeight)
}

// share divides tests into parts of about equal weight, each in the order of names.
func share(names []string, parts int) [][]string {
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
	require.Subset(t, all, slices.Concat(mainJob, anyArch, slices.Collect(maps.Keys(weights)), slices.Collect(maps.Keys(weightsAtLength))))
	parts := share(all, rounds(2, machinesAtLength))
	require.ElementsMatch(t, all, slices.Concat(parts...))
	var sums []int
	for _, names := range parts {
		sum := 0
		for _, name := range names {
			sum += weight(name)
		}
		sums = append(sums, sum)
	}
	require.InEpsilon(t, slices.Max(sums), slices.Min(sums), 0.05)
}

// longTests matches what only tests with onlyWithFull do, and the benchmark: they install or
// build what belongs to other projects, or boot a machine that floods or soaks.
var longTests = regexp.MustCompile(`\bvm\.Install\(|\bpeerFiles\(t\)|\.BuildModule\(|"\^TestGuest(Soak|Bench|StartCosts|Peers|Known)\$"`)

// TestOnlyWithFull checks that make test leaves such tests out.
func TestOnlyWithFull(t *testing.T) {
	paths, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	found := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, fn := range strings.Split(string(text), "\nfunc ")[1:] {
			fn, _, _ = strings.Cut(fn, "\n}\n")
			if !longTests.MatchString(fn) || strings.HasPrefix(fn, "peerFiles(") {
				continue
			}
			found++
			require.Regexp(t, `^Test\w+\(t \*testing\.T\) \{\n\t(onlyWithFull\(t\)|if \*results == "" \{)\n`, fn, path)
		}
	}
	require.Greater(t, found, 3)
}
