package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// readPages returns the README and the pages of docs, by their paths.
func readPages(t *testing.T) map[string]string {
	paths, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	texts := map[string]string{}
	for _, path := range append(paths, "../README.md") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		texts[path] = string(text)
	}
	return texts
}

// Every link to a page leads to one.
func TestLinks(t *testing.T) {
	links := 0
	for path, text := range readPages(t) {
		for _, link := range regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`).FindAllStringSubmatch(text, -1) {
			links++
			require.FileExists(t, filepath.Join(filepath.Dir(path), link[1]), path)
		}
	}
	require.Greater(t, links, 20)
}

// fence finds the fences of a page: what stands behind the first quotes, and
// what is inside.
var fence = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")

// notInGuest is what the commands of a page need that TestDocs does not run:
// TestCheck and TestVirtualMachineRunner do.
var notInGuest = map[string]string{"check.md": "with=kernels", "ci.md": "with=qemu"}

// Commands with what they print stand in fences that a test runs.
func TestFences(t *testing.T) {
	// The fences of json.md begin with jq; TestJQExamples runs them.
	prompt := regexp.MustCompile(`(?m)^(\$ |# ksnoop )`)
	elsewhere := regexp.MustCompile(`with=\S+`)
	for path, text := range readPages(t) {
		for _, f := range fence.FindAllStringSubmatch(text, -1) {
			if with := elsewhere.FindString(f[1]); with != "" {
				require.Equal(t, notInGuest[filepath.Base(path)], with, path)
			}
			if slices.Contains(strings.Fields(f[1]), "console") || filepath.Base(path) == "json.md" && strings.HasPrefix(f[2], "$ jq ") {
				continue
			}
			require.NotRegexp(t, prompt, f[2], path)
		}
	}
}

// Every page is named by the README, and is not longer than it may be.
func TestReadmeNamesPages(t *testing.T) {
	all := readPages(t)
	readme := all["../README.md"]
	for path := range all {
		if path != "../README.md" {
			require.Contains(t, readme, "(docs/"+filepath.Base(path)+")", path)
		}
	}
	require.LessOrEqual(t, strings.Count(readme, "\n"), 66, "the README is one screen")
}
