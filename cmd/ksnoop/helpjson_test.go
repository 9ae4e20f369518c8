package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
)

// TestHelpJSON verifies that help --json describes all visible commands with all of their
// visible options, or the topic alone, by the schema.
func TestHelpJSON(t *testing.T) {
	read := func(args ...string) (o helpObject) {
		status, text, stderr := runLine(args...)
		require.Zero(t, status, stderr)
		require.NoError(t, fixture.Schema(t, "help").Lines(text))
		require.Equal(t, 1, strings.Count(text, "\n"))
		require.NoError(t, json.Unmarshal([]byte(text), &o))
		return o
	}
	all := read("help", "--json")
	app := newApp(&environment{})
	require.Len(t, all.Commands, len(app.VisibleCommands()))
	for i, c := range app.VisibleCommands() {
		got := all.Commands[i]
		require.Equal(t, c.Name, got.Name)
		require.Len(t, got.Options, len(c.VisibleFlags()), c.Name)
		for j, f := range c.VisibleFlags() {
			require.Equal(t, f.Names()[0], got.Options[j].Name)
			require.Equal(t, takesValue(f), got.Options[j].Value != "", "%s --%s", c.Name, f.Names()[0])
			require.NotContains(t, got.Options[j].Usage, "`")
		}
	}
	require.NotNil(t, all.Language)
	trace := read("--json", "help", "trace")
	require.Len(t, trace.Commands, 1)
	require.Nil(t, trace.Language)
	file := trace.Commands[0].Options[slices.IndexFunc(trace.Commands[0].Options, func(o optionObject) bool { return o.Name == "file" })]
	require.True(t, file.Repeats)
	require.Equal(t, "f", file.Short)
	require.Equal(t, "FILE", file.Value)
	spec := read("help", "spec", "--json")
	require.Empty(t, spec.Commands)
	require.NotNil(t, spec.Language)
	status, _, stderr := runLine("help", "--json", "trcae")
	require.Equal(t, 2, status)
	require.Equal(t, "ksnoop: there is no command trcae: did you mean 'ksnoop help trace'?\n", stderr)
}

// TestStatuses verifies that the manual page has the same exit statuses.
func TestStatuses(t *testing.T) {
	var want []string
	for _, s := range statuses {
		want = append(want, strconv.Itoa(s.Status))
	}
	page, err := os.ReadFile(manual)
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(page), ".Sh EXIT STATUS\n")
	section, _, _ = strings.Cut(section, ".El\n")
	require.Equal(t, want, strings.Fields(strings.ReplaceAll(strings.Join(firstGroups(`(?m)^\.It ([0-9 ,]+)$`, section), " "), ",", " ")))
}

// TestEveryCommandHasJSON verifies that all commands that print results can print them
// as JSON.
func TestEveryCommandHasJSON(t *testing.T) {
	for _, c := range newApp(&environment{}).VisibleCommands() {
		switch c.Name {
		case "completion", "record": // prints a script; replay prints what record has written
		case "help":
			require.True(t, hasOption(c, "--json"))
		default:
			require.True(t, hasOption(c, "--output"), c.Name)
			_, text, _ := runLine("help", c.Name)
			require.Regexp(t, `(?m)^  -o, --output .*\bjson\b`, text, c.Name)
		}
	}
}

// TestErrorFormat verifies that errors are objects on request, wherever the option is
// and whatever is wrong.
func TestErrorFormat(t *testing.T) {
	schema := fixture.Schema(t, "errors")
	probes := filepath.Join(t.TempDir(), "wrong.probes")
	require.NoError(t, os.WriteFile(probes, []byte("ksnoop-probes 1\nsuite a\nassrt a vfs_read never\n"), 0o600))
	foreign := filepath.Join(t.TempDir(), "foreign.specs")
	require.NoError(t, os.WriteFile(foreign, []byte("vfs_read(\xff)\n"), 0o600))
	for _, tc := range []struct{ line, want string }{
		{"--errors|json|vfs_read(count ==)", `{"type":"error","version":1,"status":2,"message":"a constant is missing after '=='","spec":"vfs_read(count ==)","start":17,"end":18}`},
		{"compile|vfs_read|-Q|--errors=json", `{"type":"error","version":1,"status":2,"message":"compile has no option -Q","hint":"ksnoop compile --help lists them"}`},
		{"--errors|json|help|trcae", `{"type":"error","version":1,"status":2,"message":"there is no command trcae","hint":"did you mean 'ksnoop help trace'?"}`},
		{"--errors|json|--errors|text|help|trcae", "ksnoop: there is no command trcae: did you mean 'ksnoop help trace'?"},
		{"replay|/no/such/file|--errors|json", `{"type":"error","version":1,"status":1,"message":"read the recording: open /no/such/file: no such file or directory"}`},
		{"compile|--btf|/no/such/file|vfs_read|--errors|json", `{"type":"error","version":1,"status":1,"message":"read the types: open /no/such/file: no such file or directory"}`},
		{"test|" + probes + "|--errors|json", `{"type":"error","version":1,"status":2,"message":"'assrt' is not a statement","hint":"did you mean 'assert'?","spec":"assrt a vfs_read never","start":0,"end":5,"file":"` + probes + `","line":3,"column":1}`},
		{"vfs_read|--errors|json|--comm|[", `{"type":"error","version":1,"status":2,"message":"--comm: the '[' has no closing ']'","spec":"[","start":0,"end":1}`},
		{"--errors|json|replay|/nope|--func|[^v]", `{"type":"error","version":1,"status":2,"message":"--func: a '^' after '['","hint":"everything but some is written [!v]","spec":"[^v]","start":0,"end":4}`},
		{"--errors|json|follow|vfs_read(file)|--in|a:[", `{"type":"error","version":1,"status":2,"message":"--in: the '[' has no closing ']'","spec":"a:[","start":2,"end":3}`},
		{"compile|-f|" + foreign + "|--errors|json", `{"type":"error","version":1,"status":2,"message":"byte 0xff at position 10: a spec is plain ASCII text","spec":"vfs_read(\ufffd)","start":9,"end":12,"file":"` + foreign + `","line":1,"column":10}`},
		{"--errors|jsno|help|trcae", `ksnoop: --errors is "jsno": did you mean "json"? it must be text or json`},
		{"help|trcae|--errors", `ksnoop: --errors has no value: ksnoop --help explains it`},
		{"vfs_read|--errors|json|--|./no-such-program", `{"type":"error","version":1,"status":127,"message":"run ./no-such-program: no such file or directory"}`},
	} {
		words := strings.Split(tc.line, "|")
		status, stdout, stderr := runLine(words...)
		require.NotZero(t, status)
		require.Empty(t, stdout)
		require.Equal(t, tc.want+"\n", stderr, tc.line)
		if strings.HasPrefix(stderr, "{") {
			require.NoError(t, schema.Lines(stderr))
		}
	}
	for _, name := range commandNames(newApp(&environment{})) {
		status, stdout, stderr := runLine("--errors", "json", name, "--no-such-option")
		require.Equal(t, 2, status, name)
		require.Empty(t, stdout, name)
		require.Contains(t, stderr, `"message":"`+name+` has no option --no-such-option","hint":"ksnoop `)
		require.NoError(t, schema.Lines(stderr), name)
	}
}
