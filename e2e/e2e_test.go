//go:build linux

package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/guest"
	"github.com/ksnoop/ksnoop/e2e/script"
)

var (
	scripts  = flag.String("scripts", "testdata", "directory of the scripts to run")
	logs     = flag.String("logs", os.Getenv("KSNOOP_LOGS"), "directory for the output of the guests, a file for each machine; KSNOOP_LOGS unless set")
	replays  = flag.Bool("replays", false, "record the traces of scripts, replay them and compare what is printed; on with -full on 5.10")
	prebuilt = flag.String("ksnoop", "", "static ksnoop binary to test instead of the one built from this source")
)

func TestMain(m *testing.M) {
	if guest.IsInit() {
		guest.Init()
	}
	dir, err := os.MkdirTemp("", "ksnoop-e2e-")
	if err != nil {
		panic(err)
	}
	scratch = dir
	if err := manyTests(); err != nil {
		panic(err)
	}
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// TestGuest runs inside a virtual machine. First it runs the tests that trace
// in their own process, before anything changes the system, and then the
// scripts that TestMatrix has put there.
func TestGuest(t *testing.T) {
	if !guest.Inside() {
		t.Skip("runs inside a virtual machine, see TestMatrix")
	}
	runInProcess(t)
	runScripts(t, guestScripts)
	if last := filepath.Join(guestScripts, lastScripts); exists(last) {
		runScripts(t, last)
	}
}

func runScripts(t *testing.T, dir string) {
	params, err := script.Params(dir, script.Options{Schemas: guestPages, Full: *full, Replay: *replays})
	require.NoError(t, err)
	params.Deadline, _ = t.Deadline()
	testscript.RunT(sequential{t}, params)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// sequential runs scripts one after another, because they count calls in the
// whole system.
type sequential struct{ *testing.T }

func (sequential) Parallel() {}

func (sequential) Verbose() bool { return testing.Verbose() }

func (s sequential) Run(name string, run func(testscript.T)) {
	s.T.Run(name, func(t *testing.T) {
		logCPU(t)
		run(sequential{t})
	})
}

// logCPU logs at the end of a test of the guest how long the test has kept the processor
// busy. That is what it costs the host, where waiting costs nothing.
func logCPU(t *testing.T) {
	start := busy(t)
	t.Cleanup(func() { t.Logf("%.1f s of CPU", (busy(t) - start).Seconds()) })
}

// busy returns for how long the only processor was not idle.
func busy(t *testing.T) time.Duration {
	text, err := os.ReadFile("/proc/uptime")
	require.NoError(t, err)
	var up, idle float64
	_, err = fmt.Sscan(string(text), &up, &idle)
	require.NoError(t, err)
	return time.Duration((up - idle) * float64(time.Second))
}
