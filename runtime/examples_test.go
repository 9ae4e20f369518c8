package runtime_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	ksnoop "github.com/ksnoop/ksnoop/runtime"
)

// TestExamples runs the examples that trace, and checks what they print. It needs a
// kernel that allows to trace functions: TestDocs of e2e runs it in a virtual machine, and
// requires that nothing is skipped there.
func TestExamples(t *testing.T) {
	t.Run("Trace", func(t *testing.T) {
		requireFunctions(t, "")
		large := filepath.Join(t.TempDir(), "large")
		require.NoError(t, os.WriteFile(large, make([]byte, 70_000), 0o644))
		lines := runExample(t, ExampleTrace)
		reads := map[string]bool{} // the lines that are expected: other processes may read as much
		shown := false
		for range time.Tick(100 * time.Millisecond) { // the first one may read before ksnoop has attached
			dd := exec.Command("dd", "if="+large, "of=/dev/null", "bs=100000", "count=1")
			require.NoError(t, dd.Run())
			reads[fmt.Sprintf("dd[%d] reads 70000 of 100000 bytes of large", dd.Process.Pid)] = true
			for len(lines) > 0 {
				line := <-lines
				t.Log(line)
				shown = shown || reads[line]
			}
			if shown {
				break
			}
		}
		require.NoError(t, unix.Kill(os.Getpid(), unix.SIGINT))
		for line := range lines {
			t.Log(line)
		}
	})
	t.Run("Options", func(t *testing.T) {
		requireFunctions(t, compiler.Kprobe)
		if _, err := os.Stat("/etc/hostname"); err != nil {
			t.Skip(err)
		}
		var opened []string
		for line := range runExample(t, ExampleOptions) {
			t.Log(line)
			var record struct {
				Comm string
				Args struct {
					Name string `json:"path->dentry->d_name.name"`
					File map[string]any
				}
			}
			require.NoError(t, json.Unmarshal([]byte(line), &record), line)
			if record.Comm == "cat" {
				require.Contains(t, record.Args.File, "f_mode")
				opened = append(opened, record.Args.Name)
			}
		}
		require.Contains(t, opened, "hostname")
	})
}

// requireFunctions skips the test if functions cannot be traced by an attach kind.
func requireFunctions(t *testing.T, kind compiler.Kind) {
	if why := ksnoop.ReadPrivileges().Refusal(); why != "" {
		t.Skip(why)
	}
	attached := errors.New("attached")
	o := ksnoop.Options{Wishes: resolve.Wishes{Attach: kind}, Attached: func(*ksnoop.Session) error { return attached }}
	_, err := ksnoop.Trace(context.Background(), []string{"vfs_read"}, o, nil)
	if !errors.Is(err, attached) {
		t.Skip(err)
	}
}

// runExample starts an example and returns the lines that it prints. They end when it
// has returned.
func runExample(t *testing.T, example func()) <-chan string {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	stdout := os.Stdout
	os.Stdout = w
	go func() {
		example()
		w.Close()
	}()
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(r); in.Scan(); {
			lines <- in.Text()
		}
	}()
	t.Cleanup(func() {
		os.Stdout = stdout
		r.Close()
	})
	return lines
}
