//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

// workflowCommands returns docs/ci.md and what the steps of its workflow run.
func workflowCommands(t *testing.T) (page string, commands []string) {
	text, err := os.ReadFile("../docs/ci.md")
	require.NoError(t, err)
	_, workflow, ok := strings.Cut(string(text), "```yaml\n")
	require.True(t, ok)
	workflow, _, _ = strings.Cut(workflow, "```\n")
	var parsed struct {
		Jobs map[string]struct {
			Steps []struct{ Run string }
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(workflow), &parsed))
	for _, step := range parsed.Jobs["verdicts"].Steps {
		if step.Run != "" {
			commands = append(commands, step.Run)
		}
	}
	require.Len(t, commands, 3)
	return string(text), commands
}

// What the workflow of docs/ci.md runs when ksnoop is there, the page shows with
// what it prints, which TestDocs looks at.
func TestWorkflow(t *testing.T) {
	page, commands := workflowCommands(t)
	for _, command := range commands[1:] {
		command = strings.TrimPrefix(command, "sudo --preserve-env=GITHUB_STEP_SUMMARY ")
		require.Contains(t, page, "\n# "+command+"\n")
	}
}

// TestWorkflowBuild does the step of the workflow that installs ksnoop, of this
// source, and in a scratch directory.
func TestWorkflowBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("builds everything")
	}
	require.NoError(t, dependOnSources())
	_, commands := workflowCommands(t)
	bin, env := bareMachine(t, "install")
	require.NoError(t, os.WriteFile(filepath.Join(bin, "sudo"), fmt.Appendf(nil, sudo, bin), 0o755))
	env = append(env, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_VALUE_0=https://github.com/ksnoop/ksnoop",
		"GIT_CONFIG_KEY_0=url."+cloneOf(t, "..")+".insteadOf")
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", commands[0])
	cmd.Dir, cmd.Env = t.TempDir(), env
	printed, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", printed)
	printed, err = exec.CommandContext(t.Context(), filepath.Join(bin, "ksnoop"), "--version").CombinedOutput()
	require.NoError(t, err, "%s", printed)
	require.Regexp(t, `^ksnoop version [0-9a-f]{7,}\n$`, string(printed))
}

// sudo changes nobody's rights, and has a directory for /usr/local/bin.
const sudo = `#!/bin/sh
for word; do
	shift
	[ "$word" != /usr/local/bin ] || word='%s'
	set -- "$@" "$word"
done
exec "$@"
`
