package kprobe

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// TestExamples checks that every example of the reference is a valid line.
func TestExamples(t *testing.T) {
	text, err := os.ReadFile("../../../docs/kprobe-events.md")
	require.NoError(t, err)
	blocks := strings.Split(string(text), "```probe\n")[1:]
	require.Len(t, blocks, 4)
	total := 0
	for _, block := range blocks {
		lines, _, _ := strings.Cut(block, "```")
		traces, err := ParseFile("docs", lines)
		require.NoError(t, err)
		total += len(traces)
	}
	require.Equal(t, 22, total)
}

// TestDocIsComplete checks that the reference names all types and variables.
func TestDocIsComplete(t *testing.T) {
	text, err := os.ReadFile("../../../docs/kprobe-events.md")
	require.NoError(t, err)
	for _, name := range spec.FetchTypes {
		if strings.Trim(name[1:], digits) != "" {
			require.Contains(t, string(text), "`"+name+"`", name)
		}
	}
	for _, name := range variables {
		require.Contains(t, string(text), "`$"+name, name)
	}
	for name := range spec.EventFields {
		require.True(t, strings.Contains(string(text), name) || strings.ToUpper(name) == name || name == "common_cpu", name)
	}
}
