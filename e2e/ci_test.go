//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/vm"
)

// A ciPart is one of the jobs that CI runs at the same time.
type ciPart struct{ Part, Run string }

func readCI(t *testing.T) []ciPart {
	text, err := os.ReadFile("../.github/workflows/ci.yml")
	require.NoError(t, err)
	var workflow struct {
		Jobs struct {
			Tests struct {
				TimeoutMinutes int `yaml:"timeout-minutes"`
				Strategy       struct {
					FailFast bool `yaml:"fail-fast"`
					Matrix   struct{ Include []ciPart }
				}
				Steps []struct{ Run string }
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &workflow))
	job := workflow.Jobs.Tests
	require.LessOrEqual(t, job.TimeoutMinutes, 35)
	require.NotZero(t, job.TimeoutMinutes)
	require.Equal(t, "${{ matrix.run }}", job.Steps[len(job.Steps)-1].Run)
	return job.Strategy.Matrix.Include
}

// TestCI checks that the jobs of CI together run what make test and make test-kernels run,
// and each test of a machine in one job only.
func TestCI(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	require.Contains(t, string(makefile), "\ntest-kernels: test-machines test-rest\n")
	whole := regexp.MustCompile(`\ntest-machines:\n\t.ci/deps rest\n\t(.*)\n`).FindSubmatch(makefile)
	require.NotNil(t, whole)
	var others []string
	var machines []selection
	for _, p := range readCI(t) {
		if flags, ok := strings.CutPrefix(p.Run, string(whole[1])+" "); ok {
			machines = append(machines, readSelection(t, flags))
		} else {
			others = append(others, p.Run)
		}
	}
	require.Equal(t, []string{".ci/run", "make test-rest"}, others)
	for _, test := range testsAtLength(t) {
		jobs := 0
		for _, s := range machines {
			if s.runs(test) {
				jobs++
			}
		}
		require.Equal(t, 1, jobs, "jobs that run %+v", test)
	}
}

// TestMakefile checks that the Makefile stays a short list of plain commands. What takes
// more is a program of its own.
func TestMakefile(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(makefile), "\n"), "\n")
	require.Less(t, len(lines), 40)
	for _, line := range lines {
		require.False(t, strings.HasPrefix(line, "\t") && strings.HasSuffix(line, "\\"), line)
	}
}

// A testAtLength is a test of this package, or a machine of a test that boots several for a kernel.
type testAtLength struct {
	name, kernel string
	share        int
}

// testsAtLength returns what runs with -full.
func testsAtLength(t *testing.T) (all []testAtLength) {
	paths, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	kernels := map[string][]string{"TestARM64": arm64Kernels}
	for _, suite := range vm.Matrix(vm.AMD64) {
		kernels["TestMatrix"] = append(kernels["TestMatrix"], suite.String())
	}
	test := regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(t \*testing\.T\)`)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, found := range test.FindAllSubmatch(text, -1) {
			name := string(found[1])
			for _, kernel := range kernels[name] {
				for i := range machinesAtLength {
					all = append(all, testAtLength{name, kernel, i + 1})
				}
			}
			if kernels[name] == nil {
				all = append(all, testAtLength{name: name})
			}
		}
	}
	require.Contains(t, all, testAtLength{"TestMatrix", oneKernel, machinesAtLength})
	require.Contains(t, all, testAtLength{name: "TestCI"})
	return all
}

// A selection holds the tests that flags of go test select.
type selection struct {
	run, skip []*regexp.Regexp // a pattern for each level
	shares    []int
}

func readSelection(t *testing.T, flags string) (s selection) {
	words := strings.Fields(flags)
	require.Zero(t, len(words)%2, flags)
	for option := range slices.Chunk(words, 2) {
		value := strings.Trim(option[1], "'")
		switch option[0] {
		case "-run":
			s.run = patterns(value)
		case "-skip":
			s.skip = patterns(value)
		case "-share":
			for number := range strings.SplitSeq(value, ",") {
				n, err := strconv.Atoi(number)
				require.NoError(t, err)
				s.shares = append(s.shares, n)
			}
		default:
			require.Fail(t, "unknown option", option[0])
		}
	}
	return s
}

func patterns(text string) (levels []*regexp.Regexp) {
	for level := range strings.SplitSeq(text, "/") {
		levels = append(levels, regexp.MustCompile(level))
	}
	return levels
}

func (s selection) runs(test testAtLength) bool {
	matches := func(levels []*regexp.Regexp) bool {
		return levels[0].MatchString(test.name) && (len(levels) == 1 || levels[1].MatchString(test.kernel))
	}
	return (s.run == nil || matches(s.run)) && (s.skip == nil || !matches(s.skip)) && (s.shares == nil || slices.Contains(s.shares, test.share))
}
