package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// docExamples are the specs of the reference, without their comments.
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

// helpExamples are the specs of the help, without what stands beside them.
func helpExamples() []string {
	var specs []string
	for line := range strings.Lines(specExamples) {
		if example, ok := strings.CutPrefix(line, "   "); ok {
			example, _, _ = strings.Cut(example, "  ")
			specs = append(specs, example)
		}
	}
	return specs
}

// Every example of the reference and of the help is a spec.
func TestExamples(t *testing.T) {
	doc, help := docExamples(t), helpExamples()
	require.Greater(t, len(doc), 40)
	require.Len(t, help, 9)
	for _, text := range append(doc, help...) {
		_, err := spec.Parse(text)
		require.NoError(t, err, text)
	}
}

// The reference names all formats and builtins.
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
