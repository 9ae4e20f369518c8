//go:build linux

package e2e

import (
	"bytes"
	"cmp"
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

	"github.com/ksnoop/ksnoop/e2e/replaying"
	"github.com/ksnoop/ksnoop/e2e/vm"
)

const (
	guestScripts = "/scripts"
	// lastScripts is the directory of scripts that change the guest permanently,
	// and run after all others. It is below the directory of the others.
	lastScripts = "last"
	// onceScripts is the directory of scripts that test ksnoop alone, and run on
	// oneKernel only. It is below the directory of the others.
	onceScripts = "once"
	// minKernels is how few kernels are enough for a test, because suites are
	// removed from the mirrors one day.
	minKernels = 1
)

// bootLimit returns the time limit of the run of one kernel, which takes some
// ten minutes on an idle machine. All functions of 5.10 take half an hour.
func bootLimit() time.Duration {
	if *sweep < 0 || *full {
		return 2 * time.Hour
	}
	return 40*time.Minute + 2**cycles + 2**soakFor
}

// TestMatrix runs TestGuest on every kernel of vm.Matrix for amd64, each in a
// virtual machine that holds nothing but ksnoop, this test and the scripts.
func TestMatrix(t *testing.T) { testMatrix(t, longestFirst(vm.AMD64)) }

// TestARM64 does the same for arm64, on one kernel without -full. Its loops are
// short even with -full: what they find in a long time does not depend on the
// architecture, and would take hours.
func TestARM64(t *testing.T) {
	suites := longestFirst(vm.ARM64)
	if !strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		lines := arm64Kernels
		if !*full {
			lines = lines[:1]
		}
		suites = slices.DeleteFunc(suites, func(s vm.Suite) bool { return !slices.Contains(lines, s.String()) })
	}
	testMatrix(t, suites)
}

// arm64Kernels lists the kernels of TestARM64: those that differ, by fentry since
// 6.4 and by kprobe.multi since 6.14.
var arm64Kernels = []string{oneKernel, "6.1", "newest"}

// TestWithoutPAN runs tests on an arm64 CPU that lets the kernel read the memory
// of processes as its own.
func TestWithoutPAN(t *testing.T) {
	onlyWithFull(t)
	t.Parallel()
	testOn(t, oneKernel, vm.Machine{Kernel: vm.Kernel{Arch: vm.ARM64}, Model: "cortex-a57"}, "^TestGuest$/^(language|tagged|trace|unreadable)$")
}

func testMatrix(t *testing.T, suites []vm.Suite) {
	arch := suites[0].Arch
	requireMachine(t, arch)
	if !strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		fetchAll(suites)
	}
	t.Parallel()
	qemu, err := vm.QEMU(t.Context(), arch)
	require.NoError(t, err)
	files := guestFiles(t, arch)
	var missing atomic.Int32
	t.Cleanup(func() {
		if n := int(missing.Load()); n > max(0, len(suites)-minKernels) {
			t.Errorf("%d kernels could not be fetched", n)
		}
	})
	for _, suite := range suites {
		t.Run(suite.String(), func(t *testing.T) {
			t.Parallel()
			kernel, err := fetchKernel(suite)
			if err != nil {
				missing.Add(1)
				t.Logf("missing: %s: %s", suite, oneLine(err))
				t.SkipNow()
			}
			t.Log(kernel.Release)
			m := vm.Machine{QEMU: qemu, Kernel: kernel, Files: slices.Clone(files), KASLR: suite.String() != oneKernel}
			if suite.String() == oneKernel {
				m.Files = slices.Concat(m.Files, onceFiles(t, arch), distFiles(t, arch))
			}
			var machines []vm.Machine
			for _, which := range shares(t, suite) {
				m.Args = append(guestArgs(which...), "-replays="+strconv.FormatBool(replaysHere(suite)))
				if arch == vm.ARM64 {
					m.Args = append(m.Args, "-full=false")
				}
				machines = append(machines, m)
			}
			testKernel(t, machines...)
		})
	}
}

// oneLine returns the text of an error with blanks for newlines.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// testOne runs tests of the guest in a machine of their own, on oneKernel.
func testOne(t *testing.T, m vm.Machine, run string) { testOn(t, oneKernel, m, run) }

