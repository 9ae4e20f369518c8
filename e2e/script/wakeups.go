//go:build linux

package script

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// wakeups lets time pass and fails the script if a tracer has gone to sleep more
// often meanwhile than a number of times, which is how often it was woken.
func wakeups(ts *testscript.TestScript, args []string) {
	flags := flag.NewFlagSet("wakeups", flag.ContinueOnError)
	most := flags.Int("most", 0, "")
	ts.Check(flags.Parse(args))
	usage(ts, flags.NArg() > 1, "wakeups -most N DURATION OUT...")
	pass, err := time.ParseDuration(flags.Arg(0))
	ts.Check(err)
	outs := flags.Args()[1:]
	before := map[string]int{}
	for _, out := range outs {
		before[out] = sleeps(ts, out)
	}
	time.Sleep(pass)
	for _, out := range outs {
		n := sleeps(ts, out) - before[out]
		ts.Logf("%s was woken %d times in %v", out, n, pass)
		if n > *most {
			ts.Fatalf("%s was woken %d times in %v, more than %d", out, n, pass, *most)
		}
	}
}

// sleeps is how often the threads of a tracer have waited for something.
func sleeps(ts *testscript.TestScript, out string) (n int) {
	t := running(ts).find(out)
	if t == nil {
		ts.Fatalf("there is no trace %s", out)
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", t.cmd.Process.Pid))
	ts.Check(err)
	for _, name := range threads {
		f, err := os.Open(name)
		ts.Check(err)
		for s := bufio.NewScanner(f); s.Scan(); {
			if rest, ok := strings.CutPrefix(s.Text(), "voluntary_ctxt_switches:"); ok {
				switches, err := strconv.Atoi(strings.TrimSpace(rest))
				ts.Check(err)
				n += switches
			}
		}
		f.Close()
	}
	return n
}
