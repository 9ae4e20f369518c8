//go:build linux

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/bench"
)

// startSizes lists how many functions are traced. One of them is called.
var startSizes = []int{1, 25, 500}

// The numbers of functions that the peers can trace.
const (
	bccFunctions      = 64
	bpftraceFunctions = 25 // it accepts more, but takes minutes to compile them
)

// A startToll holds the costs of a tracer from its exec on.
type startToll struct {
	attached, event float64 // instructions of the machine until all is attached, and until it shows a call
	process         float64 // instructions of the process until all is attached
	ended           float64 // instructions of the machine from SIGINT until the process has ended
	rss             float64 // the peak, in bytes
	maps, programs  float64 // bytes in the kernel
}

// start prints the rows for n functions.
func (b *benchmark) start(t *testing.T, n int) {
	functions := append([]string{"null_lseek"}, b.plainFunctions(t)[:n-1]...)
	cost, err := b.startToll(t, invocation{path: "/bin/ksnoop", args: append([]string{"trace"}, functions...), tells: true})
	require.NoError(t, err)
	peers := map[bench.Column]startToll{}
	measure := func(column bench.Column, i invocation) {
		peer, err := b.startToll(t, i)
		if err != nil {
			t.Logf("%d functions, %s: %v", n, column, err)
			return
		}
		peers[column] = peer
	}
	if n <= bccFunctions && b.noBCC == "" {
		measure(bench.BCC, invocation{path: bccPath, args: functions})
	}
	if n <= bpftraceFunctions {
		measure(bench.Kprobe, bpftraceStart("kprobe:", functions))
		measure(bench.Kfunc, bpftraceStart("kfunc:", functions))
	}
	b.startRows(t, n, cost, peers)
}

func bpftraceStart(kind string, functions []string) invocation {
	places := kind + strings.Join(functions, ","+kind)
	i := bpftrace(nil, "-B", "line", "-e", places+` { printf("%s called\n", probe); }`)
	i.env = nil // the buffers have their default size
	return i
}

func (b *benchmark) startRows(t *testing.T, n int, cost startToll, peers map[bench.Column]startToll) {
	for _, r := range []struct {
		name, unit string
		of         func(startToll) float64
	}{
		{"start/attached", "instructions", func(c startToll) float64 { return c.attached }},
		{"start/attached-process", "instructions", func(c startToll) float64 { return c.process }},
		{"start/event", "instructions", func(c startToll) float64 { return c.event }},
		{"start/ended", "instructions", func(c startToll) float64 { return c.ended }},
		{"memory/rss", "bytes", func(c startToll) float64 { return c.rss }},
		{"memory/maps", "bytes", func(c startToll) float64 { return c.maps }},
		{"memory/programs", "bytes", func(c startToll) float64 { return c.programs }},
	} {
		row := bench.Row{Name: fmt.Sprintf("%s/%d", r.name, n), Unit: r.unit, Ours: r.of(cost), Peers: map[bench.Column]float64{}}
		for column, peer := range peers {
			row.Peers[column] = r.of(peer)
		}
		b.row(t, row)
	}
}

// startToll starts a tracer, calls null_lseek every millisecond, and ends the tracer
// when it has shown a call.
func (b *benchmark) startToll(t *testing.T, i invocation) (cost startToll, err error) {
	before := bpfObjects(t)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	s := &subject{invocation: i, ended: make(chan struct{})}
	begin := instructions()
	s.run(t, write)
	write.Close()
	event := make(chan float64, 1)
	go func() { event <- float64(firstEvent(read) - begin) }()
	stop := make(chan bool)
	go b.callUntil(stop)
	defer close(stop)
	if err := s.attached(); err != nil {
		return cost, err
	}
	cost.process, cost.attached = float64(s.instructions()), float64(instructions()-begin)
	cost.event = <-event
	if cost.event < 0 {
		<-s.ended
		return cost, s.failure()
	}
	cost.rss = peakRSS(t, s)
	cost.maps, cost.programs = b.kernelMemory(t, s, before)
	end := instructions()
	s.cmd.Process.Signal(os.Interrupt)
	go io.Copy(io.Discard, read) // the tracer would block on a full pipe
	<-s.ended
	cost.ended = float64(instructions() - end)
	return cost, nil
}

// firstEvent returns the time when a tracer has shown a call, or 0 if it ends
// before.
func firstEvent(output io.Reader) int64 {
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if strings.Contains(lines.Text(), "null_lseek") {
			return instructions()
		}
	}
	return 0
}

func (b *benchmark) callUntil(stop chan bool) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Millisecond):
			b.calls["lseek"]()
		}
	}
}
