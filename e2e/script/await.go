//go:build linux

package script

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// await waits for a file, for a first line in it, or for text in it.
func await(ts *testscript.TestScript, args []string) {
	flags := flag.NewFlagSet("await", flag.ContinueOnError)
	pattern := flags.String("text", "", "")
	ts.Check(flags.Parse(args))
	usage(ts, flags.NArg() == 1 || flags.NArg() == 2 && *pattern == "", "await [-text REGEXP] FILE [VAR]")
	re, err := regexp.Compile("(?m)" + *pattern)
	ts.Check(err)
	variable := flags.Arg(1)
	seen := -1 // bytes of a file that grows
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pause) {
		text, err := os.ReadFile(ts.MkAbs(flags.Arg(0)))
		if err != nil || len(text) == seen {
			continue
		}
		if seen = len(text); !re.Match(text) {
			continue
		}
		if variable == "" {
			return
		}
		// A line without a newline is still being written.
		if line, _, ok := strings.Cut(string(text), "\n"); ok {
			ts.Setenv(variable, line)
			return
		}
	}
	ts.Fatalf("%s is not there after %v", flags.Arg(0), patience)
}
