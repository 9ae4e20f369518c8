//go:build linux

package e2e

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/vm"
)

const (
	guestScripts = "/scripts"
	// lastScripts change the guest for good, and run after all others. It is
	// below their directory.
	lastScripts = "last"
	// onceScripts are about ksnoop alone, and run on oneKernel. They are in a
	// directory below the others.
	onceScripts = "once"
	// minKernels is how few kernels still make a test; a suite leaves the mirrors one day.
	minKernels = 3
)

// bootLimit bounds the run of one kernel, which takes some five minutes on an idle
// machine; half an hour for all functions of 5.10.
func bootLimit() time.Duration {
	if *sweep == 0 {
		return 2 * time.Hour
	}
	return 25*time.Minute + 2**cycles
}

// TestMatrix runs TestGuest on every kernel of vm.Matrix, each in a virtual
// machine that holds nothing but ksnoop, this test and the scripts.
func TestMatrix(t *testing.T) {
	requireMachine(t)
	qemu, err := vm.QEMU(t.Context())
	require.NoError(t, err)
	files := guestFiles(t)
	var missing atomic.Int32
	t.Cleanup(func() {
		if n := int(missing.Load()); n > len(vm.Matrix)-minKernels {
			t.Errorf("%d kernels could not be fetched", n)
		}
	})
	for _, suite := range vm.Matrix {
		t.Run(suite.String(), func(t *testing.T) {
			t.Parallel()
			kernel, err := vm.NewCache().Kernel(t.Context(), suite)
			if err != nil {
				missing.Add(1)
				t.Skip(err)
			}
			t.Log(kernel.Release)
			m := vm.Machine{QEMU: qemu, Kernel: kernel, Files: slices.Clone(files), Args: guestArgs(selected())}
			if suite.String() == oneKernel {
				m.Files = append(m.Files, scriptFiles(t, onceScripts, guestScripts)...)
			}
			testKernel(t, m)
		})
	}
}

// oneKernel is where tests run that need one kernel only.
const oneKernel = "6.12"

// testOne runs tests of the guest in a machine of their own.
func testOne(t *testing.T, m vm.Machine, run string) { testOn(t, oneKernel, m, run) }

// testOn does that with one of the kernels.
func testOn(t *testing.T, line string, m vm.Machine, run string) {
	t.Parallel()
	requireMachine(t)
	qemu, err := vm.QEMU(t.Context())
	require.NoError(t, err)
	m.Kernel = kernelOf(t, line)
	m.QEMU, m.Args = qemu, guestArgs(run)
	m.Files = append(m.Files, guestFiles(t)...)
	testKernel(t, m)
}

// kernelOf is one of the kernels; without it the test is skipped.
func kernelOf(t *testing.T, line string) vm.Kernel {
	i := slices.IndexFunc(vm.Matrix, func(s vm.Suite) bool { return s.String() == line })
	kernel, err := vm.NewCache().Kernel(t.Context(), vm.Matrix[i])
	if err != nil {
		t.Skip(err)
	}
	return kernel
}

// requireMachine skips the test where kernels cannot be booted. In CI that
// would hide that nothing is tested.
func requireMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("boots virtual machines")
	}
	err := vm.Check()
	if err != nil && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	require.NoError(t, err)
}

// testKernel boots the machine and repeats here what its tests said.
func testKernel(t *testing.T, m vm.Machine) {
	ctx, cancel := context.WithTimeout(t.Context(), bootLimit())
	defer cancel()
	var output bytes.Buffer
	start := time.Now()
	err := m.Run(ctx, io.MultiWriter(&output, logOf(t)))
	t.Logf("ran for %v", time.Since(start).Round(100*time.Millisecond))
	replayed := 0
	for _, r := range parseResults(output.String()) {
		if name, ok := strings.CutPrefix(r.name, "TestGuest"); ok && name != "" {
			if _, below, ok := strings.Cut(name, "/"); ok {
				name = below
			}
			t.Run(name, r.replay)
			replayed++
		}
	}
	if err != nil {
		t.Error(err)
	}
	if replayed == 0 {
		t.Errorf("no test ran:\n%s", output.String())
	}
}

// selected is the tests in the guest that -run selects on the third level.
func selected() string { return selectedBelow("^TestGuest$", 2) }

// selectedBelow selects what is below a test of the guest as -run does below a
// number of levels.
func selectedBelow(run string, above int) string {
	if levels := strings.SplitN(flag.Lookup("test.run").Value.String(), "/", above+1); len(levels) > above {
		run += "/" + levels[above]
	}
	return run
}

// guestArgs returns the arguments of the test in the guest.
func guestArgs(run string) []string {
	return []string{
		"-test.v=test2json", "-test.run=" + run, "-test.timeout=" + bootLimit().String(),
		"-sweep=" + strconv.Itoa(*sweep), "-attach=" + strconv.Itoa(*attachMany),
		"-cycles=" + cycles.String(),
	}
}

// guestFiles returns what goes into the guest.
func guestFiles(t *testing.T) []vm.File {
	ksnoop := staticBinary(t)
	test := filepath.Join(t.TempDir(), "e2e.test")
	build(t, "test", "-c", "-o", test, ".")
	files := []vm.File{{Path: "init", Source: test}, {Path: "bin/ksnoop", Source: ksnoop}}
	files = append(files, imageFiles(t, ksnoop)...)
	files = append(files, schemaFiles(t)...)
	all := scriptFiles(t, "", guestScripts)
	require.NotEmpty(t, all, "no scripts in %s", *scripts)
	return slices.Concat(files, all, scriptFiles(t, lastScripts, filepath.Join(guestScripts, lastScripts)))
}

// scriptFiles are the scripts in a directory of those to run, to be in one of the
// guest.
func scriptFiles(t *testing.T, dir, guest string) (files []vm.File) {
	paths, err := filepath.Glob(filepath.Join(*scripts, dir, "*.txtar"))
	require.NoError(t, err)
	for _, p := range paths {
		files = append(files, vm.File{Path: filepath.Join(guest, filepath.Base(p))[1:], Source: p})
	}
	return files
}

// staticBinary is the ksnoop to test.
func staticBinary(t *testing.T) string {
	if *prebuilt != "" {
		return *prebuilt
	}
	ksnoop := filepath.Join(t.TempDir(), "ksnoop")
	build(t, "build", "-o", ksnoop, "../cmd/ksnoop")
	return ksnoop
}

// schemaFiles are the schemas of what ksnoop prints.
func schemaFiles(t *testing.T) (files []vm.File) {
	paths, err := filepath.Glob("../docs/*.schema.json")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, p := range paths {
		files = append(files, vm.File{Path: guestPages[1:] + "/" + filepath.Base(p), Source: p})
	}
	return files
}

// logOf is a file where the output of a guest can be read while it runs, if one
// is wanted.
func logOf(t *testing.T) io.Writer {
	if *logs == "" {
		return io.Discard
	}
	f, err := os.Create(filepath.Join(*logs, strings.ReplaceAll(t.Name(), "/", "-")))
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}
