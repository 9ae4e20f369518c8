//go:build linux

package script

import (
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// like compares a file with another one, in which <...> matches any part of a
// line.
func like(ts *testscript.TestScript, args []string) {
	usage(ts, len(args) == 2, "like FILE WANTED")
	got, want := ts.ReadFile(args[0]), ts.ReadFile(args[1])
	pattern := strings.ReplaceAll(regexp.QuoteMeta(want), `<\.\.\.>`, `.*`)
	if !regexp.MustCompile(`^(?:` + pattern + `)$`).MatchString(got) {
		ts.Fatalf("%s is\n%s\nand not like\n%s", args[0], got, want)
	}
}
