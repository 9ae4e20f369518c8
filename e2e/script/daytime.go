//go:build linux

package script

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// daytime sets a variable to the time, in ns. With a file it fails the script
// unless each line begins with a time of day between the variable's and now. With
// shift it sets the clock.
func daytime(ts *testscript.TestScript, args []string) {
	usage(ts, len(args) == 1 || len(args) == 2, "daytime VAR [OUT], or daytime shift DURATION")
	if args[0] == "shift" {
		by, err := time.ParseDuration(args[1])
		ts.Check(err)
		now := unix.NsecToTimespec(time.Now().Add(by).UnixNano())
		ts.Check(unix.ClockSettime(unix.CLOCK_REALTIME, &now))
		return
	}
	if len(args) == 1 {
		ts.Setenv(args[0], strconv.FormatInt(time.Now().UnixNano(), 10))
		return
	}
	ns, err := strconv.ParseInt(ts.Getenv(args[0]), 10, 64)
	ts.Check(err)
	from, to := time.Unix(0, ns), time.Now()
	file, err := os.Open(ts.MkAbs(args[1]))
	ts.Check(err)
	defer file.Close()
	n := 0
	for lines := bufio.NewScanner(file); lines.Scan(); n++ {
		first, _, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		at, err := time.ParseInLocation("15:04:05.000000", first, time.Local)
		ts.Check(err)
		at = time.Date(from.Year(), from.Month(), from.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.Local)
		if at.Before(from.Truncate(time.Microsecond)) && from.Day() != to.Day() {
			at = at.AddDate(0, 0, 1) // past midnight
		}
		if at.Before(from.Truncate(time.Microsecond)) || at.After(to) {
			ts.Fatalf("%s is not between %v and %v", first, from, to)
		}
	}
	if n == 0 {
		ts.Fatalf("%s is empty", args[1])
	}
}
