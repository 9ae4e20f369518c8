//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/e2e/bench"
	"github.com/ksnoop/ksnoop/e2e/guest"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestGuestBench runs in the machines that TestBench boots.
func TestGuestBench(t *testing.T) {
	if !guest.Inside() {
		t.Skip("runs inside a virtual machine, see TestBench")
	}
	newBenchmark(t).run(t)
}

// rowMark begins the lines of the guest's output that are rows.
const rowMark = "bench row "

// A benchmark measures costs in a machine in which a nanosecond is one
// instruction.
type benchmark struct {
	*kernel
	release string
	calls   map[string]func() // calls to measure; nothing else calls their functions as often
	noBCC   string            // why bcc cannot be compared; empty if it can
}

func newBenchmark(t *testing.T) *benchmark {
	newMeter(t) // this thread makes the calls
	var uts unix.Utsname
	require.NoError(t, unix.Uname(&uts))
	null, err := unix.Open("/dev/null", unix.O_RDONLY, 0)
	require.NoError(t, err)
	return &benchmark{kernel: openKernel(t), release: unix.ByteSliceToString(uts.Release[:]), calls: map[string]func(){
		"read":    readZero(t),
		"getpgid": func() { unix.RawSyscall(unix.SYS_GETPGID, 1, 0, 0) },
		"lseek":   func() { unix.RawSyscall(unix.SYS_LSEEK, uintptr(null), 0, unix.SEEK_SET) },
	}}
}

// A benchStep prints the rows of one group.
type benchStep struct {
	name string
	run  func(t *testing.T)
}

func (b *benchmark) steps() (all []benchStep) {
	add := func(name string, run func(t *testing.T)) { all = append(all, benchStep{name, run}) }
	for _, c := range rejectedCases {
		add("rejected/"+c.name, func(t *testing.T) { b.silent(t, "rejected", c) })
	}
	for _, c := range countedCases {
		add("counted/"+c.name, func(t *testing.T) { b.silent(t, "counted", c) })
	}
	for _, c := range acceptedCases {
		add("accepted/"+c.name, func(t *testing.T) {
			b.accepted(t, "accepted", c, compiler.Fentry, compiler.Kprobe, compiler.KprobeMulti)
		})
	}
	add("accepted/struct-file", func(t *testing.T) { b.accepted(t, "accepted", fileCase, compiler.Fentry) })
	add("whole", func(t *testing.T) {
		b.accepted(t, "whole", wholeCase, compiler.Fentry, compiler.Kprobe, compiler.KprobeSession)
	})
	for _, c := range pairedCases {
		add("paired/"+c.name, func(t *testing.T) { b.accepted(t, "paired", c, b.pairing()...) })
	}
	for _, c := range []benchCase{scalarCase, pairedCases[0], fileCase, wholeCase} {
		add("formats/"+c.name, func(t *testing.T) { b.formats(t, c) })
	}
	add("live", func(t *testing.T) { b.live(t, scalarCase) })
	add("record", func(t *testing.T) { b.record(t, scalarCase) })
	add("flood", func(t *testing.T) { b.flood(t, wholeCase) })
	add("idle", b.idle)
	for _, n := range startSizes {
		add(fmt.Sprintf("start/%d", n), func(t *testing.T) { b.start(t, n) })
	}
	return all
}

func (b *benchmark) run(t *testing.T) {
	wanted := regexp.MustCompile(*steps)
	b.tryBCC(t)
	for _, s := range b.steps() {
		if wanted.MatchString(s.name) {
			s.run(t)
		}
	}
}

// row prints a row for the host to read.
func (b *benchmark) row(t *testing.T, r bench.Row) {
	r.Kernel, r.Ours = b.release, math.Round(r.Ours)
	if strings.HasPrefix(b.release, oneKernel+".") {
		r.Budget = budgets[r.Name]
	}
	for column, peer := range r.Peers {
		r.Peers[column] = math.Round(peer)
	}
	text, err := json.Marshal(r)
	require.NoError(t, err)
	fmt.Printf("\n%s%s\n", rowMark, text)
}

// budgets lists the budgets of rows on oneKernel. Other rows have none.
var budgets = map[string]*bench.Budget{
	"rejected/member/fentry":       {Max: 1.15, Of: bench.Empty},
	"rejected/member/kprobe":       {Max: 1.3, Of: bench.Empty},
	"rejected/member/kprobe.multi": {Max: 1.4, Of: bench.Empty},
	"accepted/256B/fentry":         {Max: 550},
	"whole/vfs_read/fentry":        {Max: 1200},
	"paired/pair/fentry":           {Max: 750},
	"live/scalar/call":             {Max: 700},
	"live/scalar/tracer":           {Max: 6000},
	"flood/vfs_read/record":        {Max: 400},
	"record/scalar":                {Max: mostRecorded},
	"user/scalar/text":             {Max: 6000},
	"user/scalar/json":             {Max: 8000},
	"user/struct-file/text":        {Max: 40000},
	"start/attached/1":             {Max: 150e6},
	"start/attached/25":            {Max: 500e6},
	"memory/rss/1":                 {Max: 16 << 20},
	"idle/wake-ups":                {Max: 50},
	"idle/instructions":            {Max: 10e6}, // 10 ms
}

