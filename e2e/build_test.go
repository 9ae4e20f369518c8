//go:build linux

package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// The programs that tests run are built once for all of them.
var (
	builtKsnoop = sync.OnceValues(func() (string, error) { return build("ksnoop", "build", "../cmd/ksnoop") })
	builtTest   = sync.OnceValues(func() (string, error) { return build("e2e.test", "test", "-c", ".") })
)

// built returns the path of a program.
func built(t *testing.T, program func() (string, error)) string {
	t.Helper()
	file, err := program()
	require.NoError(t, err)
	return file
}

// scratch is the directory of the programs that are built.
var scratch string

// build runs go with the flags of a static binary, which depends on nothing but the
// sources, and a verb's own arguments. It returns the path of the program.
func build(name, verb string, args ...string) (string, error) {
	if err := dependOnSources(); err != nil {
		return "", err
	}
	file := filepath.Join(scratch, name)
	flags := []string{verb, "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", file}
	for _, p := range strings.Fields(cold) {
		flags = append(flags, "-gcflags="+p+"=-l")
	}
	cmd := exec.Command("go", append(flags, args...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", cmd, err, out)
	}
	return file, nil
}

// cold is the packages that need not be fast, as in the Makefile.
const cold = "fmt reflect time regexp/... github.com/cilium/ebpf/asm github.com/ksnoop/ksnoop/compiler/..."

// dependOnSources looks at every source of the module. go test remembers what a
// test has looked at, and does not take the result from its cache when one of
// those has changed; of the binary that is built here it knows nothing.
func dependOnSources() error {
	return filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
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
}
