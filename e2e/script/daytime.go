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
// shift it sets the clock, with evening to shortly before midnight; with leap the kernel inserts
// a second there.
func daytime(ts *testscript.TestScript, args []string) {
	usage(ts, len(args) == 1 || len(args) == 2, "daytime VAR [OUT], daytime shift DURATION, daytime evening, or daytime leap")
	switch args[0] {
	case "shift":
		by, err := time.ParseDuration(args[1])
		ts.Check(err)
		setClock(ts, time.Now().Add(by))
		return
	case "evening":
		setClock(ts, midnight().Add(-20*time.Second))
		return
	case "leap":
		leap(ts)
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

func setClock(ts *testscript.TestScript, to time.Time) {
	at := unix.NsecToTimespec(to.UnixNano())
	ts.Check(unix.ClockSettime(unix.CLOCK_REALTIME, &at))
}

// midnight returns the next one of UTC.
func midnight() time.Time {
	const day = 24 * time.Hour
	return time.Now().Truncate(day).Add(day)
}

// leap lets the kernel insert a second, which it only does at midnight UTC, and waits for it.
func leap(ts *testscript.TestScript) {
	ask := unix.Timex{Modes: unix.ADJ_STATUS, Status: unix.STA_INS}
	_, err := unix.Adjtimex(&ask)
	ts.Check(err)
	time.Sleep(time.Until(midnight()) + 2*time.Second)
	over := unix.Timex{Modes: unix.ADJ_STATUS}
	state, err := unix.Adjtimex(&over)
	ts.Check(err)
	if state != unix.TIME_WAIT {
		ts.Fatalf("the kernel has inserted no second: its clock is in state %d", state)
	}
}
