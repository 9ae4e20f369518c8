package schema

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/jq"
)

// optional are the members that an object may lack, by their paths. Of group and
// event there are both or none.
var optional = map[string]*regexp.Regexp{
	"trace": regexp.MustCompile(`^(probes/0/)?(module|missed|unread)$|/format$|` +
		`^(caller|return|duration|pointers|truncated|faults|shared|truncated/s/of)$`),
	"results": regexp.MustCompile(`^(fields|text|notes|file|line|seconds)$`),
	"doctor":  regexp.MustCompile(`^$`),
}

// free are the members that a spec or a command gives names.
var free = map[string]*regexp.Regexp{
	"trace":   regexp.MustCompile(`^(args|pointers|truncated|faults)/[^/]+$`),
	"results": regexp.MustCompile(`^fields/`),
	"doctor":  regexp.MustCompile(`^$`),
}

func path(name string) string { return filepath.Join("../../docs", name+".schema.json") }

// both are a schema as it is published, and as ksnoop keeps to it.
func both(t *testing.T, name string) (published, strict *Schema) {
	published, err := Read(path(name))
	require.NoError(t, err)
	strict, err = Strict(path(name))
	require.NoError(t, err)
	return published, strict
}

// whole is lines that have every member.
func whole(t *testing.T, name string) string {
	text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	require.NoError(t, err)
	return string(text)
}

// members are those that a schema names.
func members(t *testing.T, name string) []string {
	text, err := os.ReadFile(path(name))
	require.NoError(t, err)
	return ask(t, string(text), `.. | objects | .properties? | objects | keys[]`)
}

