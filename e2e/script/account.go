//go:build linux

package script

import (
	"regexp"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

// account fails the script unless the shown events of a function and those that
// are reported as lost add up to N, and there are some of each.
func account(ts *testscript.TestScript, args []string) {
	usage(ts, len(args) == 3, "account OUT FUNC N")
	text, messages := ts.ReadFile(args[0]), ts.ReadFile(args[0]+".err")
	shown := textEvents(text, args[1]) + jsonEvents(text, args[1])
	lost := 0
	reported := regexp.MustCompile(`lost (\d+) events of ` + regexp.QuoteMeta(args[1]) + `\b`)
	if all := reported.FindAllStringSubmatch(messages, -1); len(all) > 0 {
		lost, _ = strconv.Atoi(all[len(all)-1][1]) // digits only; the last message has the total
	}
	ts.Logf("%d shown, %d lost", shown, lost)
	if shown == 0 || lost == 0 {
		ts.Fatalf("%d events of %s are shown, %d are lost\n%s", shown, args[1], lost, messages)
	}
	checkCount(ts, shown+lost, args[2], "events of "+args[1]+" shown or lost", messages)
}
