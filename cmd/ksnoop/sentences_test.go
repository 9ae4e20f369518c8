package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSentences verifies that each message in docs/troubleshooting.md is in the
// sources, and that each error of the sources is on the page.
func TestSentences(t *testing.T) {
	text, err := os.ReadFile("../../docs/troubleshooting.md")
	require.NoError(t, err)
	sentences := citedSentences(string(text))
	require.Greater(t, len(sentences), 100)

	all, errs := literals(t, "../../cmd/ksnoop", "../../runtime", "../../compiler", "../../compiler/resolve", "../../compiler/codegen", "../../kallsyms", "../../btfdump/rawbtf")
	sources, formats := likeSources(strings.Join(all, "\n")), formatsOf(all)
	for _, s := range sentences {
		for _, clause := range clauses(s) {
			made := func(f *regexp.Regexp) bool { return f.MatchString(clause) }
			require.True(t, containsPieces(sources, clause) || slices.ContainsFunc(formats, made), "%q of %q is not in the sources", clause, s)
		}
	}
	page := likeSources(strings.Join(sentences, "\n"))
	for _, e := range errs {
		begin := slices.IndexFunc(clauses(e), func(c string) bool { return len(strings.Fields(c)) > 3 })
		if begin >= 0 && !slices.Contains(unsaid, e) && !slices.Contains(passedOn, e) { // cures follow it
			require.True(t, containsPieces(page, clauses(e)[begin]), "the error %q is not on the page", e)
		}
	}
}

// unsaid are errors that no user sees, because only a mistake in ksnoop itself or in
// a program that imports it can cause them.
var unsaid = []string{
	"nobody reads stdout any more", "there is no map %s", "no event of group %s", "events cannot be shown as %q",
	"find the beginning of the kernel's text: there is no symbol %s", "there is no spec to trace by", "read %s: it has no program",
	"only what trace shows can be recorded", "a module has other types than the part of the kernel's that was read",
	"the globs match too many functions for a part of the types", "compile with %s of %d: it must be 0 to %d",
	"compile with RingBytes of %d: it must be a power of two from %d up", "attach kind %s cannot be asked for: only %v can",
	"trace in cgroup %s: it must be a directory of a mount of cgroup v2", "the unit was compiled without Options.ClearTables",
	"the unit was compiled without Options.Cgroup", "the unit was compiled without Options.Tree",
	"load a unit: it has no programs, as it is that of a recording", "attach a session: it is attached already: load the unit once more",
	"write a record of %d bytes: it has no header", "watch an object: the event has found none",
}

// citedSentences returns the first cells of the page's tables, without those about
// statuses.
func citedSentences(page string) (cells []string) {
	for line := range strings.Lines(page) {
		if cell, ok := strings.CutPrefix(line, "| "); ok {
			cell, _, _ = strings.Cut(cell, " |")
			if !regexp.MustCompile(`^([0-9, ]+|the command's|sentence|status)$`).MatchString(cell) {
				cells = append(cells, cell)
			}
		}
	}
	return cells
}

// passedOn are errors about broken records and types, for which the page has one
// sentence, and others that are handled or that another error explains.
var passedOn = []string{
	"decode a record of %d bytes: it has no header", "decode a record: there is no event %d", "decode a record of %s: %d bytes of %d",
	"decode a record of %s: this event has no records", "decode a record of %s: %d bytes are too few for a path", "an event is of thread %d instead of %d", "the link does not tell",
	"%s is not in the kernel's text", "struct kallsym_iter has no member %s",
}

// literals returns all strings of the packages below directories, and the errors
// among those of runtime and of this command. Strings that end in %w are not counted
// as errors: the reason follows there.
func literals(t *testing.T, dirs ...string) (all, errs []string) {
	for _, dir := range dirs {
		for _, path := range sourcesBelow(t, dir) {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			room := filepath.Base(filepath.Dir(path))
			commands := (dir == "../../cmd/ksnoop" || dir == "../../runtime") && room != "report"
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.BasicLit:
					if n.Kind == token.STRING {
						all = append(all, unquoted(t, n))
					}
				case *ast.CallExpr:
					if lit := errorText(n); lit != nil && commands {
						if text := unquoted(t, lit); !strings.HasSuffix(text, ": %w") {
							errs = append(errs, text)
						}
					}
				}
				return true
			})
		}
	}
	require.Greater(t, len(errs), 50)
	return all, errs
}

// sourcesBelow returns the files of all packages in and below a directory, without
// tests.
func sourcesBelow(t *testing.T, dir string) (files []string) {
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			files = append(files, path)
		}
		return err
	}))
	return files
}

// errorText returns the format of a call that makes an error, or nil.
func errorText(call *ast.CallExpr) *ast.BasicLit {
	name := ""
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
	}
	if !slices.Contains([]string{"Errorf", "New", "usagef", "Usagef"}, name) || len(call.Args) == 0 {
		return nil
	}
	lit, _ := call.Args[0].(*ast.BasicLit)
	if lit == nil || lit.Kind != token.STRING {
		return nil
	}
	return lit
}

func unquoted(t *testing.T, lit *ast.BasicLit) string {
	text, err := strconv.Unquote(lit.Value)
	require.NoError(t, err)
	return text
}

var (
	verbs = regexp.MustCompile(`%[-+#.\[\]0-9]*[a-zA-Z]`)
	// placeholders on the page: capital letters, numbers
	standIns = regexp.MustCompile(`[0-9]+(\.[0-9]+)*|\b([A-Z]|FILE|GLOB|SPEC|NAME|KIND|SIGNAL|DIRECTORY|MODULE|COMMAND)\b|\.\.\.`)
	quotes   = regexp.MustCompile("[\"'`]")
)

// likeSources replaces each placeholder and format verb in a text by a zero byte,
// and removes quotes.
func likeSources(text string) string {
	text = verbs.ReplaceAllString(text, "\x00")
	return quotes.ReplaceAllString(standIns.ReplaceAllString(text, "\x00"), "")
}

// clauses returns the parts of a sentence, each of which may come from a different
// string of the sources.
func clauses(sentence string) (all []string) {
	isEnd := func(r rune) bool { return strings.ContainsRune(":;,()", r) }
	for clause := range strings.FieldsFuncSeq(likeSources(sentence), isEnd) {
		if clause = strings.TrimSpace(clause); strings.Trim(clause, "\x00 ") != "" {
			all = append(all, clause)
		}
	}
	return all
}

// containsPieces reports whether the text contains all pieces of a clause between
// its placeholders.
func containsPieces(text, clause string) bool {
	for piece := range strings.SplitSeq(clause, "\x00") {
		if !strings.Contains(text, strings.TrimSpace(piece)) {
			return false
		}
	}
	return true
}

// formatsOf returns patterns for the clauses made from formats with two words or
// more.
func formatsOf(texts []string) (all []*regexp.Regexp) {
	for _, text := range texts {
		for _, clause := range clauses(text) {
			words := strings.Fields(strings.ReplaceAll(clause, "\x00", " "))
			if strings.Contains(clause, "\x00") && len(words) > 1 {
				all = append(all, regexp.MustCompile("^"+strings.ReplaceAll(regexp.QuoteMeta(clause), "\x00", ".+")+"$"))
			}
		}
	}
	return all
}
