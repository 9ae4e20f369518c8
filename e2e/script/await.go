//go:build linux

package script

import (
	"os"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func await(ts *testscript.TestScript, args []string) {
	usage(ts, len(args) == 1 || len(args) == 2, "await FILE [VAR]")
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		if err != nil {
			continue
		}
		if len(args) == 1 {
			return
		}
		// A line without its end is still being written.
		if line, _, ok := strings.Cut(string(text), "\n"); ok {
			ts.Setenv(args[1], line)
			return
		}
	}
	ts.Fatalf("%s is not there after %v", args[0], patience)
}
