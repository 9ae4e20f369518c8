//go:build linux

package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
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

// Log logs what a script has printed, without the middle of outputs that are long: each
// byte costs the guest and the emulated serial port as much as some thousand instructions.
func (s sequential) Log(args ...any) { s.T.Log(shortOutputs(fmt.Sprint(args...), 64<<10)) }

// outputStart matches the line of a script's log after which there is what a command has
// printed, and outputEnd the line of the next command.
var (
	outputStart = regexp.MustCompile(`(?m)^\[std(?:out|err)\]\n`)
	outputEnd   = regexp.MustCompile(`(?m)^(?:> |\[std(?:out|err)\]\n)`)
)

// shortOutputs returns the log of a script without the middle of outputs that have more
// than the given number of bytes.
func shortOutputs(log string, most int) string {
	var short strings.Builder
	for {
		start := outputStart.FindStringIndex(log)
		if start == nil {
			break
		}
		short.WriteString(log[:start[1]])
		log = log[start[1]:]
		end := len(log)
		if next := outputEnd.FindStringIndex(log); next != nil {
			end = next[0]
		}
		output := log[:end]
		log = log[end:]
		if left := len(output) - most; left > 0 {
			fmt.Fprintf(&short, "%s\n[bytes that are not logged: %d]\n", output[:most/2], left)
			output = output[len(output)-most/2:]
		}
		short.WriteString(output)
	}
	short.WriteString(log)
	return short.String()
}

// TestShortOutputs checks what is logged of a script.
func TestShortOutputs(t *testing.T) {
	brief := "# first (0.1s)\n> exec a\n[stdout]\n12345678\n[stderr]\n12345678\n> stdout x\n"
	require.Equal(t, brief, shortOutputs(brief, 9))
	long := "> exec a\n[stdout]\n1234-----5678\n[stderr]\n12345678\n> stdout x\n"
	require.Equal(t, "> exec a\n[stdout]\n1234\n[bytes that are not logged: 6]\n678\n[stderr]\n1234\n[bytes that are not logged: 1]\n678\n> stdout x\n", shortOutputs(long, 8))
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
