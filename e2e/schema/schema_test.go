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

// optional matches the paths of the members that an object may lack. group and
// event are only valid together.
var optional = map[string]*regexp.Regexp{
	"trace": regexp.MustCompile(`^(probes/0/)?(module|missed|limited|unread|replaced|open)$|/format$|(^|/)wall$|^boot$|` +
		`^(caller|duration|diff|diff/p/0/member|shared|begin|(begin/)?(module|return|container|container/(id|name)|pointers|symbols|truncated|faults|truncated/[sb]/of))$|` +
		`^(more|full|faulted|after|writer|stack|place|unwatched)$|^rows/0/(count|hist|truncated|truncated/.*/of)$`),
	"results": regexp.MustCompile(`^(fields|text|notes|file|line|seconds)$`),
	"doctor":  regexp.MustCompile(`^$`),
	"print":   regexp.MustCompile(`^(cpu|wall|format|pointer|fault|truncated|truncated/of|symbols|changes)$`),
	"follow":  regexp.MustCompile(`^(boot|wall|module|parent|values|was|faults|stack|place|end)$|/format$`),
	"info":    regexp.MustCompile(`^(module|prototype|return|attach|reason|of|boot|lost|losses|losses/uncounted|damage)$|(^|/)(members|holes|padding|values|value|bit)$|^members/0/bits$`),
	"compile": regexp.MustCompile(`^functions/0/module$|^events/[01]/(size|parts|measure)$|/note$|/label$|/step$`),
	"help":    regexp.MustCompile(`^language$|(^|/)(short|value|default|category|repeats)$`),
	"errors":  regexp.MustCompile(`^hint$`),
}

// free matches the paths of the members whose names come from a spec or a
// command.
var free = map[string]*regexp.Regexp{
	"trace":   regexp.MustCompile(`^((begin/)?(args|pointers|symbols|diff|truncated|faults)|rows/0|rows/0/key|rows/0/truncated)/[^/]+$`),
	"results": regexp.MustCompile(`^fields/`),
	"doctor":  regexp.MustCompile(`^$`),
	"print":   regexp.MustCompile(`^(symbols|value)/[^/]+$`),
	"follow":  regexp.MustCompile(`^(values|was|faults)/`),
	"info":    regexp.MustCompile(`^$`),
	"compile": regexp.MustCompile(`^$`),
	"help":    regexp.MustCompile(`^$`),
	"errors":  regexp.MustCompile(`^$`),
}

func path(name string) string { return filepath.Join("../../docs", name+".schema.json") }

// both returns a schema as it is published, and in its strict form.
func both(t *testing.T, name string) (published, strict *Schema) {
	published, err := Read(path(name))
	require.NoError(t, err)
	strict, err = Strict(path(name))
	require.NoError(t, err)
	return published, strict
}

// whole returns lines that have every member.
func whole(t *testing.T, name string) string {
	text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	require.NoError(t, err)
	return string(text)
}

// members lists the members that a schema names.
func members(t *testing.T, name string) []string {
	text, err := os.ReadFile(path(name))
	require.NoError(t, err)
	return ask(t, string(text), `.. | objects | .properties? | objects | keys[]`)
}

