//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/vm"
)

// recipe returns a file of docs/ci.md.
func recipe(t *testing.T, name string) string {
	t.Helper()
	for _, s := range stepsWith(t, "../docs/ci.md", "") {
		if s.File == name {
			return s.Content
		}
	}
	require.Fail(t, "docs/ci.md has no file "+name)
	return ""
}

// lavaSteps returns the steps of LAVA's test definition as the script that LAVA makes of them.
func lavaSteps(t *testing.T) string {
	var definition struct {
		Metadata struct{ Format, Name string }
		Run      struct{ Steps []string }
	}
	require.NoError(t, yaml.UnmarshalWithOptions([]byte(recipe(t, "lava.yaml")), &definition, yaml.Strict()))
	require.NotEmpty(t, definition.Metadata.Name)
	require.Equal(t, "Lava-Test Test Definition 1.0", definition.Metadata.Format)
	return "set -ex\n" + strings.Join(definition.Run.Steps, "\n")
}

// gitlabScript returns the script of GitLab's job.
func gitlabScript(t *testing.T) string {
	var jobs map[string]struct {
		Tags, Script []string
		AllowFailure struct {
			ExitCodes int `yaml:"exit_codes"`
		} `yaml:"allow_failure"`
		Artifacts struct {
			When    string
			Reports struct{ JUnit string }
		}
	}
	require.NoError(t, yaml.UnmarshalWithOptions([]byte(recipe(t, ".gitlab-ci.yml")), &jobs, yaml.Strict()))
	job := jobs["verdicts"]
	require.Equal(t, "always", job.Artifacts.When)
	require.Equal(t, 4, job.AllowFailure.ExitCodes)
	script := "set -e\n" + strings.Join(job.Script, "\n")
	require.Contains(t, script, "junit="+job.Artifacts.Reports.JUnit)
	return script
}

// TestRecipeTexts checks the syntax of the recipes, and that they agree with each other.
func TestRecipeTexts(t *testing.T) {
	for _, name := range []string{"files.sh", "vng.sh", "vmtest.sh", "vm.sh"} {
		checkShell(t, recipe(t, name))
	}
	checkShell(t, lavaSteps(t))
	checkShell(t, gitlabScript(t))
	var tests []struct {
		Test struct {
			Timeout     map[string]int
			Definitions []struct{ Repository, From, Path, Name string }
		}
	}
	require.NoError(t, yaml.UnmarshalWithOptions([]byte(recipe(t, "ksnoop.jinja2")), &tests, yaml.Strict()))
	recipe(t, tests[0].Test.Definitions[0].Path)
	var pipeline struct {
		Jobs map[string]struct {
			Params map[string]string
		}
		Scheduler []struct{ Job string }
	}
	require.NoError(t, yaml.Unmarshal([]byte(recipe(t, "kernelci.yaml")), &pipeline))
	recipe(t, pipeline.Jobs[pipeline.Scheduler[0].Job].Params["test_method"]+".jinja2")
}

// TestKselftestRecipe reads the recipe's Makefile with make. The files that kselftest would install are those of the page.
func TestKselftestRecipe(t *testing.T) {
	dir := t.TempDir()
	test := filepath.Join(dir, "files")
	require.NoError(t, os.Mkdir(test, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(test, "Makefile"), []byte(recipe(t, "Makefile")), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "lib.mk"), []byte("all:\n\t@echo $(TEST_PROGS) $(TEST_FILES)\n"), 0o644))
	names, err := exec.CommandContext(t.Context(), "make", "-s", "-C", test).CombinedOutput()
	require.NoError(t, err, "%s", names)
	require.Len(t, strings.Fields(string(names)), 3)
	for name := range strings.FieldsSeq(string(names)) {
		recipe(t, name)
	}
}

// TestRecipes runs the recipes natively, with an assertion that holds and one that does not. Short scripts stand for the runners'
// own commands: a virtual machine is a shell, and LAVA's results are lines.
func TestRecipes(t *testing.T) {
	requireTracing(t)
	t.Parallel()
	ksnoop, err := filepath.Abs(staticBinary(t, vm.Arch(runtime.GOARCH)))
	require.NoError(t, err)
	bin := t.TempDir()
	require.NoError(t, os.Symlink(ksnoop, filepath.Join(bin, "ksnoop")))
	shellScript(t, bin, "vng", `[ "$*" != "${*#--run bzImage }" ] || exit 99
while [ "$1" != -- ]; do shift; done
shift
exec sh -c "$*"`)
	shellScript(t, bin, "vmtest", `[ "$# $1 $2" = "3 -k bzImage" ] || exit 99
exec sh -c "$3"`)
	shellScript(t, bin, "lava-test-case", `name=$1 result=$3
if [ "$2" = --shell ]; then
	shift 2
	if eval "$*"; then result=pass; else result=fail; fi
fi
echo "case $name $result"`)
	for name, text := range map[string]string{"kselftest": recipe(t, "files.sh"), "vng": recipe(t, "vng.sh"),
		"vmtest": recipe(t, "vmtest.sh"), "lava": lavaSteps(t), "gitlab": gitlabScript(t)} {
		for condition, ok := range map[string]bool{"at-least 1": true, "never": false} {
			dir := t.TempDir()
			require.NoError(t, os.Symlink(ksnoop, filepath.Join(dir, "ksnoop")))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "files.probes"), []byte(hostProbes(condition)), 0o644))
			cmd := exec.CommandContext(t.Context(), "sh", "-c", text)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			printed, status := string(out), cmd.ProcessState.ExitCode()
			result := map[bool]string{true: "\nok 2 files.execs # matched ", false: "\nnot ok 2 files.execs # matched "}[ok]
			require.Contains(t, printed, result, name)
			if name == "lava" {
				require.NoError(t, err, printed)
				verdict := map[bool]string{true: "pass", false: "fail"}[ok]
				for _, line := range []string{"case files " + verdict, "case files.run pass", "case files.execs " + verdict} {
					require.Contains(t, printed, "\n"+line+"\n")
				}
				continue
			}
			require.Equal(t, map[bool]int{true: 0, false: 1}[ok], status, printed)
			junit, err := filepath.Glob(filepath.Join(dir, "*", "*.xml"))
			require.NoError(t, err)
			direct, err := filepath.Glob(filepath.Join(dir, "*.xml"))
			require.NoError(t, err)
			if name != "kselftest" {
				require.Len(t, append(junit, direct...), 1, name)
			}
		}
	}
}

// TestRegressionPage checks that the probe file of docs/ci.md, and what it prints where
// it is red, are those of the script that runs it.
func TestRegressionPage(t *testing.T) {
	page, err := os.ReadFile("../docs/ci.md")
	require.NoError(t, err)
	script, err := os.ReadFile("testdata/regression.txtar")
	require.NoError(t, err)
	file := func(name string) string {
		_, text, ok := strings.Cut(string(script), "\n-- "+name+" --\n")
		require.True(t, ok, name)
		text, _, _ = strings.Cut(text, "\n-- ")
		return strings.TrimSuffix(text, "\n") + "\n"
	}
	require.Equal(t, file("splices.probes"), recipe(t, "splices.probes"))
	red := strings.ReplaceAll(regexp.QuoteMeta(file("red")), regexp.QuoteMeta("<...>"), ".*")
	require.Regexp(t, "(?m)^```\n"+red+"```$", string(page))
}
