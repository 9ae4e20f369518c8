//go:build linux

package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/e2e/bench"
)

// The upper bounds for the process of ksnoop trace and of ksnoop record: instructions for
// each event of a flood, and the share of the latter.
const (
	mostPrinted    = 4400  // 4,187 is the mean of 40 floods, of 4,163 to 4,222
	mostRecorded   = 900   // 880 is the mean of 40 floods, of 859 to 904
	recordedOfText = 0.215 // a fifth is wanted; with the means of six floods it is 0.208 to 0.213
)

// inFlood returns the instructions that trace takes to print an event of a flood, and
// record to write its record, with what the kernel does for them.
func inFlood(t *testing.T, c *benchCase, call func()) (printed, recorded float64) {
	printed = drained(t, ours(c), call)
	file := filepath.Join(t.TempDir(), "recording")
	i := ours(c)
	i.args = append([]string{"record", "-w", file}, i.args[1:]...)
	recorded = drained(t, i, call)
	replayed, err := exec.Command("/bin/ksnoop", "replay", "-o", "json", file).Output()
	require.NoError(t, err)
	require.Equal(t, floods*recordedCalls, strings.Count(string(replayed), `{"type":"event"`), "all are in the file")
	return printed, recorded
}

const (
	// recordedCalls is the number of calls of a flood, for whose records the ring buffer has
	// room.
	recordedCalls = 20_000
	// floods is the number of floods. The first firstFloods do not count: they touch memory
	// for the first time, and have the garbage collections until the heap does not grow any more.
	floods      = 10
	firstFloods = 4
)

// drained returns the instructions of a tracer's process for each event of floods, which
// have come while it was stopped.
func drained(t *testing.T, i invocation, call func()) (each float64) {
	s := i.start(t)
	require.NoError(t, s.attached())
	for flood := range floods {
		s.pause()
		before := s.instructions()
		for range recordedCalls {
			call()
		}
		s.cmd.Process.Signal(unix.SIGCONT)
		s.rest()
		if flood >= firstFloods {
			each += float64(s.instructions()-before) / recordedCalls / (floods - firstFloods)
		}
	}
	_, err := s.stop()
	require.NoError(t, err)
	require.NotRegexp(t, lost, s.stderr.String())
	return each
}

// rest waits until the tracer does next to nothing for longer than record keeps what it
// has not written yet.
func (s *subject) rest() {
	const little, unwritten = 1e6, 1500 * time.Millisecond
	for range restless {
		before := s.instructions()
		nap(unwritten)
		if s.instructions()-before < little {
			return
		}
	}
	s.busy = true
}

// testRecordCosts bounds what ksnoop does with an event of a flood.
func testRecordCosts(t *testing.T, m *meter) {
	if !bounded() {
		return
	}
	printed, recorded := inFlood(t, &scalarCase, m.call)
	t.Logf("flood: %.0f to record an event, %.0f to print it", recorded, printed)
	if printed > mostPrinted || recorded > mostRecorded || recorded > recordedOfText*printed {
		t.Errorf("flood: more than %d to print an event, more than %d to record it, or more than %.1f %% of printing it",
			mostPrinted, mostRecorded, 100*recordedOfText)
	}
}

// record prints what recording an event of a flood costs.
func (b *benchmark) record(t *testing.T, c benchCase) {
	printed, recorded := inFlood(t, &c, b.calls[c.call])
	b.row(t, bench.Row{Name: "record/" + c.name, Unit: "per event", Ours: recorded, Note: fmt.Sprintf("in a flood; printing it takes %.0f", printed)})
}
