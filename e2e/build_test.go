//go:build linux

package e2e

import (
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/vm"
)

// The programs that tests run are built once for all of them, for each
// architecture. They depend on nothing but the sources: the test binary in the guest is
// not the one that go test has built, which may have the paths of this machine.
var (
	builtKsnoop   = eachArch(buildKsnoop)
	builtCommands = eachArch(func(a vm.Arch) (string, error) { return build(a, "commands", "build", nil, "./commands") })
	builtGotest   = eachArch(func(a vm.Arch) (string, error) { return build(a, "gotest", "build", nil, "./gotest") })
	builtTest     = eachArch(func(a vm.Arch) (string, error) { return buildTest(a, "e2e.test", ".") })
	builtExamples = eachArch(func(a vm.Arch) (string, error) { return buildTest(a, "runtime.test", "../runtime") })
)

// A program returns the path of a program built for an architecture.
type program func(vm.Arch) (string, error)

// eachArch returns a program that is built at most once for each architecture.
func eachArch(build program) program {
	var paths sync.Map
	return func(a vm.Arch) (string, error) {
		once, _ := paths.LoadOrStore(a, sync.OnceValues(func() (string, error) { return build(a) }))
		return once.(func() (string, error))()
	}
}

// built returns the path of a program.
func built(t *testing.T, p program, a vm.Arch) string {
	t.Helper()
	file, err := p(a)
	require.NoError(t, err)
	return file
}

// scratch is the directory for built programs.
var scratch string

// buildKsnoop builds ksnoop as it is released.
func buildKsnoop(a vm.Arch) (string, error) {
	if err := dependOnSources(); err != nil {
		return "", err
	}
	file := filepath.Join(scratch, "ksnoop-"+string(a))
	cmd := exec.Command("go", "run", "./cmd/build", "-arch", string(a), "-o", file)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "GOGC=800")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", cmd, err, out)
	}
	return file, nil
}

// build runs a go command that builds a static program, and returns its path.
func build(a vm.Arch, name, verb string, flags []string, source string) (string, error) {
	if err := dependOnSources(); err != nil {
		return "", err
	}
	file := filepath.Join(scratch, name+"-"+string(a))
	args := slices.Concat([]string{verb, "-buildvcs=false", "-ldflags=-s -w -funcalign=4", "-o", file}, flags, []string{source})
	cmd := exec.Command("go", args...)
	cmd.Env = buildFor(a)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", cmd, err, out)
	}
	return file, nil
}

// buildTest builds the test binary of a package, and returns its path.
func buildTest(a vm.Arch, name, source string) (string, error) {
	return build(a, name, "test", []string{"-c", "-vet=off"}, source)
}

// buildFor returns the environment of go commands that build static programs, with the
// flags of the Makefile. The compiler collects garbage more rarely, which saves a fifth of
// its work.
func buildFor(a vm.Arch) []string {
	makefile, err := os.ReadFile("../Makefile")
	flags := regexp.MustCompile(`(?m)^export GOFLAGS \+= (.*)$`).FindSubmatch(makefile)
	if flags == nil {
		panic(fmt.Sprint("the Makefile exports no GOFLAGS: ", err))
	}
	return append(os.Environ(), "CGO_ENABLED=0", "GOGC=800", "GOARCH="+string(a), "GOFLAGS="+string(flags[1]))
}

// isStatic reports whether a program needs no dynamic linker.
func isStatic(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return !slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}

// dependOnSources looks at every source file of the module. go test remembers
// which files a test has looked at, and does not use its cached result when one of
// them has changed. It does not know about the binary that is built here.
func dependOnSources() error {
	return filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == ".git", d.Name() == ".build":
			return fs.SkipDir
		case strings.HasSuffix(path, ".go"), d.Name() == "go.mod":
			_, err = os.Stat(path)
		}
		return err
	})
}