// ask is what jq says of JSON, a line each.
func ask(t *testing.T, text, filter string) []string {
	var out strings.Builder
	require.NoError(t, jq.Run(&out, "-r", filter, []byte(text)))
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

// Every schema is valid, and these are all.
func TestSchemas(t *testing.T) {
	paths, err := filepath.Glob(path("*"))
	require.NoError(t, err)
	require.Len(t, paths, len(optional))
	for name := range optional {
		text, err := os.ReadFile(path(name))
		require.NoError(t, err)
		require.Contains(t, string(text), `"$schema": "https://json-schema.org/draft/2020-12/schema"`)
		published, strict := both(t, name)
		require.NoError(t, published.Lines(whole(t, name)))
		require.NoError(t, strict.Lines(whole(t, name)))
		require.Subset(t, append(ask(t, whole(t, name), `.. | objects | keys[]`), "$cut"), members(t, name), "the lines have all members")
	}
}

// A changed line is one of which a member was changed.
type changedLine struct {
	At   string // its path
	Line json.RawMessage
}

// changed changes each member of lines in turn, with a filter that finds its path
// in $p.
func changed(t *testing.T, name, filter string) (all []changedLine) {
	filter = `. as $l | paths as $p | select($p[-1] | type == "string") |
		{at: $p | map(tostring) | join("/"), line: ($l | ` + filter + `)}`
	for _, line := range ask(t, whole(t, name), filter) {
		var c changedLine
		require.NoError(t, json.Unmarshal([]byte(line), &c))
		all = append(all, c)
	}
	return all
}

// Each member that is not optional must be there.
func TestMissing(t *testing.T) {
	for name, may := range optional {
		published, _ := both(t, name)
		for _, c := range changed(t, name, `delpaths([$p])`) {
			if !free[name].MatchString(c.At) {
				err := published.Lines(string(c.Line))
				require.Equal(t, may.MatchString(c.At), err == nil, "%s: %v", c.At, err)
			}
		}
	}
}

// Each member has a type. Arguments and results may be anything.
func TestTypes(t *testing.T) {
	anything := regexp.MustCompile(`^(args/.*|return)$`)
	for name := range optional {
		published, _ := both(t, name)
		for _, c := range changed(t, name, `setpath($p; if getpath($p) | type == "object" then [] else {} end)`) {
			err := published.Lines(string(c.Line))
			require.Equal(t, anything.MatchString(c.At), err == nil, "%s: %v", c.At, err)
		}
	}
}

// Readers accept what is added to any object; ksnoop may not print it before the
// schema has it.
func TestAdded(t *testing.T) {
	for name := range optional {
		published, strict := both(t, name)
		for _, c := range changed(t, name, `setpath($p[:-1] + ["added"]; 1)`) {
			if name == "trace" && free[name].MatchString(c.At) {
				continue
			}
			require.NoError(t, published.Lines(string(c.Line)))
			require.ErrorContains(t, strict.Lines(string(c.Line)), "added': false schema", c.At)
		}
	}
	for _, name := range []string{"trace", "results"} {
		published, strict := both(t, name)
		require.NoError(t, published.Lines(`{"type":"new","what":[1]}`))
		require.Error(t, strict.Lines(`{"type":"new","what":[1]}`))
		require.Error(t, strict.Lines(`{"type":"new"}`))
		require.Error(t, published.Lines(`{"type":1}`))
	}
}

// What a member may not be.
func TestRefused(t *testing.T) {
	for _, tc := range []struct{ schema, old, new, want string }{
		{"trace", `"version":1`, `"version":2`, "at '/version'"},
		{"trace", `"kind":"call","attach"`, `"kind":"both","attach"`, "at '/probes/0/kind'"},
		{"trace", `"attach":"fentry+fexit"`, `"attach":"fentry, fexit"`, "at '/probes/0/attach'"},
		{"trace", `"func":"f","module":"m","kind":"call","group"`, `"func":"","kind":"call","group"`, "at '/func'"},
		{"trace", `"group":"g","event":"e","call"`, `"event":"e","call"`, "properties 'group' required, if 'event' exists"},
		{"trace", `"time":1,"cpu"`, `"time":-1,"cpu"`, "at '/time'"},
		{"trace", `"time":1,"cpu"`, `"time":1.5,"cpu"`, "at '/time'"},
		{"trace", `"pid":2`, `"pid":"2"`, "at '/pid'"},
		{"trace", `"0xff10"`, `"ff10"`, "at '/call'"},
		{"trace", `"0xff20"`, `"0xFF20"`, "at '/caller'"},
		{"trace", `"0xff30"`, `16`, "at '/pointers/s'"},
		{"trace", `"pointers":{"s":"0xff30"}`, `"pointers":{}`, "at '/pointers'"},
		{"trace", `"s":"abc"`, `"s":{"$cut":0}`, "at '/args/s/$cut'"},
		{"trace", `"shown":3`, `"shown":-3`, "at '/truncated/s/shown'"},
		{"trace", `"NULL pointer"`, `""`, "at '/faults/return'"},
		{"trace", `"unread":1}]`, `"unread":0}]`, "at '/probes/0/unread'"},
		{"trace", `"lost":2,"noroom":0,"missed":0,"unreadable":0,"unpaired":0,"unread":1}` + "\n", `"lost":null}` + "\n", "at '/lost'"},
		{"trace", `["g","h"]`, `["g"]`, "at '/shared/0/funcs'"},
		{"results", `"status":"fail"`, `"status":"failed"`, "at '/status'"},
		{"results", `"line":9`, `"line":0`, "at '/line'"},
		{"results", `"seconds":0.5,"fields"`, `"seconds":0,"fields"`, "at '/seconds'"},
		{"results", `["f called=3"]`, `[]`, "at '/notes'"},
		{"results", `"metric":"sum"`, `"metric":"total"`, "at '/fields/metric'"},
		{"results", `"sum":-5`, `"sum":"-5"`, "at '/fields/sum'"},
		{"results", `"ok":false`, `"ok":"no"`, "at '/ok'"},
		{"doctor", `"group":"kernel"`, `"group":"machine"`, "at '/checks/0/group'"},
		{"doctor", `"type":"doctor"`, `"type":"nurse"`, "at '/type'"},
	} {
		lines := whole(t, tc.schema)
		require.Equal(t, 1, strings.Count(lines, tc.old), tc.old)
		published, _ := both(t, tc.schema)
		require.ErrorContains(t, published.Lines(strings.Replace(lines, tc.old, tc.new, 1)), tc.want, tc.new)
	}
}

// What is no line of JSON, and what is no schema.
func TestErrors(t *testing.T) {
	s, err := Read(path("doctor"))
	require.NoError(t, err)
	for text, want := range map[string]string{
		"": "there is no line", "\n": "line 1: EOF", whole(t, "doctor") + "{}\n": "line 2: ", "{} {}\n": "line 1: ", "{\"type\"\n": "line 1: ",
	} {
		require.ErrorContains(t, s.Lines(text), want)
	}
	file := filepath.Join(t.TempDir(), "bad.json")
	for _, text := range []string{`{"type":"objekt"}`, `{"required":"type"}`, `{"$ref":"#/$defs/none"}`, `{`} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		for _, read := range []func(string) (*Schema, error){Read, Strict} {
			_, err := read(file)
			require.Error(t, err, text)
		}
	}
}

// docs/json.md has the members of the schema, and its tables have no others.
func TestJSONPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/json.md")
	require.NoError(t, err)
	page, names := string(text), members(t, "trace")
	for _, name := range names {
		require.Regexp(t, "`"+regexp.QuoteMeta(name)+"`|\""+regexp.QuoteMeta(name)+"\":", page, name)
	}
	row := regexp.MustCompile("(?m)^\\| ((?:`\\w+` ?)+)\\|")
	for _, title := range []string{"Run", "Event", "Loss and summary"} {
		_, section, _ := strings.Cut(page, "\n## "+title+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		rows := row.FindAllStringSubmatch(section, -1)
		require.Greater(t, len(rows), 5, title)
		for _, row := range rows {
			require.Subset(t, names, strings.Fields(strings.ReplaceAll(row[1], "`", "")))
		}
	}
}
