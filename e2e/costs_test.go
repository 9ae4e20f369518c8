//go:build linux

package e2e

import (
	"slices"
	"testing"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/e2e/guest"
	"github.com/ksnoop/ksnoop/e2e/vm"
)

// TestCosts counts the instructions that tracing adds to a call: in a virtual
// machine in which a nanosecond is an instruction, always the same ones.
func TestCosts(t *testing.T) {
	testOne(t, vm.Machine{Icount: true}, "^TestGuestCosts$")
}

// A cost is what one way of tracing vfs_read adds to it.
type cost struct {
	what   string
	attach compiler.Kind
	empty  []compiler.Kind // programs that do nothing, to compare with
	spec   string
	// factor bounds the instructions, in those of the empty programs of the same
	// run; over bounds what they are more. 0: no bound.
	factor float64
	over   float64
	// measure is what is kept of calls in place of records; counted: calls
	// are counted besides.
	measure compiler.Measure
	counted bool
}

const (
	rejected = "vfs_read(file->f_flags == 0x12345678)"
	kept     = "vfs_read(file->f_flags != 0x12345678, return == -4242)"
)

var costs = []cost{
	{what: "member rejected", attach: compiler.Fentry, empty: []compiler.Kind{compiler.Fentry}, spec: rejected, factor: 1.15},
	{what: "member rejected", attach: compiler.Kprobe, empty: []compiler.Kind{compiler.Kprobe}, spec: rejected, factor: 1.3},
	{what: "member rejected", attach: compiler.KprobeMulti, empty: []compiler.Kind{compiler.KprobeMulti}, spec: rejected, factor: 1.4},
	{what: "member kept, return rejected", attach: compiler.Fentry, empty: []compiler.Kind{compiler.Fentry, compiler.Fexit}, spec: kept, over: 950},
	{what: "member kept, return rejected", attach: compiler.Kprobe, empty: []compiler.Kind{compiler.Kprobe, compiler.Kretprobe}, spec: kept},
	{what: "member rejected, counted", attach: compiler.Fentry, empty: []compiler.Kind{compiler.Fentry}, spec: rejected, counted: true, over: 45},
	{what: "member rejected, calls", attach: compiler.Fentry, empty: []compiler.Kind{compiler.Fentry}, spec: rejected, measure: compiler.Calls, over: 60},
	{what: "matching, calls", attach: compiler.Fentry, empty: []compiler.Kind{compiler.Fentry}, spec: "vfs_read(count)", measure: compiler.Calls, over: 50},
	{what: "matching, values", attach: compiler.Fentry, empty: []compiler.Kind{compiler.Fentry}, spec: "vfs_read(count)", measure: compiler.Values, over: 125},
	{what: "matching, durations", attach: compiler.Fentry, empty: []compiler.Kind{compiler.Fentry, compiler.Fexit}, spec: "vfs_read", measure: compiler.Durations, over: 1270},
	{what: "matching, changes", attach: compiler.Fentry, empty: []compiler.Kind{compiler.Fentry, compiler.Fexit}, spec: "vfs_read(file->f_pos)", measure: compiler.Changes},
	{what: "matching, records", attach: compiler.Fentry, empty: []compiler.Kind{compiler.Fentry}, spec: "vfs_read(count)"},
	{what: "matching, calls", attach: compiler.Kprobe, empty: []compiler.Kind{compiler.Kprobe}, spec: "vfs_read(count)", measure: compiler.Calls},
	{what: "matching, durations", attach: compiler.Kprobe, empty: []compiler.Kind{compiler.Kprobe, compiler.Kretprobe}, spec: "vfs_read", measure: compiler.Durations},
}

// TestGuestCosts runs in the machine that TestCosts boots.
func TestGuestCosts(t *testing.T) {
	if !guest.Inside() {
		t.Skip("runs inside a virtual machine, see TestCosts")
	}
	k := openKernel(t)
	kinds := k.kinds(t)
	m := newMeter(t)
	t.Logf("a call takes %.1f instructions; more with", m.nothing)
	t.Logf("%-30s %-13s %8s %8s %8s", "", "", "traced", "empty", "factor")
	for _, c := range costs {
		if slices.Contains(kinds, c.attach) {
			c.test(t, k, m)
		}
	}
}

func (c *cost) test(t *testing.T, k *kernel, m *meter) {
	empty := m.added(t, func() func() error { return attachEmpty(t, emptyOn("vfs_read", c.empty...)) })
	traced := m.added(t, func() func() error {
		wishes, opts := compiler.Wishes{Attach: c.attach}, compiler.Options{Self: 1, Tally: c.counted, RingBytes: ringBytes}
		return k.measure(t, wishes, opts, measured{c.spec, c.measure}).Close
	})
	t.Logf("%-30s %-13s %8.1f %8.1f %8.2f", c.what, c.attach, traced, empty, traced/empty)
	if c.factor > 0 && traced > c.factor*empty {
		t.Errorf("%s by %s: more than %.2f times the empty program", c.what, c.attach, c.factor)
	}
	if c.over > 0 && traced > empty+c.over {
		t.Errorf("%s by %s: more than %.0f instructions over the empty program", c.what, c.attach, c.over)
	}
}
