package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/ksnoop/ksnoop"

// pure lists packages that no phase of the compiler may import, because the
// compiler makes no system calls.
var pure = []string{
	"github.com/cilium/ebpf/link", "github.com/cilium/ebpf/ringbuf", "github.com/cilium/ebpf/features", "os", "golang.org/x/sys/unix",
}

// arrows lists, for each package, our packages that it may import and the other
// packages that it must not import.
var arrows = map[string]struct{ ours, never []string }{
	"compiler/spec":          {nil, []string{"github.com/cilium/ebpf", "os"}},
	"compiler/spec/spectest": {nil, []string{"github.com/cilium/ebpf", "os"}},
	"compiler/spec/kprobe":   {[]string{"compiler/spec"}, []string{"github.com/cilium/ebpf", "os"}},
	"kallsyms":               {nil, []string{"github.com/cilium/ebpf", "os"}},
	"btfdump":                {nil, []string{"github.com/cilium/ebpf/link", "github.com/cilium/ebpf/ringbuf", "os"}},
	"compiler":               {[]string{"compiler/spec", "kallsyms"}, pure},
	"compiler/resolve":       {[]string{"compiler", "compiler/spec", "kallsyms"}, pure},
	"compiler/codegen":       {[]string{"compiler", "compiler/spec"}, pure},
	"compiler/compilertest":  {[]string{"compiler", "compiler/spec", "compiler/spec/kprobe", "kallsyms"}, pure},
	"compiler/suite": {[]string{"compiler", "compiler/spec", "compiler/spec/kprobe"}, []string{
		"github.com/cilium/ebpf", "github.com/cilium/ebpf/link", "github.com/cilium/ebpf/ringbuf", "os", "golang.org/x/sys/unix",
	}},
	"compiler/suite/bind":    {[]string{"compiler", "compiler/resolve", "compiler/spec", "compiler/suite"}, pure},
	"btfdump/rawbtf":         {nil, []string{"github.com/cilium/ebpf/link", "github.com/cilium/ebpf/ringbuf", "os", "golang.org/x/sys/unix"}},
	"btfdump/rawbtf/rawtest": {[]string{"btfdump/rawbtf"}, []string{"os"}},
	"runtime":                {[]string{"btfdump/rawbtf", "compiler", "compiler/codegen", "compiler/resolve", "compiler/spec", "compiler/spec/kprobe", "kallsyms", "runtime/clock"}, nil},
	"runtime/clock":          {nil, []string{"github.com/cilium/ebpf", "os"}},
	"runtime/known":          {nil, []string{"github.com/cilium/ebpf", "os"}},
	"runtime/userstack":      {[]string{"runtime/clock", "runtime/known"}, []string{"github.com/cilium/ebpf"}},
	"runtime/cgroup":         {nil, []string{"github.com/cilium/ebpf"}},
	"runtime/recording": {[]string{"btfdump/rawbtf", "compiler", "compiler/spec/kprobe", "kallsyms", "runtime", "runtime/cgroup", "runtime/known", "runtime/userstack"}, []string{
		"github.com/cilium/ebpf/link", "github.com/cilium/ebpf/ringbuf", "os", "golang.org/x/sys/unix",
	}},
	"runtime/render": {[]string{"btfdump", "compiler", "compiler/spec", "kallsyms", "runtime", "runtime/cgroup", "runtime/clock", "runtime/userstack"}, []string{
		"github.com/cilium/ebpf/link", "github.com/cilium/ebpf/ringbuf", "os",
	}},
}

// rooms lists the packages below cmd/ksnoop/internal. Each may import those of
// the lines above it, and all packages of arrows.
var rooms = [][]string{
	{"exit", "getopt"},
	{"term"},
	{"report"},
	{"target"},
	{"listing"},
	{"run"},
	{"check", "complete", "doctor", "replay", "values", "verdict"},
}

// fixture is a package that only tests import.
const fixture = "cmd/ksnoop/internal/fixture"

