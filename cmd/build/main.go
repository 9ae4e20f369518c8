// Build builds ksnoop and ksnoop-exporter, small and static, in the directory of ksnoop's go.mod:
//
//	go run ./cmd/build [-program ksnoop-exporter] [-arch amd64|arm64] [-version VERSION] [-o FILE]
//	go run ./cmd/build [-version VERSION] -all DIR
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// cold are packages in which nothing is inlined, as they need no speed. This saves 0.4 MB.
var cold = []string{
	"fmt", "errors", "reflect", "regexp/...", "encoding/json", "text/...", "compress/...", "debug/...", "internal/zstd",
	"flag", "log", "os/signal", "github.com/urfave/cli/v2", "github.com/valyala/fastjson/...",
	"github.com/ksnoop/ksnoop/cmd/ksnoop/...", "github.com/ksnoop/ksnoop/compiler/suite/...", "github.com/ksnoop/ksnoop/compiler/spec/...",
	"github.com/ksnoop/ksnoop/compiler/resolve", "github.com/ksnoop/ksnoop/runtime/cgroup", "github.com/ksnoop/ksnoop/runtime/known", "github.com/ksnoop/ksnoop/runtime/clock",
}

// hot are packages of those that are on the way of each event, so that they are not cold:
// otherwise it takes 9 % more instructions to print or to record an event.
var hot = []string{"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/run", "github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"}

// programs are those that can be built.
var programs = []string{"ksnoop", "ksnoop-exporter"}

// A target is a program for an architecture.
type target struct {
	program, arch string
	version       string // what the program prints as its version
	output        string // file to write
}

func main() {
	var t target
	flag.StringVar(&t.program, "program", programs[0], strings.Join(programs, " or "))
	flag.StringVar(&t.arch, "arch", runtime.GOARCH, "architecture")
	flag.StringVar(&t.version, "version", "", "what the program prints as its version (default: the version of the module)")
	flag.StringVar(&t.output, "o", "", "file to write (default: the name of the program)")
	all := flag.String("all", "", "build each program for amd64 and arm64 as `DIR`/PROGRAM-linux-ARCH, whatever GOFLAGS has")
	flag.Parse()
	var err error
	if *all != "" {
		err = buildAll(*all, t.version)
	} else {
		err = t.build()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

// buildAll builds everything in a directory.
func buildAll(dir, version string) error {
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Unsetenv("GOFLAGS")); err != nil {
		return err
	}
	for _, program := range programs {
		for _, arch := range []string{"amd64", "arm64"} {
			t := target{program, arch, version, filepath.Join(dir, program+"-linux-"+arch)}
			if err := t.build(); err != nil {
				return err
			}
		}
	}
	return nil
}

// build builds a program. The same sources give the same bytes everywhere.
func (t target) build() error {
	if !slices.Contains(programs, t.program) {
		return fmt.Errorf("there is no program %q: build %s", t.program, strings.Join(programs, " or "))
	}
	output, err := filepath.Abs(cmp.Or(t.output, t.program))
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-o", output)
	if t.program == programs[0] {
		err = t.ksnoop(cmd)
	} else {
		t.exporter(cmd)
	}
	if err != nil {
		return err
	}
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0", "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", cmd, err)
	}
	return nil
}

// ksnoop adds what is special about ksnoop to a command that builds it. Functions are
// aligned to 2 bytes, not to 32. This saves 0.16 MB. purego leaves out the assembly of
// hashes and ciphers, which are linked but not used: 57 KB.
func (t target) ksnoop(cmd *exec.Cmd) error {
	cmd.Args = append(cmd.Args, "-modfile="+modFile, "-tags=urfave_cli_no_docs,purego", "-ldflags=-s -w -funcalign=2 -X main.version="+t.version)
	cmd.Args = append(append(cmd.Args, inlining()...), "./cmd/ksnoop")
	return copyModule()
}

// exporter does so for the exporter, which is a module of its own.
func (t target) exporter(cmd *exec.Cmd) {
	cmd.Args = append(cmd.Args, "-tags=urfave_cli_no_docs", "-ldflags=-s -w -funcalign=4 -X main.version="+t.version, "-gcflags=fmt=-l", ".")
	cmd.Dir = "cmd/ksnoop-exporter"
}

// inlining returns the flags that say what is inlined. The last one for a package counts.
func inlining() (flags []string) {
	for _, name := range cold {
		flags = append(flags, "-gcflags="+name+"=-l")
	}
	for _, name := range hot {
		flags = append(flags, "-gcflags="+name+"=")
	}
	return flags
}
