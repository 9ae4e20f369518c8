//go:build linux

package e2e

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/codegen"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime"
)

var sweep = flag.Int("sweep", 0, "how many functions of each kernel to try, chosen at random but always the same; 0: 60, or 2000 with -full; -1: all")

// batch is how many functions are loaded at once. They share the maps, which
// take longer to create than a program.
const batch = 50

// kernelsFault lists the reasons in the kernel why a function cannot be traced
// by its name. Any other reason is a bug of ksnoop.
var kernelsFault = []string{
	"there are N functions called F in this kernel (N), and BTF describes only one of them, not saying which",
	"F is in BTF with different prototypes",
	"F has a signature that BTF does not describe",
}

// testSweep checks that the kernel accepts the programs for the default trace
// of its functions, whatever their prototypes are.
func testSweep(t *testing.T, k *kernel) {
	functions := sample(k.functions(t), cmp.Or(*sweep, rounds(60, 2000)))
	target := k.target()
	k.sweep(t, target, functions)
	k.sweepTables(t, target, functions[:len(functions)/4])
	if target.Features.Preemptible { // as if the kernel were booted with preempt=voluntary
		target.Features.Preemptible = false
		k.sweep(t, target, functions[:len(functions)/4])
	}
}

func (k *kernel) sweep(t *testing.T, target *compiler.Target, functions []string) {
	probes, refused := resolveEach(functions, target)
	requireKernelsFault(t, refused)
	why := map[string][]string{}
	for _, p := range probes {
		reason := fmt.Sprintf("%s: %s", p.Attach.Entry, generic(p.Func.Name, p.Attach.Reason))
		why[reason] = append(why[reason], p.Func.Name)
	}
	logReasons(t, why)
	start := time.Now()
	for some := range slices.Chunk(probes, batch) {
		if err := k.load(some...); err != nil {
			t.Errorf("%d functions together: %v", len(some), err)
			k.loadEach(t, some)
		}
	}
	t.Logf("%d functions loaded in %v", len(probes), time.Since(start).Round(time.Millisecond))
}

// sweepTables does the same for tables of what functions return and how long they
// take, by their first arguments.
func (k *kernel) sweepTables(t *testing.T, target *compiler.Target, functions []string) {
	n := 0
	for some := range slices.Chunk(functions, batch) {
		var probes []*compiler.Probe
		for _, name := range some {
			probes = append(probes, table(name, target)...)
		}
		n += len(probes)
		if err := k.load(probes...); err != nil {
			t.Errorf("%d tables together: %v", len(probes), err)
			k.loadEach(t, probes)
		}
	}
	t.Logf("%d tables loaded", n)
	if n < len(functions)/2 {
		t.Errorf("only %d of %d functions have a table", n, len(functions))
	}
}

// table returns a table of the calls of a function, by as many of its first arguments
// as fit, or nil if it cannot be traced.
func table(name string, target *compiler.Target) []*compiler.Probe {
	for _, items := range []string{
		"$arg1, $arg2, $comm, count(), hist($duration), max(return)", "$arg1, count(), hist($duration)", "$pid, count(), avg($duration)", "$comm, count()",
	} {
		trace, err := spec.Parse(name + "(" + items + ")")
		if err != nil {
			return nil
		}
		if plan, err := resolve.All([]*spec.Trace{trace}, target, resolve.Wishes{}); err == nil {
			return plan.Probes
		}
	}
	return nil
}

// loadEach reports the probes that the kernel refuses, with their programs.
func (k *kernel) loadEach(t *testing.T, probes []*compiler.Probe) {
	for _, p := range probes {
		err := k.load(p)
		if err == nil {
			continue
		}
		t.Errorf("%s by %s: %+v", p.Func.Name, p.Attach.Entry, refusal(err))
		if unit, err := compile(p); err == nil {
			for name, ps := range unit.Collection.Programs {
				t.Logf("%s:\n%v", name, ps.Instructions)
			}
		}
	}
}

// sample returns n of the functions, always the same ones, or all if n is
// negative.
func sample(functions []string, n int) []string {
	if n < 0 || n > len(functions) {
		return functions
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(functions), func(i, j int) {
		functions[i], functions[j] = functions[j], functions[i]
	})
	return functions[:n]
}

// requireKernelsFault checks that no function is refused because of a bug of
// ksnoop.
func requireKernelsFault(t *testing.T, refused map[string][]string) {
	logReasons(t, refused)
	for reason, functions := range refused {
		known := func(prefix string) bool { return strings.HasPrefix(reason, prefix) }
		if !slices.ContainsFunc(kernelsFault, known) {
			t.Errorf("resolve %s: %s", functions, reason)
		}
	}
}

func logReasons(t *testing.T, functions map[string][]string) {
	for _, reason := range slices.Sorted(maps.Keys(functions)) {
		t.Logf("%5d %s", len(functions[reason]), reason)
	}
}

// resolveEach resolves the default traces of functions. It returns the names of
// refused functions by reason.
func resolveEach(functions []string, target *compiler.Target) (probes []*compiler.Probe, refused map[string][]string) {
	refused = map[string][]string{}
	for _, name := range functions {
		trace, err := spec.Parse(name)
		if err == nil {
			var plan *compiler.Plan
			if plan, err = resolve.All([]*spec.Trace{trace}, target, resolve.Wishes{}); err == nil {
				probes = append(probes, plan.Probes...)
				continue
			}
		}
		var fault *spec.Error
		if errors.As(err, &fault) {
			err = errors.New(fault.Msg)
		}
		reason := generic(name, err.Error())
		refused[reason] = append(refused[reason], name)
	}
	return probes, refused
}

// load loads the programs of probes, so that the verifier checks them.
func (k *kernel) load(probes ...*compiler.Probe) error {
	unit, err := compile(probes...)
	if err != nil {
		return err
	}
	return k.verify(unit)
}

// verify loads a unit, so that the verifier checks all of it. The error is the first
// refusal, even if the session would trace the other probes.
func (k *kernel) verify(unit *compiler.Unit) error {
	session, err := runtime.Load(unit, k.Kernel)
	if err != nil {
		return err
	}
	if refused := session.Refused(); len(refused) > 0 {
		return errors.Join(refused[0], session.Close())
	}
	return session.Close()
}

func compile(probes ...*compiler.Probe) (*compiler.Unit, error) {
	return codegen.Compile(probes, compiler.Options{RingBytes: 1 << 20, Keys: 16})
}

var numbers = regexp.MustCompile(`0x[0-9a-f]+(, 0x[0-9a-f]+)*|\b[0-9]+\b`)

// generic returns a reason without the parts that differ between functions.
func generic(name, reason string) string {
	return numbers.ReplaceAllString(regexp.MustCompile(`\b`+name+`\b`).ReplaceAllString(reason, "F"), "N")
}