// level returns the index of the line of rooms that holds a package, or -1.
func level(name string) int {
	room, _ := strings.CutPrefix(name, "cmd/ksnoop/internal/")
	return slices.IndexFunc(rooms, func(line []string) bool { return slices.Contains(line, room) })
}

// TestImports checks that imports point downwards only, as docs/architecture.md
// shows.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"/...").Output()
	require.NoError(t, err)
	seen := 0
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		name := strings.TrimPrefix(fields[0], module+"/")
		switch {
		case strings.HasPrefix(name, "e2e"):
			checkHarness(t, name, fields[1:])
			continue
		case name == "cmd/ksnoop", name == fixture:
			require.NotContains(t, fields[1:], module+"/"+fixture, name)
			continue
		case name == "cmd/build":
			require.NotContains(t, line, " "+module, "it is there before all else")
			continue
		case strings.HasPrefix(name, "cmd/"):
			checkRoom(t, name, fields[1:])
			continue
		}
		allowed, ok := arrows[name]
		require.True(t, ok, "%s is a package that docs/architecture.md does not know", name)
		seen++
		for _, imported := range fields[1:] {
			require.NotContains(t, allowed.never, imported, "%s imports %s", name, imported)
			if ours, ok := strings.CutPrefix(imported, module+"/"); ok {
				require.Contains(t, allowed.ours, ours, "%s imports %s", name, ours)
			}
		}
		for _, ours := range allowed.ours {
			require.Contains(t, fields[1:], module+"/"+ours, "%s need not import %s", name, ours)
		}
	}
	require.Equal(t, len(arrows), seen)
}

// checkRoom checks that a room imports only rooms of the lines above it, and not
// the package of the command line.
func checkRoom(t *testing.T, name string, imports []string) {
	require.GreaterOrEqual(t, level(name), 0, "%s is a room that docs/architecture.md does not know", name)
	for _, imported := range imports {
		require.False(t, strings.HasPrefix(imported, "github.com/urfave/cli"), "%s knows the command line", name)
		ours, ok := strings.CutPrefix(imported, module+"/")
		if _, lower := arrows[ours]; ok && !lower {
			require.GreaterOrEqual(t, level(ours), 0, "%s imports %s", name, ours)
			require.Less(t, level(ours), level(name), "%s imports %s", name, ours)
		}
	}
}

