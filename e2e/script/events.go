//go:build linux

package script

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// eventHeader matches the first line of an event, normalized or not.
var eventHeader = regexp.MustCompile(`(?m)^ *(?:\d+|<TIME>) +(?:\d+|<CPU>) +(?:\d+|<PID>) +([\w.:]+(?: => [\w.:]+)?)\(`)

// lineEvent matches an event of a kprobe_events line, up to its function.
var lineEvent = regexp.MustCompile(`(?m)^ *\S.*-\d+ +\[\d+\] +\d+\.\d{6}: \w+: \((?:[^)\n]*<- )?([\w.]+)`)

// address matches a hexadecimal number that is too large for 32 bits.
var address = regexp.MustCompile(`\b0x[0-9a-f]{9,16}\b`)

func events(ts *testscript.TestScript, args []string) {
	usage(ts, len(args) == 3, "events OUT FUNC N")
	text := ts.ReadFile(args[0])
	n := textEvents(text, args[1]) + jsonEvents(text, args[1])
	if n == 0 {
		ts.Check(checkFunctions(args[1]))
	}
	checkCount(ts, n, args[2], "events of "+args[1], text)
}

// checkFunctions returns an error if a point or a span names a function that cannot be
// traced: that there are no events of it means nothing.
func checkFunctions(name string) error {
	for point := range strings.SplitSeq(name, " => ") {
		if strings.HasPrefix(point, "tp:") {
			continue
		}
		known, err := traceable(point)
		if err != nil {
			return err
		}
		if !known {
			return fmt.Errorf("there is no function %s", point)
		}
	}
	return nil
}

func textEvents(text, function string) (n int) {
	for _, m := range eventHeader.FindAllStringSubmatch(text, -1) {
		if m[1] == function {
			n++
		}
	}
	for _, m := range lineEvent.FindAllStringSubmatch(text, -1) {
		if m[1] == strings.TrimPrefix(function, "tp:") {
			n++
		}
	}
	return n
}

func jsonEvents(text, function string) (n int) {
	for line := range strings.Lines(text) {
		var event struct{ Type, Func string }
		err := json.Unmarshal([]byte(line), &event)
		if err == nil && event.Type == "event" && event.Func == function {
			n++
		}
	}
	return n
}

// functions writes the functions of all events to a file, in order.
func functions(ts *testscript.TestScript, args []string) {
	usage(ts, len(args) == 2, "functions OUT FILE")
	var list strings.Builder
	for _, m := range eventHeader.FindAllStringSubmatch(ts.ReadFile(args[0]), -1) {
		list.WriteString(m[1] + "\n")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(list.String()), 0o644))
}

func normalize(ts *testscript.TestScript, args []string) {
	usage(ts, len(args) == 1, "normalize OUT")
	text := ts.ReadFile(args[0])
	text = eventHeader.ReplaceAllString(text, "<TIME> <CPU> <PID> $1(")
	text = address.ReplaceAllString(text, "<ADDR>")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o644))
}

// wanted matches a count, with an operator if it need not be equal.
var wanted = regexp.MustCompile(`^([<>]=?|)(\d+)$`)

// checkCount fails the script, showing the text, unless n is as wanted.
func checkCount(ts *testscript.TestScript, n int, want, what, text string) {
	m := wanted.FindStringSubmatch(want)
	usage(ts, m != nil, "N is a number, >=N, >N, <N or <=N")
	number, err := strconv.Atoi(m[2])
	ts.Check(err)
	ok, err := compare(cmp.Compare(n, number), cmp.Or(m[1], "=="))
	ts.Check(err)
	if !ok {
		ts.Fatalf("%d %s, want %s\n%s", n, what, want, text)
	}
}
