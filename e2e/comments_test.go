package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDocComments checks that the doc comments of functions and types begin with their
// names, which is easily forgotten when something gets a new name, and that a function
// "reports whether", as in the standard library.
func TestDocComments(t *testing.T) {
	seen := 0
	check := func(at token.Position, name, doc string, most int) {
		if words := strings.Fields(doc); len(words) > 0 {
			seen++
			assert.Contains(t, words[:min(most, len(words))], name, at)
			assert.NotRegexp(t, `\b(says|tells) (if|whether)\b`, doc, at)
		}
	}
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.Name() == ".build" {
			return fs.SkipDir // is not ours
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				check(files.Position(d.Pos()), d.Name.Name, d.Doc.Text(), 1)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok && !d.Lparen.IsValid() {
						check(files.Position(s.Pos()), s.Name.Name, d.Doc.Text(), 2)
					}
				}
			}
		}
		return nil
	}))
	require.Greater(t, seen, 3000)
}