// testOn runs tests of the guest in a machine of their own, on the kernel of a
// line, for amd64 unless the machine's kernel has an architecture. It returns
// what they have printed.
func testOn(t *testing.T, line string, m vm.Machine, run string) (output string) {
	arch := cmp.Or(m.Kernel.Arch, vm.AMD64)
	requireMachine(t, arch)
	qemu, err := vm.QEMU(t.Context(), arch)
	require.NoError(t, err)
	m.Kernel = kernelFor(t, arch, line)
	m.QEMU, m.Args = qemu, append(guestArgs("-test.run="+run), m.Args...)
	m.Files = append(m.Files, guestFiles(t, arch)...)
	return testKernel(t, m)
}

// requireMachine skips the test where kernels cannot be booted. In CI the test
// fails instead, because a skip would hide that nothing is tested.
func requireMachine(t *testing.T, a vm.Arch) {
	if testing.Short() {
		t.Skip("boots virtual machines")
	}
	err := vm.Check(a)
	if err != nil && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	require.NoError(t, err)
}

// testKernel boots machines of one kernel, all at once or those that -share names, and
// repeats the results of their tests here. It returns what they have printed.
func testKernel(t *testing.T, machines ...vm.Machine) (printed string) {
	outputs, errs := make([]bytes.Buffer, len(machines)), make([]error, len(machines))
	t.Logf("kernel: %s, seed %d", machines[0].Kernel.Release, *seed)
	booted := sharesToBoot(len(machines))
	require.NotEmpty(t, booted, "-share names none of the %d machines", len(machines))
	var wg sync.WaitGroup
	for _, i := range booted {
		m := machines[i]
		m.Seed = *seed
		log := logOf(t, i)
		wg.Go(func() {
			if i == booted[0] {
				defer waitForTurn(t, secondsOf(t))()
			} else { // beside the first, whose wait the test logs
				defer machineTurns.wait(secondsOf(t))()
			}
			ctx, cancel := context.WithTimeout(t.Context(), bootLimit())
			defer cancel()
			start := time.Now()
			errs[i] = m.Run(ctx, io.MultiWriter(&outputs[i], log))
			t.Logf("ran for %v", time.Since(start).Round(100*time.Millisecond))
		})
	}
	wg.Wait()
	for _, i := range booted {
		replay(t, replayRecordings(t, outputs[i].String()), "again: "+again(t, i, len(machines)))
		if errs[i] != nil {
			t.Error(errs[i])
		}
		printed += outputs[i].String()
	}
	return printed
}

// again returns the command that repeats a machine, of those that share the tests of
// a kernel.
func again(t *testing.T, machine, machines int) string {
	run := "^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$"
	if named() {
		run = flag.Lookup("test.run").Value.String()
	}
	command := fmt.Sprintf("go test ./e2e -run '%s' -seed %d", run, *seed)
	if machines > 1 {
		command += fmt.Sprintf(" -share %d", machine+1)
	}
	flag.Visit(func(f *flag.Flag) {
		if !strings.HasPrefix(f.Name, "test.") && f.Name != "seed" && f.Name != "logs" && f.Name != "share" {
			command += fmt.Sprintf(" -%s=%s", f.Name, f.Value)
		}
	})
	return command
}

// replay repeats the results of a guest's tests as subtests, each with the command
// that repeats its machine.
func replay(t *testing.T, output, again string) {
	replayed := 0
	for _, r := range parseResults(output) {
		if name, ok := strings.CutPrefix(r.name, "TestGuest"); ok && name != "" {
			if _, below, ok := strings.Cut(name, "/"); ok {
				name = below
			}
			t.Run(name, func(t *testing.T) {
				t.Log(again)
				r.replay(t)
			})
			replayed++
		} else if text := crash.FindString(r.log); text != "" {
			t.Error(text)
		}
	}
	if replayed == 0 {
		t.Errorf("no test ran:\n%s", output)
	}
}

// shares returns, for each machine of a kernel, the flags that select its
// tests. -run selects them at the third level. Otherwise they are the main job,
// or with -full and on oneKernel all, in parts of which -share leaves some out.
func shares(t *testing.T, suite vm.Suite) (flags [][]string) {
	const all = "^TestGuest$"
	run := selectedBelow(all, 2)
	switch {
	case run != all:
		return [][]string{{"-test.run=" + run}}
	case (suite.String() != oneKernel || suite.Arch == vm.ARM64) && !*full:
		names := mainJob
		if suite.Arch == vm.AMD64 {
			names = slices.Concat(names, alsoOn[suite.String()])
		}
		return [][]string{{"-test.run=" + all + "/" + oneOf(names)}}
	}
	names := guestTests(t)
	if suite.Arch == vm.ARM64 && suite.String() != oneKernel {
		names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(anyArch, name) })
	}
	for _, part := range share(names, rounds(2, machinesAtLength)) {
		if len(part) > 0 {
			flags = append(flags, []string{"-test.run=" + all + "/" + oneOf(part)})
		}
	}
	return flags
}

