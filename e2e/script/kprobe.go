//go:build linux

package script

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

const (
	tracefs   = "/sys/kernel/tracing"
	instances = tracefs + "/instances"
	group     = "ksnoop_e2e"
)

// kprobe sets one of the kernel's own probes, with its own trace buffer.
func kprobe(ts *testscript.TestScript, args []string) {
	filter := ""
	if i := slices.Index(args, "-if"); i >= 0 && i+2 == len(args) {
		args, filter = args[:i], args[i+1]
	}
	usage(ts, len(args) >= 2, "kprobe NAME FUNC [ARG...] [-if FILTER]")
	name := args[0]
	buffer := filepath.Join(instances, name)
	ts.Check(os.Mkdir(buffer, 0o755))
	ts.Defer(func() { os.Remove(buffer) })
	define := fmt.Sprintf("p:%s/%s %s", group, name, strings.Join(args[1:], " "))
	ts.Check(appendLine(tracefs+"/kprobe_events", define))
	event := filepath.Join(buffer, "events", group, name)
	ts.Defer(func() {
		appendLine(event+"/enable", "0")
		appendLine(tracefs+"/kprobe_events", fmt.Sprintf("-:%s/%s", group, name))
	})
	if filter != "" {
		ts.Check(appendLine(event+"/filter", filter))
	}
	ts.Check(appendLine(event+"/enable", "1"))
}

func hits(ts *testscript.TestScript, args []string) {
	usage(ts, len(args) == 2, "hits NAME N")
	text := ts.ReadFile(filepath.Join(instances, args[0], "trace"))
	checkCount(ts, strings.Count(text, " "+args[0]+": "), args[1], "hits of "+args[0], text)
}

// appendLine writes a line to a tracefs file. The error number shows what is
// wrong with the line.
func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString(line + "\n"); err != nil {
		return fmt.Errorf("write %q: %w", line, err)
	}
	return nil
}
