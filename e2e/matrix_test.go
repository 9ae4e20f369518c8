//go:build linux

package e2e

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	// minKernels is how few kernels still make a test: suites leave the mirrors one day.
	minKernels = 1
)

// bootLimit bounds the run of one machine, which takes some ten minutes on an idle
// host; half an hour for all functions of 5.10.
func bootLimit() time.Duration {
	if *sweep < 0 {
		return 2 * time.Hour
	}
	return 40*time.Minute + 2**cycles
}

// TestMatrix runs TestGuest on every kernel of vm.Matrix, in virtual
// machines that hold nothing but ksnoop, this test and the scripts.
func TestMatrix(t *testing.T) {
	requireMachine(t)
	suites := longestFirst()
	if !strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		fetchAll(suites)
	}
	t.Parallel()
	qemu, err := vm.QEMU(t.Context())
	require.NoError(t, err)
	files := guestFiles(t)
	var missing atomic.Int32
	t.Cleanup(func() {
		if n := int(missing.Load()); n > len(suites)-minKernels {
			t.Errorf("%d kernels could not be fetched", n)
		}
	})
	for _, suite := range suites {
		t.Run(suite.String(), func(t *testing.T) {
			t.Parallel()
			kernel, err := fetchKernel(suite)
			if err != nil {
				missing.Add(1)
				t.Skip(err)
			}
			m := vm.Machine{QEMU: qemu, Kernel: kernel, Files: slices.Clone(files)}
			if suite.String() == oneKernel {
				m.Files = append(m.Files, scriptFiles(t, onceScripts, guestScripts)...)
			}
			var machines []vm.Machine
			for _, run := range shares(t, suite) {
				m.Args = guestArgs(run)
				machines = append(machines, m)
			}
			testKernel(t, machines...)
		})
	}
}

// testOne runs tests of the guest in a machine of their own, on oneKernel.
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

// testKernel boots machines of one kernel, all at once, and repeats here what
// their tests said. It returns what they have printed.
func testKernel(t *testing.T, machines ...vm.Machine) (printed string) {
	ctx, cancel := context.WithTimeout(t.Context(), bootLimit())
	defer cancel()
	t.Logf("kernel: %s, seed %d", machines[0].Kernel.Release, *seed)
	outputs, errs := make([]bytes.Buffer, len(machines)), make([]error, len(machines))
	start := time.Now()
	var wg sync.WaitGroup
	for i, m := range machines {
		m.Seed = *seed
		log := logOf(t, i)
		wg.Go(func() { errs[i] = m.Run(ctx, io.MultiWriter(&outputs[i], log)) })
	}
	wg.Wait()
	t.Logf("ran for %v", time.Since(start).Round(100*time.Millisecond))
	for i := range machines {
		replay(t, outputs[i].String())
		if errs[i] != nil {
			t.Error(errs[i])
		}
		printed += outputs[i].String()
	}
	return printed
}

// replay repeats the results of a guest's tests as subtests.
func replay(t *testing.T, output string) {
	replayed := 0
	for _, r := range parseResults(output) {
		if name, ok := strings.CutPrefix(r.name, "TestGuest"); ok && name != "" {
			if _, below, ok := strings.Cut(name, "/"); ok {
				name = below
			}
			t.Run(name, r.replay)
			replayed++
		}
	}
	if replayed == 0 {
		t.Errorf("no test ran:\n%s", output)
	}
}

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
		"-cycles=" + cycles.String(), "-full=" + strconv.FormatBool(*full),
	}
}

// guestFiles returns what goes into the guest.
func guestFiles(t *testing.T) []vm.File {
	ksnoop := staticBinary(t)
	files := []vm.File{{Path: "init", Source: built(t, builtTest)}, {Path: "bin/ksnoop", Source: ksnoop}}
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
	return built(t, builtKsnoop)
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
func logOf(t *testing.T, machine int) io.Writer {
	if *logs == "" {
		return io.Discard
	}
	name := fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), machine)
	f, err := os.Create(filepath.Join(*logs, name))
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}
