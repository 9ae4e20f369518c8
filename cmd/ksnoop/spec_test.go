package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// docExamples returns the specs of the reference, without their comments.
func docExamples(t *testing.T) []string {
	text, err := os.ReadFile("../../docs/spec.md")
	require.NoError(t, err)
	var specs []string
	inside := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```spec"
		case inside && line != "":
			example, _, _ := strings.Cut(line, " # ")
			specs = append(specs, strings.TrimSpace(example))
		}
	}
	return specs
}

// helpExamples returns the specs of the help, without the text next to them.
func helpExamples(help string) []string {
	var specs []string
	for line := range strings.Lines(help) {
		if strings.HasPrefix(line, "  ") {
			example, _, _ := strings.Cut(strings.TrimSpace(line), "  ")
			specs = append(specs, example)
		}
	}
	return specs
}

// TestExamples verifies that every example of the reference and of the help is a
// valid spec.
func TestExamples(t *testing.T) {
	doc, help := docExamples(t), helpExamples(specExamples)
	_, screen, _ := strings.Cut(specHelp, "\n\n") // the examples of specHelp
	require.Greater(t, len(doc), 40)
	require.Len(t, help, 10)
	require.Len(t, helpExamples(screen), 10)
	for _, text := range slices.Concat(doc, help, helpExamples(screen)) {
		_, err := spec.Parse(text)
		require.NoError(t, err, text)
	}
}

// TestDocIsComplete verifies that the reference names all formats, builtins and aggregates.
func TestDocIsComplete(t *testing.T) {
	text, err := os.ReadFile("../../docs/spec.md")
	require.NoError(t, err)
	for _, b := range spec.Builtins {
		require.Contains(t, string(text), "`$"+b, b)
	}
	for _, f := range spec.Formats {
		if strings.Trim(f[1:], "0123456789") != "" || len(f) == 1 {
			require.Contains(t, string(text), "`"+f+"`", f)
		}
	}
}

// TestSpecHelp verifies that the language fits on one screen of 80 columns, with all
// formats and builtins.
func TestSpecHelp(t *testing.T) {
	status, text, _ := runLine("help", "spec")
	require.Zero(t, status)
	require.Equal(t, specHelp, text)
	require.LessOrEqual(t, strings.Count(text, "\n"), 24)
	for line := range strings.Lines(text) {
		require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 80, line)
	}
	for _, a := range slices.Concat(spec.Aggregates, spec.OverCalls) {
		require.Contains(t, text, a+"(")
	}
	for _, b := range spec.Builtins {
		require.True(t, b == "retval" || strings.Contains(text, "$"+b), b) // $retval is "return"
	}
	for _, f := range spec.Formats {
		if strings.Trim(f[1:], "0123456789") != "" || len(f) == 1 {
			require.Regexp(t, "FORMAT:(.|\n)*\\b"+f+"\\b", text)
		}
	}
}

// runLine runs a command line as main does, but with buffers instead of files.
func runLine(args ...string) (status int, stdout, stderr string) {
	var out, errors bytes.Buffer
	status = ksnoopStatus(append([]string{"ksnoop"}, args...), strings.NewReader(""), &out, &errors)
	return status, out.String(), errors.String()
}
