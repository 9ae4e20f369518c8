package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What docs/troubleshooting.md says that ksnoop says is in the sources, and
// what ksnoop says is on the page.
func TestSentences(t *testing.T) {
	text, err := os.ReadFile("../../docs/troubleshooting.md")
	require.NoError(t, err)
	sentences := citedSentences(string(text))
	require.Greater(t, len(sentences), 100)

	all, errs := literals(t, ".", "../../runtime", "../../compiler", "../../compiler/spec", "../../compiler/spec/kprobe", "../../compiler/suite", "../../kallsyms")
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
		if begin >= 0 && !slices.Contains(unsaid, e) { // behind it are cures
			require.True(t, containsPieces(page, clauses(e)[begin]), "the error %q is not on the page", e)
		}
	}
}

// unsaid are errors that nobody sees, or that could only come from a mistake in
// ksnoop itself.
var unsaid = []string{
	"nobody reads stdout any more", "there is no map %s", "no event of group %s",
	"find the beginning of the kernel's text: there is no symbol %s",
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

// passedOn are files whose errors are about broken types, records and tests,
// each of which the page has one sentence for, or are answered in another way.
var passedOn = []string{"rawtypes.go", "elf.go", "event.go", "selftest.go", "asksymbols.go", "symboliter.go", "survey.go", "missed.go"}

// literals returns all strings of packages, and those of runtime and of this
// one that are errors. What ends in %w is not among these: what follows there is
// the reason.
func literals(t *testing.T, dirs ...string) (all, errs []string) {
	for _, dir := range dirs {
		files, err := filepath.Glob(dir + "/*.go")
		require.NoError(t, err)
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			commands := dir == "." || dir == "../../runtime"
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.BasicLit:
					if n.Kind == token.STRING {
						all = append(all, unquoted(t, n))
					}
				case *ast.CallExpr:
					if lit := errorText(n); lit != nil && commands && !slices.Contains(passedOn, filepath.Base(path)) {
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

// errorText is the format of a call that makes an error.
func errorText(call *ast.CallExpr) *ast.BasicLit {
	name := ""
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
	}
	if !slices.Contains([]string{"Errorf", "New", "usagef"}, name) || len(call.Args) == 0 {
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
	// what stands for something on the page: capital letters, numbers
	standIns = regexp.MustCompile(`[0-9]+(\.[0-9]+)*|\b([A-Z]|FILE|GLOB|SPEC|NAME|KIND|SIGNAL|DIRECTORY|MODULE|COMMAND)\b|\.\.\.`)
	quotes   = regexp.MustCompile("[\"'`]")
)

// likeSources leaves out of a text what differs: there is a zero byte.
func likeSources(text string) string {
	text = verbs.ReplaceAllString(text, "\x00")
	return quotes.ReplaceAllString(standIns.ReplaceAllString(text, "\x00"), "")
}

// clauses are the parts of a sentence, each of which may come from another
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

// containsPieces says whether all that does not differ in a clause is in a text.
func containsPieces(text, clause string) bool {
	for piece := range strings.SplitSeq(clause, "\x00") {
		if !strings.Contains(text, strings.TrimSpace(piece)) {
			return false
		}
	}
	return true
}

// formatsOf matches the clauses that are made of formats with two words or more.
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
