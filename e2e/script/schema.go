//go:build linux

package script

import (
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ksnoop/ksnoop/e2e/schema"
)

// checkLines returns a command that fails the script unless each line of the
// files conforms to a schema in the directory schemas. A negated command fails
// unless each file has a line that does not.
func checkLines(schemas string) command {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		usage(ts, len(args) > 1, "[!] schema NAME FILE...")
		s, err := schema.Strict(filepath.Join(schemas, args[0]+".schema.json"))
		ts.Check(err)
		for _, name := range args[1:] {
			switch err := s.Lines(ts.ReadFile(name)); {
			case err != nil && !neg:
				ts.Fatalf("%s is not as the schema %s says: %v", name, args[0], err)
			case err == nil && neg:
				ts.Fatalf("%s is as the schema %s says", name, args[0])
			}
		}
	}
}
