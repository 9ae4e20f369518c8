//go:build linux

package e2e

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/confine"
	"github.com/ksnoop/ksnoop/e2e/guest"
	"github.com/ksnoop/ksnoop/e2e/jq"
	"github.com/ksnoop/ksnoop/e2e/script"
	"github.com/ksnoop/ksnoop/e2e/traffic"
)

var (
	scripts  = flag.String("scripts", "testdata", "directory of the scripts to run")
	logs     = flag.String("logs", "", "directory for the output of the guests, to look at while they run")
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
	testscript.Main(cleaning{m, dir}, map[string]func(){"as": script.As, "confine": confine.Main, "jq": jq.Main, "traffic": traffic.Main})
}

// cleaning runs the tests, and then removes a directory.
type cleaning struct {
	*testing.M
	dir string
}

func (c cleaning) Run() int {
	defer os.RemoveAll(c.dir)
	return c.M.Run()
}

// TestGuest runs inside a virtual machine: the tests that trace in their own
// process, before anything is changed in the system, and the scripts, which
// TestMatrix has put there.
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
	params, err := script.Params(dir, guestPages)
	require.NoError(t, err)
	params.Deadline, _ = t.Deadline()
	testscript.RunT(sequential{t}, params)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// sequential runs scripts one after another, in order: they count calls in the
// whole system.
type sequential struct{ *testing.T }

func (sequential) Parallel() {}

func (sequential) Verbose() bool { return testing.Verbose() }

func (s sequential) Run(name string, run func(testscript.T)) {
	s.T.Run(name, func(t *testing.T) { run(sequential{t}) })
}
