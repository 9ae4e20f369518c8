//go:build linux

package e2e

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// build runs go with the flags of a static binary, and a verb's own arguments.
func build(t *testing.T, verb string, args ...string) {
	t.Helper()
	dependOnSources(t)
	flags := []string{verb, "-trimpath", "-ldflags=-s -w"}
	for _, p := range strings.Fields(cold) {
		flags = append(flags, "-gcflags="+p+"=-l")
	}
	cmd := exec.CommandContext(t.Context(), "go", append(flags, args...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", cmd, out)
}

// cold is the packages that need not be fast, as in the Makefile.
const cold = "fmt reflect time regexp/... github.com/cilium/ebpf/asm github.com/ksnoop/ksnoop/compiler/..."

// dependOnSources looks at every source of the module. go test remembers what a
// test has looked at, and does not take the result from its cache when one of
// those has changed; of the binary that is built here it knows nothing.
func dependOnSources(t *testing.T) {
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == ".git":
			return fs.SkipDir
		case strings.HasSuffix(path, ".go"), d.Name() == "go.mod":
			_, err = os.Stat(path)
		}
		return err
	})
	require.NoError(t, err)
}
