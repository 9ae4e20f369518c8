//go:build linux

// Command commands holds the programs that scripts, pages and tests run in the
// guest, in one binary: as, confine, jq, traffic and tty, and what stands in for ksnoop,
// as package replaying says. Its file name selects the program. The test binary could do this as
// well, but because of its size it takes a tenth of a second to start in the guest.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/ksnoop/ksnoop/e2e/as"
	"github.com/ksnoop/ksnoop/e2e/confine"
	"github.com/ksnoop/ksnoop/e2e/jq"
	"github.com/ksnoop/ksnoop/e2e/replaying"
	"github.com/ksnoop/ksnoop/e2e/traffic"
	"github.com/ksnoop/ksnoop/e2e/tty"
)

func main() {
	programs := map[string]func(){"as": as.Main, "confine": confine.Main, "jq": jq.Main, "ksnoop": replaying.Main, "traffic": traffic.Main, "tty": tty.Main}
	run, ok := programs[filepath.Base(os.Args[0])]
	if !ok {
		fmt.Fprintf(os.Stderr, "%s: no such program\n", os.Args[0])
		os.Exit(127)
	}
	run()
}
