//go:build linux

package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/bench"
)

// idleTime is how long tracers run while nothing happens.
const idleTime = 10 * time.Second

// idle prints what tracers do while nothing happens.
func (b *benchmark) idle(t *testing.T) {
	c := rejectedCases[0]
	wakes, work := map[bench.Column]float64{}, map[bench.Column]float64{}
	if b.noBCC == "" {
		wakes[bench.BCC], work[bench.BCC] = bccs(&c).start(t).idle(t)
	}
	wakes[bench.Kprobe], work[bench.Kprobe] = bpftrace(c.functions, "-e", c.kprobe).start(t).idle(t)
	woken, worked := ours(&c).start(t).idle(t)
	b.row(t, bench.Row{Name: "idle/wake-ups", Unit: "in 10 s", Ours: woken, Peers: wakes})
	b.row(t, bench.Row{Name: "idle/instructions", Unit: "in 10 s", Ours: worked, Peers: work})
}

// idle waits until a tracer is attached, lets it run for idleTime and ends it.
func (s *subject) idle(t *testing.T) (woken, worked float64) {
	require.NoError(t, s.attached())
	s.settle()
	before, used := switches(t, s), s.instructions()
	time.Sleep(idleTime)
	woken, worked = switches(t, s)-before, float64(s.instructions()-used)
	_, err := s.end()
	require.NoError(t, err)
	return woken, worked
}

// switches returns how often the threads of a process have waited for
// something.
func switches(t *testing.T, s *subject) (n float64) {
	dir := fmt.Sprintf("/proc/%d/task", s.cmd.Process.Pid)
	threads, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, thread := range threads {
		n += numberIn(t, dir+"/"+thread.Name()+"/status", "voluntary_ctxt_switches:")
	}
	return n
}
