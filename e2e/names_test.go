package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// readSources returns the Go files of a directory, without tests.
func readSources(t *testing.T, dir string) (all string) {
	files, err := filepath.Glob(dir + "/*.go")
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all += string(text)
	}
	return all
}

// TestVocabulary checks that the names in the vocabulary of docs/architecture.md
// are declared in the packages that they name.
func TestVocabulary(t *testing.T) {
	_, table, ok := strings.Cut(readPages(t)["../docs/architecture.md"], "\n## The vocabulary\n")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n## ")
	dirs := map[string]string{"spec": "compiler/spec", "kprobe": "compiler/spec/kprobe", "compiler": "compiler", "suite": "compiler/suite",
		"runtime": "runtime", "render": "runtime/render", "recording": "runtime/recording"}
	names := regexp.MustCompile("`([a-z]+)\\.([A-Z]\\w*)").FindAllStringSubmatch(table, -1)
	require.Greater(t, len(names), 40)
	for _, name := range names {
		require.Regexp(t, `(?m)^(type |func |\t)`+name[2]+`\b`, readSources(t, "../"+dirs[name[1]]), name[0])
	}
}

// TestOneWord checks that words of the vocabulary which have meant two things are not used
// for the other one again, in names of functions, types, variables and constants: where the
// kernel's types are known, a struct or union is a structure, and only what programs write
// is a record; in the compiler, the attach kind is kprobe.session, and nothing is unread: only
// user space leaves an event in the ring buffer, and a value that cannot be read is unreadable.
func TestOneWord(t *testing.T) {
	declared := regexp.MustCompile(`(?m)^(?:func(?: \([^)]*\))?|type|var|const) (\w+)`)
	for _, rule := range []struct{ word, allowed, dirs string }{
		{"record", "(?i)record(ed|ing)", "btfdump btfdump/rawbtf compiler/resolve compiler/spec compiler/spec/kprobe compiler/suite compiler/suite/bind " +
			"cmd/ksnoop/internal/complete cmd/ksnoop/internal/check"},
		{"session", "(?i)kprobesession", "compiler compiler/resolve compiler/codegen compiler/compilertest compiler/spec cmd/ksnoop/internal/target"},
	} {
		for dir := range strings.FieldsSeq(rule.dirs) {
			names := declared.FindAllStringSubmatch(readSources(t, "../"+dir), -1)
			require.NotEmpty(t, names, dir)
			for _, name := range names {
				rest := regexp.MustCompile(rule.allowed).ReplaceAllString(name[1], "")
				require.NotContains(t, strings.ToLower(rest), rule.word, "%s in %s", name[1], dir)
			}
		}
	}
	for dir := range strings.FieldsSeq("compiler compiler/codegen compiler/resolve compiler/suite") {
		require.NotRegexp(t, `(?i)unread([^a]|$)`, readSources(t, "../"+dir), dir)
	}
}

// TestOldNames checks that what went stays gone: the hand-written framework of the command
// line, which package cli replaced; functions that were there twice; files that held a piece of
// another file's concept; and names that meant something else in each package that had them.
func TestOldNames(t *testing.T) {
	gone := regexp.MustCompile(`(?i)^(invocation|subcommand|draft|operands|suggest\w*|functionID|located)$`)
	once := regexp.MustCompile(`(?i)^(plan|test|event|session|readable|isName|shellWord|typeID|users?)$`)
	torn := regexp.MustCompile(`^(keep|leaf|completeline|strip)\.go$`)
	seen := map[string]string{}
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && (d.Name() == ".build" || path == "../e2e") {
			return fs.SkipDir // the harness is another program, and package cli is not ours
		}
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		require.NotRegexp(t, torn, filepath.Base(path), path)
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, name := range declared(file) {
			require.NotRegexp(t, gone, name, path)
			if once.MatchString(name) {
				name = strings.ToLower(name)
				require.Empty(t, seen[name], "%s of %s is declared there, too", name, path)
				seen[name] = path
			}
		}
		return nil
	}))
	for _, name := range []string{"plan", "event", "session", "isname", "shellword", "typeid"} {
		require.NotEmpty(t, seen[name], name)
	}
}

// declared returns the names of the functions, types, variables and constants of a file, but
// not those of methods, whose type tells what they mean.
func declared(file *ast.File) (names []string) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}