// has reports whether this kernel has an attach kind.
func (b *benchmark) has(kind compiler.Kind) bool {
	f := b.target().Features
	switch kind {
	case compiler.KprobeMulti:
		return f.KprobeMulti
	case compiler.KprobeSession:
		return f.SessionIsReturn != 0
	}
	return true
}

// pairing returns the attach kinds that join entries and returns on this kernel.
func (b *benchmark) pairing() []compiler.Kind {
	kinds := []compiler.Kind{compiler.Fentry, compiler.Kprobe, compiler.KprobeSession}
	if b.target().Features.Preemptible {
		return kinds[1:]
	}
	return kinds
}

// peers measures the peers. A peer that does not work gets no figure.
func (b *benchmark) peers(t *testing.T, c *benchCase, format ...string) map[bench.Column]toll {
	tolls := map[bench.Column]toll{}
	measure := func(column bench.Column, i invocation) {
		cost, err := b.toll(t, i, c)
		if err != nil {
			t.Logf("%s %s: %v", c.name, column, err)
			return
		}
		tolls[column] = cost
	}
	if c.bcc != nil && b.noBCC == "" && format == nil {
		measure(bench.BCC, bccs(c))
	}
	if c.kprobe != "" {
		measure(bench.Kprobe, bpftrace(c.functions, append(format, "-e", c.kprobe)...))
		measure(bench.Kfunc, bpftrace(c.functions, append(format, "-e", c.kfunc)...))
	}
	return tolls
}

// empty returns the instructions that programs that do nothing add to the call.
func (b *benchmark) empty(t *testing.T, c *benchCase, kind compiler.Kind) float64 {
	return b.meter(c, false).added(t, func() func() error { return attachEmpty(t, c.empties(kind)) })
}

// bare returns the instructions that a program adds that only records the given
// number of bytes.
func (b *benchmark) bare(t *testing.T, c *benchCase) float64 {
	return b.meter(c, true).added(t, func() func() error {
		detach := attachBare(t, c.functions[0], c.bytes)
		spin()
		return detach
	})
}

// silent prints a row for each attach kind of a case without events.
func (b *benchmark) silent(t *testing.T, group string, c benchCase) {
	peers := column(b.peers(t, &c), func(c toll) float64 { return c.kernel })
	for _, kind := range resolve.ForcedKinds() {
		if b.has(kind) {
			b.kernelSide(t, group, &c, kind, peers)
		}
	}
}

// accepted prints a row for each attach kind, and one for user space's work
// with the events, which does not depend on the kind.
func (b *benchmark) accepted(t *testing.T, group string, c benchCase, kinds ...compiler.Kind) {
	peers := b.peers(t, &c)
	if c.bytes > 0 {
		c.note = fmt.Sprintf("a program that records these bytes and nothing else adds %.0f by fentry%s", b.bare(t, &c), c.note)
	}
	var cost toll
	for i, kind := range kinds {
		if !b.has(kind) {
			continue
		}
		of := b.kernelSide(t, group, &c, kind, column(peers, func(c toll) float64 { return c.kernel }))
		if i == 0 {
			cost, c.note = of, "" // the note appears once
		}
	}
	b.userSide(t, &c, "text", cost, peers)
}

func (b *benchmark) kernelSide(t *testing.T, group string, c *benchCase, kind compiler.Kind, peers map[bench.Column]float64) toll {
	cost, err := b.toll(t, ours(c, "--attach", string(kind)), c)
	require.NoError(t, err)
	row := bench.Row{Name: group + "/" + c.name + "/" + string(kind), Unit: "per call", Ours: cost.kernel, Note: c.note,
		Peers: map[bench.Column]float64{bench.Empty: b.empty(t, c, kind)}}
	for column, cost := range peers {
		row.Peers[column] = cost
	}
	b.row(t, row)
	return cost
}

func (b *benchmark) userSide(t *testing.T, c *benchCase, format string, cost toll, peers map[bench.Column]toll) {
	name := "/" + c.name + "/" + format
	b.row(t, bench.Row{Name: "user" + name, Unit: "per event", Ours: cost.user,
		Peers: column(peers, func(c toll) float64 { return c.user })})
	b.row(t, bench.Row{Name: "user-paced" + name, Unit: "per event", Ours: cost.paced,
		Peers: column(peers, func(c toll) float64 { return c.paced })})
	all := func(toll toll) float64 { return toll.kernel/float64(c.events) + toll.user }
	b.row(t, bench.Row{Name: "event" + name, Unit: "per event", Ours: all(cost), Peers: column(peers, all)})
}

// formats prints the cost of user space when it prints events in another form than
// text.
func (b *benchmark) formats(t *testing.T, c benchCase) {
	for _, format := range []string{"compact", "json"} {
		i, peers := ours(&c, "-o", format), map[bench.Column]toll(nil)
		if format == "json" {
			i.marker = regexp.MustCompile(`"type":"event"`)
			peers = b.peers(t, &c, "-f", "json")
		}
		cost, err := b.toll(t, i, &c)
		require.NoError(t, err)
		b.userSide(t, &c, format, cost, peers)
	}
}

// column returns one figure of each tracer, selected by of.
func column(tolls map[bench.Column]toll, of func(toll) float64) map[bench.Column]float64 {
	figures := map[bench.Column]float64{}
	for column, cost := range tolls {
		figures[column] = of(cost)
	}
	return figures
}
