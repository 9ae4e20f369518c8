//go:build linux

package e2e

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"

	"github.com/ksnoop/ksnoop/compiler/codegen"

	goruntime "runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/e2e/script"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

var cycles = flag.Duration("cycles", 0, "attach, detach and kill for so long; 0: a few times")

const (
	warmCycles = 4 // until everything permanent is allocated
	cycleCalls = 50
)

func fewCycles() int { return rounds(2, 8) }

// testCycles checks that nothing remains in the kernel or in the process,
// however often one process starts and ends sessions, and however often another
// ksnoop is killed.
func testCycles(t *testing.T, k *kernel) {
	// ksnoop does the same: huge pages would come and go in the resident set.
	require.NoError(t, unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0))
	before, err := script.Objects()
	require.NoError(t, err)
	kinds := k.kinds(t)
	units := map[compiler.Kind]*compiler.Unit{}
	for _, kind := range kinds {
		units[kind] = k.compile(t, kind, getpgid+"(return)")
	}
	cycle := func(n int) {
		for _, kind := range kinds {
			k.cycle(t, units[kind])
		}
		killTracer(t, kinds[n%len(kinds)])
	}
	n := 0
	start := time.Now()
	for ; n < warmCycles || time.Since(start) < *cycles/5; n++ {
		cycle(n)
	}
	warm := held(t)
	for ; n < warmCycles+fewCycles() || time.Since(start) < *cycles; n++ {
		cycle(n)
	}
	k.cycle(t, units[compiler.Kprobe]) // removes what a killed ksnoop has left in tracefs
	left, err := script.AwaitObjects(before)
	require.NoError(t, err)
	require.Empty(t, left)
	end := held(t)
	t.Logf("%d cycles of %v: %+v, then %+v", n, kinds, warm, end)
	require.LessOrEqual(t, end.heap, warm.heap+warm.heap/20)
	require.LessOrEqual(t, end.files, warm.files)
	require.LessOrEqual(t, end.goroutines, warm.goroutines)
	if *cycles > 0 { // the resident set takes time to settle
		require.LessOrEqual(t, end.resident, warm.resident+warm.resident/20)
	}
}

// compile returns a unit that can be loaded many times.
func (k *kernel) compile(t *testing.T, attach compiler.Kind, spec string) *compiler.Unit {
	plan := k.resolve(t, attach, spec)
	unit, err := codegen.Compile(plan.Probes, compiler.Options{RingBytes: 1 << 20})
	require.NoError(t, err)
	return unit
}

// cycle loads and attaches a unit, checks that it sees calls, and detaches it.
func (k *kernel) cycle(t *testing.T, unit *compiler.Unit) {
	session, err := runtime.Load(unit, k.Kernel)
	require.NoError(t, err)
	defer func() { require.NoError(t, session.Close()) }()
	_, err = session.Attach()
	require.NoError(t, err)
	callKernel(getpgid, cycleCalls)
	seen := 0
	(&tracer{session}).events(t, func(*runtime.Event) { seen++ })
	require.GreaterOrEqual(t, seen, cycleCalls)
}

// killTracer kills a ksnoop while it traces.
func killTracer(t *testing.T, attach compiler.Kind) {
	cmd := exec.Command("/bin/ksnoop", "--attach", string(attach), "vfs_read(return)")
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = bufio.NewReader(stdout).ReadString('\n') // the header, which ksnoop prints once it is attached
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed, so Wait fails
}

// A footprint counts the resources of this process. heap and resident are in bytes.
type footprint struct{ heap, resident, files, goroutines int }

func held(t *testing.T) footprint {
	goruntime.GC() // the next collection frees what this one finds
	debug.FreeOSMemory()
	var stats goruntime.MemStats
	goruntime.ReadMemStats(&stats)
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	resident, err := residentBytes()
	require.NoError(t, err)
	return footprint{int(stats.HeapAlloc), resident, len(files), goruntime.NumGoroutine()}
}

func residentBytes() (int, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	var size, resident int
	_, err = fmt.Sscan(string(text), &size, &resident)
	return resident * os.Getpagesize(), err
}
