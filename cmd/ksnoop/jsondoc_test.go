package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
	"github.com/ksnoop/ksnoop/e2e/jq"
)

// jqExample matches a command of the documentation and its output, up to the end of
// the block.
var jqExample = regexp.MustCompile("(?s)```\n\\$ jq ((?:-\\w+ )*)'([^']*)' (\\w+\\.json)\n(.*?)```\n")

// jsonLine matches a line of JSON in the documentation.
var jsonLine = regexp.MustCompile("(?s)```json\n(.*?)```\n")

// TestJSONLines verifies that the lines of the reference match the schema.
func TestJSONLines(t *testing.T) {
	text, err := os.ReadFile("../../docs/json.md")
	require.NoError(t, err)
	matches := jsonLine.FindAllSubmatch(text, -1)
	require.NotEmpty(t, matches)
	for _, m := range matches {
		require.NoError(t, fixture.Schema(t, "trace").Lines(string(m[1])))
	}
}

// TestJQExamples verifies that every jq example of the reference prints the
// documented output, from lines that ksnoop printed on a real kernel.
func TestJQExamples(t *testing.T) {
	const doc = "../../docs/json.md"
	text, err := os.ReadFile(doc)
	require.NoError(t, err)
	matches := jqExample.FindAllSubmatch(text, -1)
	require.Equal(t, strings.Count(string(text), "$ jq "), len(matches), "a jq example is not understood")
	require.Greater(t, len(matches), 9)
	lines := fixture.Schema(t, "trace")
	for _, m := range matches {
		input, err := os.ReadFile(filepath.Join("testdata", string(m[3])))
		require.NoError(t, err)
		require.NoError(t, lines.Lines(string(input)), "%s", m[3])
		var out strings.Builder
		require.NoError(t, jq.Run(&out, string(m[1]), string(m[2]), input), "%s", m[2])
		if *update {
			updated := strings.Replace(string(text), string(m[0]), strings.TrimSuffix(string(m[0]), string(m[4])+"```\n")+out.String()+"```\n", 1)
			text = []byte(updated)
			continue
		}
		require.Equal(t, out.String(), string(m[4]), "%s", m[2])
		require.NotEmpty(t, out.String(), "%s", m[2])
	}
	if *update {
		require.NoError(t, os.WriteFile(doc, text, 0o644))
	}
}