// TestRoomSizes limits the number of files of each package. That of cmd/ksnoop is
// lower: it has a file for each command, and few others. So is that of runtime, where
// each file has a whole concept.
func TestRoomSizes(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{len .GoFiles}}`, module+"/...").Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		name, count, _ := strings.Cut(strings.TrimSpace(line), " ")
		files, err := strconv.Atoi(count)
		require.NoError(t, err)
		most := 45
		switch name {
		case module + "/cmd/ksnoop":
			most = 20
		case module + "/runtime":
			most = 27
		}
		require.LessOrEqual(t, files, most, name)
	}
}

// TestFileSizes checks that no file of a package has more than 400 lines, and that hardly
// any has less than 30: what is shorter is often a piece of another file's concept. A file
// for a command in cmd/ksnoop may be short, and so may doc.go.
func TestFileSizes(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}} {{.Dir}} {{join .GoFiles \" \"}}", module+"/...").Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		name, dir, short := fields[0], fields[1], []string{}
		for _, file := range fields[2:] {
			source, err := os.ReadFile(filepath.Join(dir, file))
			require.NoError(t, err)
			lines := strings.Count(string(source), "\n")
			require.LessOrEqual(t, lines, 400, "%s/%s", name, file)
			if lines < 30 && file != "doc.go" {
				short = append(short, file)
			}
		}
		if name != module+"/cmd/ksnoop" && !strings.HasPrefix(name, module+"/e2e") {
			require.LessOrEqual(t, len(short), 1, "%s: %s", name, short)
		}
	}
}

// jsonKey matches a key in the text of a JSON object.
var jsonKey = regexp.MustCompile(`[{,\[]\s*"\w*"?$|"\w+"\s*:`)

// jsonByHand lists packages that write JSON themselves, since they write a line for each
// event.
var jsonByHand = []string{"btfdump", "runtime/render"}

// TestJSON checks that all other packages leave JSON to encoding/json.
func TestJSON(t *testing.T) {
	inside := 0
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.Name() == ".build" {
			return fs.SkipDir // is not ours
		}
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "../e2e/") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok {
				field.Tag = nil // tells encoding/json the name
			}
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			if jsonKey.MatchString(text) {
				dir, err := filepath.Rel("..", filepath.Dir(path))
				require.NoError(t, err)
				require.Contains(t, jsonByHand, dir, "%s: %s", path, text)
				inside++
			}
			return true
		})
		return nil
	}))
	require.Greater(t, inside, 30)
}

// wireFormat matches lines that know how BTF lies in a file: the magic number, the
// kind in a type's second word, and a row of a table of kinds.
var wireFormat = regexp.MustCompile(`(?im)0x0*1?eb9f|0x9f, ?0xeb|\\x9f\\xeb|>> ?24 ?& ?0x1f|` +
	`^\s*"?(btf)?_?(kind)?_?(datasec|decl_?tag|type_?tag|enum_?64|func_?proto)"?( +\w+)?( *[=:].*)?,?$`)

// TestWireFormat checks that only btfdump/rawbtf knows the wire format of BTF.
func TestWireFormat(t *testing.T) {
	inside := 0
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.Name() == ".build" {
			return fs.SkipDir // is not ours
		}
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		for line := range strings.Lines(string(source)) {
			if wireFormat.MatchString(line) {
				require.True(t, strings.HasPrefix(path, "../btfdump/rawbtf/"), "%s: %s", path, line)
				inside++
			}
		}
		return nil
	}))
	require.Greater(t, inside, 10)
}

// checkHarness checks that the packages of e2e, apart from their tests, import no
// parts of the binary that they run.
func checkHarness(t *testing.T, name string, imports []string) {
	for _, imported := range imports {
		if ours, ok := strings.CutPrefix(imported, module+"/"); ok {
			require.Equal(t, "e2e", path.Dir(ours), "%s imports %s", name, ours)
		}
	}
}

// TestRequirements checks that each direct requirement has a line in
// docs/architecture.md. Package cli is one, and no other framework is there beside it.
func TestRequirements(t *testing.T) {
	mod, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	page, err := os.ReadFile("../docs/architecture.md")
	require.NoError(t, err)
	direct := regexp.MustCompile(`(?m)^(?:require )?\t?([a-z0-9.]+\.[a-z]+/\S+) v\S+$`).FindAllStringSubmatch(string(mod), -1)
	require.NotEmpty(t, direct)
	var paths []string
	for _, m := range direct {
		require.Contains(t, string(page), m[1])
		paths = append(paths, m[1])
	}
	require.Contains(t, paths, "github.com/urfave/cli/v2")
	require.NotRegexp(t, "pflag|cobra|kingpin", string(mod))
}

// TestNoServer verifies that nothing in ksnoop serves or fetches anything.
func TestNoServer(t *testing.T) {
	out, err := exec.Command("go", "list", "-tags", "urfave_cli_no_docs", "-deps", "../cmd/ksnoop").Output()
	require.NoError(t, err)
	packages := strings.Fields(string(out))
	require.Contains(t, packages, "github.com/ksnoop/ksnoop/runtime/recording")
	require.NotContains(t, packages, "net/http")
	require.NotContains(t, packages, "net")
}

// TestNoCgo verifies that go install makes a static binary without CGO_ENABLED=0: nothing
// in ksnoop has C if it may, as os/user and net would.
func TestNoCgo(t *testing.T) {
	cmd := exec.Command("go", "list", "-tags", "urfave_cli_no_docs", "-deps", "-f", "{{if .CgoFiles}}{{.ImportPath}}{{end}}", "../cmd/ksnoop", "os/user")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Equal(t, []string{"runtime/cgo", "os/user"}, strings.Fields(string(out)))
}
