package e2e

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// leastTwin is the size of a body in bytes from which on it must not be there twice.
// Smaller ones, such as methods of two printers that call the same, are no harm.
const leastTwin = 120

// TestTwins checks that no function is in the code twice, under whatever name: one of
// two would be changed some day, and the other forgotten.
func TestTwins(t *testing.T) {
	seen, set := map[string]string{}, token.NewFileSet()
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if _, missing := os.Stat(filepath.Join(path, "go.mod")); path != ".." && missing == nil {
			return fs.SkipDir // another module cannot call what is in a command of this one
		}
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			var body bytes.Buffer
			require.NoError(t, printer.Fprint(&body, set, f.Body))
			if body.Len() < leastTwin {
				continue
			}
			place := set.Position(f.Pos()).String()
			require.Empty(t, seen[body.String()], "the function at %s is also at %s:\n%s", place, seen[body.String()], &body)
			seen[body.String()] = place
		}
		return nil
	}))
	require.Greater(t, len(seen), 1000)
}
