//go:build linux

package script

import (
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ksnoop/ksnoop/e2e/jq"
)

// filter writes to stdout what jq makes of a file.
func filter(ts *testscript.TestScript, args []string) {
	options := ""
	if len(args) == 3 {
		options, args = args[0], args[1:]
	}
	usage(ts, len(args) == 2 && (options == "" || options[0] == '-'), "jq [-rsn] FILTER FILE")
	ts.Check(jq.Run(ts.Stdout(), options, args[0], []byte(ts.ReadFile(args[1]))))
}
