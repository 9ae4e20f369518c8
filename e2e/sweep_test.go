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
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime"
)

var sweep = flag.Int("sweep", 0, "how many functions of each kernel to try, chosen at random but always the same; 0: 500, or 2000 with -full; -1: all")

// batch is how many functions are loaded at once. They share the maps, which
// take longer to make than a program.
const batch = 50

// kernelsFault lists why a function cannot be traced by its name. Any other
// reason is a fault of ours.
var kernelsFault = []string{
	"there are N functions called F in this kernel (N), and BTF describes only one of them, not saying which",
	"F is in BTF with different prototypes",
	"F has a signature that BTF does not describe",
}

// testSweep: the kernel accepts the programs for the default trace of its
// functions, however they are declared.
func testSweep(t *testing.T, k *kernel) {
	functions := sample(k.functions(t), cmp.Or(*sweep, rounds(500, 2000)))
	target := k.target()
	k.sweep(t, target, functions)
	if target.Features.Preemptible { // as if it were booted with preempt=voluntary
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
		if err := k.load(target, some...); err != nil {
			t.Errorf("%d functions together: %v", len(some), err)
			k.loadEach(t, target, some)
		}
	}
	t.Logf("%d functions loaded in %v", len(probes), time.Since(start).Round(time.Millisecond))
}

// loadEach tells which probes the kernel refuses, with their programs.
func (k *kernel) loadEach(t *testing.T, target *compiler.Target, probes []*compiler.Probe) {
	for _, p := range probes {
		err := k.load(target, p)
		if err == nil {
			continue
		}
		t.Errorf("%s by %s: %+v", p.Func.Name, p.Attach.Entry, refusal(err))
		if unit, err := compile(target, p); err == nil {
			for name, ps := range unit.Collection.Programs {
				t.Logf("%s:\n%v", name, ps.Instructions)
			}
		}
	}
}

// sample is n of the functions, always the same; all if n is 0.
func sample(functions []string, n int) []string {
	if n < 0 || n > len(functions) {
		return functions
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(functions), func(i, j int) {
		functions[i], functions[j] = functions[j], functions[i]
	})
	return functions[:n]
}

// requireKernelsFault: nothing is refused for a reason of ours.
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

// resolveEach resolves the default traces of functions. Those that are refused
// come by the reason.
func resolveEach(functions []string, target *compiler.Target) (probes []*compiler.Probe, refused map[string][]string) {
	refused = map[string][]string{}
	for _, name := range functions {
		trace, err := spec.Parse(name)
		if err == nil {
			var plan *compiler.Plan
			if plan, err = compiler.ResolveAll([]*spec.Trace{trace}, target, compiler.Wishes{}); err == nil {
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

// load verifies the programs of probes.
func (k *kernel) load(target *compiler.Target, probes ...*compiler.Probe) error {
	unit, err := compile(target, probes...)
	if err != nil {
		return err
	}
	session, err := runtime.Load(unit, k.Kernel)
	if err != nil {
		return err
	}
	return session.Close()
}

func compile(target *compiler.Target, probes ...*compiler.Probe) (*compiler.Unit, error) {
	return compiler.Compile(probes, compiler.Options{RingBytes: 1 << 20, Features: target.Features, Arch: target.Arch})
}

var numbers = regexp.MustCompile(`0x[0-9a-f]+(, 0x[0-9a-f]+)*|\b[0-9]+\b`)

// generic is a reason without what differs from function to function.
func generic(name, reason string) string {
	return numbers.ReplaceAllString(regexp.MustCompile(`\b`+name+`\b`).ReplaceAllString(reason, "F"), "N")
}
