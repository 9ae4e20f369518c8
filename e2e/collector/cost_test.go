package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

var costLines = flag.Int("lines", 20_000, "lines of TestCollectorCost")

// lineOfCost is like the lines of `ksnoop -o json --time wall` for a tracepoint with three
// values.
const lineOfCost = `{"type":"event","time":%d,"cpu":1,"pid":%d,"tid":%[2]d,"comm":"worker%d","func":"tp:sys_enter","kind":"entry",` +
	`"args":{"id":%d,"regs->di":%d,"regs->si":4096},"wall":"2026-11-27T22:%02d:%02d.%09dZ"}` + "\n"

// TestCollectorCost measures what a Collector takes for the lines of a file: for
// docs/fleet.md with -lines 200000.
func TestCollectorCost(t *testing.T) {
	n := *costLines
	var text strings.Builder
	for i := range n {
		at := 1_000_000_000 + i*10_000_000
		fmt.Fprintf(&text, lineOfCost, at, 1000+i%50, i%50, i%400, i, at/60e9%60, at/1e9%60, at%1e9)
	}
	b, file := newBackend(t), filepath.Join(t.TempDir(), "calls.json")
	c := newCollector(t, b, file, page(t))
	require.NoError(t, os.WriteFile(file, []byte(lineOfFirst), 0o644))
	c.start()
	b.awaitCount(1) // it has started
	before := c.seconds()
	require.NoError(t, os.WriteFile(file, []byte(lineOfFirst+text.String()), 0o644))
	b.awaitCount(1 + n)
	used := c.seconds() - before
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	require.NoError(t, err)
	_, peak, found := strings.Cut(string(status), "VmHWM:")
	require.True(t, found)
	peak, _, _ = strings.Cut(peak, "\n")
	t.Logf("%d lines of %d bytes: %.1f µs of CPU time a line; peak memory %s", n, text.Len()/n, used/float64(n)*1e6, strings.TrimSpace(peak))
	require.Zero(t, b.doubles())
	c.stop(syscall.SIGTERM)
}

const lineOfFirst = `{"type":"clock","wall":"2026-11-27T21:00:00.000000000Z"}` + "\n"

// seconds returns the CPU time of the collector until now.
func (c *collector) seconds() float64 {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	require.NoError(c.t, err)
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after) // from the state on
	var user, system float64
	fmt.Sscan(fields[11], &user)
	fmt.Sscan(fields[12], &system)
	return (user + system) / 100 // USER_HZ
}