// ask returns the results of a jq filter, one for each line.
func ask(t *testing.T, text, filter string) []string {
	var out strings.Builder
	require.NoError(t, jq.Run(&out, "-r", filter, []byte(text)))
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

// TestSchemas checks that every schema is valid, and that there are no others.
func TestSchemas(t *testing.T) {
	paths, err := filepath.Glob(path("*"))
	require.NoError(t, err)
	require.Len(t, paths, len(optional))
	for name := range optional {
		text, err := os.ReadFile(path(name))
		require.NoError(t, err)
		require.Contains(t, string(text), `"$schema": "https://json-schema.org/draft/2020-12/schema"`)
		require.Contains(t, string(text), `"$id": "https://github.com/ksnoop/ksnoop/raw/main/docs/`+name+`.schema.json"`)
		published, strict := both(t, name)
		require.NoError(t, published.Lines(whole(t, name)))
		require.NoError(t, strict.Lines(whole(t, name)))
		require.Subset(t, append(ask(t, whole(t, name), `.. | objects | keys[]`), "$cut"), members(t, name), "the lines have all members")
	}
}

// A changedLine is a line with one changed member.
type changedLine struct {
	At   string // its path
	Line json.RawMessage
}

// changed changes each member of lines in turn, with a filter that finds its
// path in $p.
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

// TestMissing checks that each member that is not optional is required.
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

// TestTypes checks that each member has a type. Arguments and results of events may
// be anything.
func TestTypes(t *testing.T) {
	anything := map[string]*regexp.Regexp{
		"trace":  regexp.MustCompile(`^((begin/)?(args/.*|return)|diff/.*/(before|after)|before|after|now|stack|rows/0/key/.*)$`),
		"print":  regexp.MustCompile(`^(value(/.*)?|changes/0/(before|after))$`),
		"follow": regexp.MustCompile(`^(values|was)/`),
	}
	for name := range optional {
		published, _ := both(t, name)
		for _, c := range changed(t, name, `setpath($p; if getpath($p) | type == "object" then [] else {} end)`) {
			err := published.Lines(string(c.Line))
			require.Equal(t, anything[name] != nil && anything[name].MatchString(c.At), err == nil, "%s: %v", c.At, err)
		}
	}
}

// TestAdded checks that readers accept new members in any object, and that
// ksnoop may not print them before the schema has them.
func TestAdded(t *testing.T) {
	for name := range optional {
		published, strict := both(t, name)
		for _, c := range changed(t, name, `setpath($p[:-1] + ["added"]; 1)`) {
			if (name == "trace" || name == "print" || name == "follow") && free[name].MatchString(c.At) {
				continue
			}
			require.NoError(t, published.Lines(string(c.Line)))
			require.ErrorContains(t, strict.Lines(string(c.Line)), "added': false schema", c.At)
		}
	}
	for _, name := range []string{"trace", "follow", "results", "info", "print"} {
		published, strict := both(t, name)
		require.NoError(t, published.Lines(`{"type":"new","what":[1]}`))
		require.Error(t, strict.Lines(`{"type":"new","what":[1]}`))
		require.Error(t, strict.Lines(`{"type":"new"}`))
		require.Error(t, published.Lines(`{"type":1}`))
	}
}

// TestRefused checks that the schemas refuse invalid values of members.
func TestRefused(t *testing.T) {
	for _, tc := range []struct{ schema, old, new, want string }{
		{"trace", `"version":1`, `"version":2`, "at '/version'"},
		{"trace", `"kind":"call","attach"`, `"kind":"both","attach"`, "at '/probes/0/kind'"},
		{"trace", `"attach":"fentry+fexit"`, `"attach":"fentry, fexit"`, "at '/probes/0/attach'"},
		{"trace", `"func":"f","module":"m","kind":"call","group"`, `"func":"","kind":"call","group"`, "at '/func'"},
		{"trace", `"group":"g","event":"e","call"`, `"event":"e","call"`, "properties 'group' required, if 'event' exists"},
		{"trace", `"time":1,"wall":"2026-11-22T22:57:02.000000001Z","cpu"`, `"time":-1,"cpu"`, "at '/time'"},
		{"trace", `"time":1,"wall":"2026-11-22T22:57:02.000000001Z","cpu"`, `"time":1.5,"cpu"`, "at '/time'"},
		{"trace", `"pid":2`, `"pid":"2"`, "at '/pid'"},
		{"trace", `"0xff10"`, `"ff10"`, "at '/call'"},
		{"trace", `"0xff20"`, `"0xFF20"`, "at '/caller'"},
		{"trace", `"0xff30"`, `16`, "at '/pointers/s'"},
		{"trace", `"pointers":{"s":"0xff30"}`, `"pointers":{}`, "at '/pointers'"},
		{"trace", `"s":"abc"`, `"s":{"$cut":0}`, "at '/args/s/$cut'"},
		{"trace", `"shown":3`, `"shown":-3`, "at '/truncated/s/shown'"},
		{"trace", `"NULL pointer"`, `""`, "at '/faults/return'"},
		{"trace", `"time":7`, `"time":-7`, "at '/begin/time'"},
		{"trace", `"0xff60"`, `"40"`, "at '/begin/pointers/b'"},
		{"trace", `"unread":1}]`, `"unread":0}]`, "at '/probes/0/unread'"},
		{"trace", `"lost":2,"noroom":0,"missed":0,"unreadable":0,"unpaired":0,"limited":3,"unread":1}` + "\n", `"lost":null}` + "\n", "at '/lost'"},
		{"trace", `"full":1`, `"full":0`, "at '/full'"},
		{"trace", `"hist":[{"from":0,`, `"hist":[{"from":0.5,`, "at '/rows/0/hist/0/from'"},
		{"trace", `["g","h"]`, `["g"]`, "at '/shared/0/funcs'"},
		{"print", `"version":1,"time":1,"wall"`, `"version":2,"time":1,"wall"`, "at '/version'"},
		{"print", `"pointer":"0xff10"`, `"pointer":"16"`, "at '/pointer'"},
		{"print", `"cpu":0`, `"cpu":-1`, "at '/cpu'"},
		{"results", `"status":"fail"`, `"status":"failed"`, "at '/status'"},
		{"results", `"line":9`, `"line":0`, "at '/line'"},
		{"results", `"seconds":0.5,"fields"`, `"seconds":0,"fields"`, "at '/seconds'"},
		{"results", `["f called=3"]`, `[]`, "at '/notes'"},
		{"results", `"metric":"sum"`, `"metric":"total"`, "at '/fields/metric'"},
		{"results", `"sum":-5`, `"sum":"-5"`, "at '/fields/sum'"},
		{"results", `"ok":false`, `"ok":"no"`, "at '/ok'"},
		{"follow", `"object":"b","address":"0xff01","func"`, `"object":"B","address":"0xff01","func"`, "at '/object'"},
		{"follow", `"0xff01","func"`, `"ff01","func"`, "at '/address'"},
		{"follow", `"values":{"skb->len":3}`, `"values":{}`, "at '/values'"},
		{"follow", `"functions":3`, `"functions":0`, "at '/functions'"},
		{"follow", `"calls":1`, `"calls":0`, "at '/calls'"},
		{"doctor", `"group":"kernel"`, `"group":"machine"`, "at '/checks/0/group'"},
		{"info", `"kind":"struct"`, `"kind":"class"`, "at '/kind'"},
		{"info", `"padding":3`, `"padding":0`, "at '/padding'"},
		{"info", `"bit":1,`, `"bit":8,`, "at '/members/0/bit'"},
		{"info", `"value":-1`, `"value":1.5`, "at '/members/0/members/0/values/0/value'"},
		{"info", `"holes":[{"offset":8,"bits":8}]`, `"holes":[]`, "at '/holes'"},
		{"info", `"attach":"fentry+fexit"`, `"attach":"fentry, fexit"`, "at '/attach'"},
		{"compile", `"kind":"call"`, `"kind":"both"`, "at '/events/0/kind'"},
		{"compile", `"entries":4096`, `"entries":-1`, "at '/maps/0/entries'"},
		{"trace", `"boot":"0-1"`, `"boot":""`, "at '/boot'"},
		{"trace", `"since":0,"time":1,"wall":"2026-11-22T22:57:02.000000001Z"`, `"since":0,"time":1,"wall":"2026-11-22 22:57:02"`, "at '/wall'"},
		{"trace", `"realtime":6`, `"realtime":"6"`, "at '/realtime'"},
		{"help", `"name":"trace"`, `"name":"Trace"`, "at '/commands/0/name'"},
		{"help", `"status":0`, `"status":256`, "at '/statuses/0/status'"},
		{"help", `"points":[{"form":"x","means":"y"}]`, `"points":[]`, "at '/language/points'"},
		{"errors", `"line":3`, `"line":0`, "at '/line'"},
		{"errors", `,"start":2,"end":2`, ``, "properties 'start', 'end' required"},
		{"errors", `"status":2`, `"status":0`, "at '/status'"},
		{"doctor", `"type":"doctor"`, `"type":"nurse"`, "at '/type'"},
	} {
		lines := whole(t, tc.schema)
		require.Equal(t, 1, strings.Count(lines, tc.old), tc.old)
		published, _ := both(t, tc.schema)
		require.ErrorContains(t, published.Lines(strings.Replace(lines, tc.old, tc.new, 1)), tc.want, tc.new)
	}
}

// TestErrors checks the errors for text that is not JSON, and for invalid
// schemas.
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

// TestJSONPage checks that the tables of docs/json.md have the members of the
// schema and no others.
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

// TestWithoutNumbers checks which lines are taken for equal.
func TestWithoutNumbers(t *testing.T) {
	require.Equal(t, `{"at":"0","n":-0,"v":[0,0.0]}`, withoutNumbers(`{"at":"0xff00ab12","n":-17,"v":[10,1.5]}`))
	require.Equal(t, withoutNumbers(`{"n":1}`), withoutNumbers(`{"n":200}`))
	require.NotEqual(t, withoutNumbers(`{"n":1}`), withoutNumbers(`{"n":"1"}`))
	require.NotEqual(t, withoutNumbers(`{"n":1}`), withoutNumbers(`{"n":true}`))
}
