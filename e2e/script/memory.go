//go:build linux

package script

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// peak fails the script if the latest tracer has used more than N MB of memory.
func peak(ts *testscript.TestScript, args []string) {
	usage(ts, len(args) == 1 && len(running(ts).list) > 0, "peak MB, after trace")
	limit, err := strconv.Atoi(args[0])
	ts.Check(err)
	list := running(ts).list
	kb, err := peakRSS(list[len(list)-1].cmd.Process.Pid)
	ts.Check(err)
	ts.Logf("peak memory %d KB", kb)
	if kb > limit<<10 {
		ts.Fatalf("peak memory is %d KB, more than %d MB", kb, limit)
	}
}

// peakRSS returns the peak of a process's resident set in KB.
func peakRSS(pid int) (int, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "VmHWM:"); ok {
			return strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
		}
	}
	return 0, fmt.Errorf("no VmHWM for process %d", pid)
}
