//go:build linux

package script

import (
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// cgroupID sets a variable to the id of a cgroup, which is the inode number of
// its directory.
func cgroupID(ts *testscript.TestScript, args []string) {
	usage(ts, len(args) == 2, "cgroup-id DIR VAR")
	var st unix.Stat_t
	ts.Check(unix.Stat(ts.MkAbs(args[0]), &st))
	ts.Setenv(args[1], strconv.FormatUint(st.Ino, 10))
}
