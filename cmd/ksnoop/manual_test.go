package main

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const manual = "../../docs/ksnoop.8"

// TestManual verifies that the manual page has all commands and options, and no
// others.
func TestManual(t *testing.T) {
	page, err := os.ReadFile(manual)
	require.NoError(t, err)
	wantCommands, wantOptions := []string{}, []string{}
	for _, c := range newApp(&environment{}).Commands {
		if c.Hidden {
			continue
		}
		wantCommands = append(wantCommands, c.Name)
		for _, f := range c.VisibleFlags() {
			wantOptions = append(wantOptions, f.Names()...)
		}
	}
	wantOptions = append(wantOptions, "errors") // of all commands
	_, commands, _ := strings.Cut(string(page), ".Sh COMMANDS\n")
	commands, options, _ := strings.Cut(commands, ".Sh OPTIONS\n")
	options, _, _ = strings.Cut(options, ".Sh ")
	require.ElementsMatch(t, wantCommands, firstGroups(`(?m)^\.It Cm ([a-z]+)$`, commands))
	var got []string
	for _, item := range firstGroups(`(?m)^\.It (Fl .*)$`, options) {
		got = append(got, firstGroups(`Fl (?:Fl )?([A-Za-z-]+)`, strings.ReplaceAll(item, "Fl Fl", "Fl"))...)
	}
	slices.Sort(wantOptions)
	slices.Sort(got)
	require.Equal(t, slices.Compact(wantOptions), got)
}

// firstGroups returns the first group of a pattern in each match.
func firstGroups(pattern, text string) (all []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// TestManualFormat verifies that mandoc and groff accept the manual page.
func TestManualFormat(t *testing.T) {
	for _, tool := range [][]string{
		{"mandoc", "-T", "lint", "-W", "warning", manual},
		{"groff", "-mdoc", "-ww", "-Tutf8", "-z", manual},
	} {
		t.Run(tool[0], func(t *testing.T) {
			needProgram(t, tool[0])
			out, err := exec.Command(tool[0], tool[1:]...).CombinedOutput()
			require.Empty(t, string(out))
			require.NoError(t, err)
		})
	}
}

// TestManualExamples verifies that the examples are valid specs in quotes.
func TestManualExamples(t *testing.T) {
	page, err := os.ReadFile(manual)
	require.NoError(t, err)
	examples := firstGroups(`(?m)^\.Dl ksnoop .*?'(.*?)'`, string(page))
	require.Len(t, examples, 4)
	for _, text := range examples {
		_, _, stderr := runLine("compile", "--btf", os.DevNull, text)
		require.Contains(t, stderr, os.DevNull, "it is a spec, and only the types are missing")
	}
}