// oneOf returns a pattern that matches these names and no others.
func oneOf(names []string) string { return "^(" + strings.Join(names, "|") + ")$" }

// selectedBelow appends to a test's name the part of -run that is below the
// given number of levels.
func selectedBelow(run string, above int) string {
	if levels := strings.SplitN(flag.Lookup("test.run").Value.String(), "/", above+1); len(levels) > above {
		run += "/" + levels[above]
	}
	return run
}

// guestArgs returns the arguments of the test in the guest. which holds the
// flags that select its tests.
func guestArgs(which ...string) []string {
	return append(which,
		"-test.v=test2json", "-test.timeout="+bootLimit().String(),
		"-sweep="+strconv.Itoa(*sweep), "-attach="+strconv.Itoa(*attachMany),
		"-cycles="+cycles.String(), "-full="+strconv.FormatBool(*full), "-soak="+strconv.Itoa(*soak), "-soak-for="+soakFor.String(),
		"-casts="+strconv.Itoa(*casts), "-casts-seed="+strconv.FormatUint(*castsSeed, 10),
	)
}

// guestFiles returns the files for a guest of an architecture.
func guestFiles(t *testing.T, a vm.Arch) []vm.File {
	files := []vm.File{
		{Path: "init", Source: built(t, builtTest, a)},
		{Path: "bin/ksnoop", Source: staticBinary(t, a)},
		{Path: "bin/traffic", Source: built(t, builtCommands, a), Names: []string{"bin/as", "bin/confine", "bin/jq", "bin/tty", strings.TrimPrefix(replaying.Dir, "/") + "/ksnoop"}},
	}
	files = append(files, schemaFiles(t)...)
	all := scriptFiles(t, "", guestScripts)
	require.NotEmpty(t, all, "no scripts in %s", *scripts)
	return slices.Concat(files, all, scriptFiles(t, lastScripts, filepath.Join(guestScripts, lastScripts)))
}

// onceFiles returns the scripts that run on one kernel: all, or on arm64 those of
// the image and the packages.
func onceFiles(t *testing.T, a vm.Arch) []vm.File {
	files := scriptFiles(t, onceScripts, guestScripts)
	if a == vm.ARM64 {
		files = slices.DeleteFunc(files, func(f vm.File) bool {
			return !slices.Contains([]string{"image.txtar", "packages.txtar"}, filepath.Base(f.Path))
		})
	}
	return files
}

// scriptFiles returns the scripts in a directory below -scripts, with their
// paths below a directory of the guest.
func scriptFiles(t *testing.T, dir, guest string) (files []vm.File) {
	paths, err := filepath.Glob(filepath.Join(*scripts, dir, "*.txtar"))
	require.NoError(t, err)
	for _, p := range paths {
		files = append(files, vm.File{Path: filepath.Join(guest, filepath.Base(p))[1:], Source: p})
	}
	return files
}

// staticBinary returns the path of the ksnoop to test.
func staticBinary(t *testing.T, a vm.Arch) string {
	if *prebuilt != "" && a == vm.AMD64 {
		return *prebuilt
	}
	return built(t, builtKsnoop, a)
}

// schemaFiles returns the schemas of ksnoop's output.
func schemaFiles(t *testing.T) (files []vm.File) {
	paths, err := filepath.Glob("../docs/*.schema.json")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, p := range paths {
		files = append(files, vm.File{Path: guestPages[1:] + "/" + filepath.Base(p), Source: p})
	}
	return files
}

// logOf returns a file that receives the output of a guest while it runs, if
// one is wanted.
func logOf(t *testing.T, machine int) io.Writer {
	if *logs == "" {
		return io.Discard
	}
	require.NoError(t, os.MkdirAll(*logs, 0o755))
	name := fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), machine)
	f, err := os.Create(filepath.Join(*logs, name))
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}
