//go:build linux

package e2e

import (
	"flag"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
)

var attachMany = flag.Int("attach", 25, "how many functions to attach to with a link for each, at most")

// attachingTests lists tests that attach to functions that nothing calls in the
// meantime.
var attachingTests = []struct {
	name string
	test func(*testing.T, *kernel, []string)
}{
	{"times", testAttachingTimes},
	{"stopped", testAttachingStopped},
	{"abandoned", testAttachingAbandoned},
	{"killed", testAttachingKilled},
	{"interrupted", testAttachingInterrupted},
}

func testAttaching(t *testing.T, k *kernel) {
	functions := k.plainFunctions(t)
	for _, test := range attachingTests {
		t.Run(test.name, func(t *testing.T) { test.test(t, k, functions) })
	}
}

// testAttachingTimes logs how long it takes to attach and to detach, and
// requires that one link attaches many functions where the kernel can do that.
func testAttachingTimes(t *testing.T, k *kernel, functions []string) {
	t.Logf("%-14s %9s %10s %10s %10s", "", "functions", "load", "attach", "detach")
	for _, kind := range []compiler.Kind{compiler.Fentry, compiler.Fexit, compiler.Kprobe, compiler.Kretprobe, compiler.KprobeMulti, compiler.KretprobeMulti, compiler.KprobeSession} {
		for _, n := range []int{1, rounds(5, 25), rounds(100, 500)} {
			if !supports(k.target().Features, kind) || n > *attachMany && !kind.Multi() {
				continue
			}
			timeAttaching(t, k, kind, functions[:n])
		}
	}
}

func timeAttaching(t *testing.T, k *kernel, kind compiler.Kind, functions []string) {
	before := bpfObjects(t)
	start := time.Now()
	s := load(t, newMany(kind, 0, functions), k.Kernel)
	loaded := time.Now()
	n, err := s.Attach()
	attached := time.Now()
	require.NoError(t, err)
	require.Equal(t, len(functions), n)
	if kind.Multi() {
		require.Len(t, bpfObjects(t).links.without(before.links), 1)
	}
	detaching := time.Now()
	require.NoError(t, s.Close())
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
	t.Logf("%-14s %9d %10s %10s %10s", kind, n, ms(loaded.Sub(start)), ms(attached.Sub(loaded)), ms(time.Since(detaching)))
	requireNothingLeft(t, before)
}

// newMany returns a unit with one program for each function, or with one
// program for all functions if the attach kind supports that.
func newMany(kind compiler.Kind, instances int, functions []string) counter {
	c := newCounters(len(functions))
	var places []compiler.Place
	for i, name := range functions {
		p := compiler.Place{Probe: c.probe(name), Symbol: name, Cookie: uint64(i)}
		places = append(places, p)
		if !kind.Multi() {
			c.attach(kind, instances, p)
		}
	}
	if kind.Multi() {
		c.attach(kind, 0, places...)
	}
	return c
}

// networkFunction matches functions that only networking uses.
var networkFunction = regexp.MustCompile(`^(tcp|udp|inet6?|ipv?6?|fib6?|xfrm|netlink|rtnl|neigh|sock)_`)

// plainFunctions lists networking functions that every attach kind of every
// kernel can trace: they have few arguments, a return value, one symbol and one
// type.
func (k *kernel) plainFunctions(t *testing.T) []string {
	types := map[string]int{}
	plain := map[string]bool{}
	for typ, err := range k.Types().All() {
		require.NoError(t, err)
		if f, ok := typ.(*btf.Func); ok {
			types[f.Name]++
			plain[f.Name] = isPlain(f.Type.(*btf.FuncProto))
		}
	}
	var names []string
	for _, name := range k.functions(t) {
		if networkFunction.MatchString(name) && plain[name] && types[name] == 1 && len(k.target().Symbols.Lookup(name)) == 1 {
			names = append(names, name)
		}
	}
	require.Greater(t, len(names), 500)
	return names
}

func isPlain(proto *btf.FuncProto) bool {
	for _, p := range proto.Params {
		if p.Name == "" || !isWord(p.Type) {
			return false
		}
	}
	return len(proto.Params) <= 6 && isWord(proto.Return)
}

func isWord(t btf.Type) bool {
	switch btf.UnderlyingType(t).(type) {
	case *btf.Pointer, *btf.Int, *btf.Enum:
		return true
	}
	return false
}
