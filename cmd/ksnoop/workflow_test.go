package main

import (
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

// The workflow of docs/ci.md is YAML, and the commands in it are those that the
// page shows with what they print, which is tested where there is a kernel.
func TestWorkflow(t *testing.T) {
	page, err := os.ReadFile("../../docs/ci.md")
	require.NoError(t, err)
	_, text, ok := strings.Cut(string(page), "```yaml\n")
	require.True(t, ok)
	text, rest, _ := strings.Cut(text, "```\n")
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct{ Name, Run string }
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &workflow))
	found := 0
	for _, step := range workflow.Jobs["verdicts"].Steps {
		command := strings.TrimPrefix(step.Run, "sudo ")
		if !strings.HasPrefix(command, "ksnoop ") {
			continue
		}
		found++
		require.Contains(t, rest, "# "+command+"\n", "%s is shown on the page", step.Run)
	}
	require.Equal(t, 2, found)
}
