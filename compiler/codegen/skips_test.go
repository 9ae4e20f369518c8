package codegen

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
)

// busyCPU makes calls while interrupts come at any instruction, also of programs, and
// make calls, too. It skips programs as the kernel does.
type busyCPU struct {
	*rig
	makes    []func(number uint64) call // any of these
	rnd      *rand.Rand
	skips    bool // whether trampolines skip programs
	irq      *kernelStack
	level    int  // of interrupts
	user     bool // the task is in user space: its stack is free
	running  map[string]bool
	all      []*skippable // calls, by mode
	underWay []*skippable
}

// skippable is a call.
type skippable struct {
	call
	number  uint64
	frame   uint64                      // its part of the stack
	inside  []outerCall                 // on this stack, outermost first
	skipped [2]map[*compiler.Probe]bool // at entry and at return
	shown   map[*compiler.Probe]int     // how often
	between bool                        // the programs at entry have run, and those at return have not
}

// outerCall is a call that another one is inside of.
type outerCall struct {
	*skippable
	between bool
}

// mostLevels is the largest number of interrupts in each other, and mostFrames of frames
// on a stack from which calls are made.
const mostLevels, mostFrames = 3, 6

func newBusyCPU(r *rig, skips bool, seed uint64, makes ...func(number uint64) call) *busyCPU {
	c := &busyCPU{rig: r, makes: makes, rnd: rand.New(rand.NewPCG(seed, 0)), skips: skips, irq: r.newStack(), running: map[string]bool{}}
	r.guard = c.guarded
	return c
}

// run makes calls of a task until there are n.
func (c *busyCPU) run(n int) {
	for len(c.all) < n {
		c.user = true
		c.arm()
		for range c.rnd.IntN(10) {
			c.mayInterrupt()
		}
		c.user = false
		c.call()
	}
}

// guarded runs a program unless the kernel skips it: a trampoline if it already runs
// (since 5.12), and a kprobe if any one does.
func (c *busyCPU) guarded(a *compiler.Attachment, run func() error) error {
	running := a.Program
	if !a.Kind.Trampoline() {
		running = "kprobe"
	}
	c.mayInterrupt()
	if c.running[running] && (!a.Kind.Trampoline() || c.skips) {
		side := 0
		if c.atRet {
			side = 1
		}
		c.underWay[len(c.underWay)-1].skipped[side][a.Places[0].Probe] = true
		return nil
	}
	outer := c.running[running]
	c.running[running] = true
	err := run()
	c.mayInterrupt()
	c.running[running] = outer
	return err
}

// arm lets an interrupt come soon.
func (c *busyCPU) arm() {
	if c.level < mostLevels {
		c.interruptAt, c.interrupt = 1+c.rnd.IntN(400), c.handle
	}
}

// handle is an interrupt. On x86-64, one that comes from user space uses the task's stack.
func (c *busyCPU) handle() {
	stack, user := c.stack, c.user
	if c.level == 0 && !(user && c.rnd.IntN(2) == 0) {
		c.stack = c.irq
	}
	depth := c.stack.depth
	c.stack.depth += 1 + c.rnd.IntN(2) // a call that returns still has its frame
	c.level, c.user = c.level+1, false
	for range 1 + c.rnd.IntN(2) {
		c.call()
	}
	c.level, c.user = c.level-1, user
	c.stack.depth, c.stack = depth, stack
	c.arm()
}

// call makes a call.
func (c *busyCPU) call() {
	number := uint64(len(c.all) + 1)
	made := &skippable{
		call: c.makes[c.rnd.IntN(len(c.makes))](number), number: number,
		frame:   c.stack.addr + uint64(len(c.stack.bytes)-(c.stack.depth+1)*stackFrame),
		skipped: [2]map[*compiler.Probe]bool{{}, {}}, shown: map[*compiler.Probe]int{},
	}
	for _, outer := range c.underWay {
		if outer.frame-c.stack.addr < uint64(len(c.stack.bytes)) {
			made.inside = append(made.inside, outerCall{outer, outer.between})
		}
	}
	c.all, c.underWay = append(c.all, made), append(c.underWay, made)
	c.arm()
	leave := c.enter(made.call)
	made.between = true
	for range c.rnd.IntN(20) {
		c.mayInterrupt()
	}
	if c.stack.depth < mostFrames && c.rnd.IntN(3) == 0 {
		c.call()
	}
	made.between = false
	leave()
	c.underWay = c.underWay[:len(c.underWay)-1]
}

// wants reports whether the conditions at entry of a probe of [skippedSpecs] hold.
func (c *skippable) wants(p *compiler.Probe) bool { return len(p.EntryConds) == 0 || c.number&1 == 1 }

// check requires that each call was shown, or else counted: by the kernel, as skipped,
// or by its program, as without room. It returns how many were shown with the values of
// another one.
func (c *busyCPU) check(t *testing.T) (mixed int) {
	for _, rec := range c.records {
		ev := c.unit.Events[binary.LittleEndian.Uint32(rec[compiler.HeaderEvent:])]
		call := func(name string) *skippable {
			var mode int
			i := slices.IndexFunc(ev.Items, func(it *compiler.Value) bool { return it.Name == name })
			_, err := fmt.Sscan(showSlot(rec, ev, i), &mode)
			require.NoError(t, err)
			return c.all[mode-1]
		}
		entered, returned := call("mode"), call("return")
		returned.shown[ev.Probe]++
		require.True(t, entered.wants(ev.Probe))
		if entered != returned {
			mixed++
			require.True(t, entered.skipped[1][ev.Probe] && returned.skipped[0][ev.Probe], "values of a call whose return was not skipped")
			entered.shown[ev.Probe]++
		}
	}
	for i, ev := range c.unit.Events {
		unseen, entered := uint64(0), uint64(0)
		for _, call := range c.all {
			require.LessOrEqual(t, call.shown[ev.Probe], 1)
			switch {
			case call.shown[ev.Probe] > 0 || call.skipped[0][ev.Probe] || !call.wants(ev.Probe):
			case call.skipped[1][ev.Probe]:
				entered++
			default:
				unseen++
			}
		}
		noRoom := c.counters(i).NoRoom
		require.True(t, unseen <= noRoom && noRoom <= unseen+entered, "%d calls were neither shown nor skipped, %d have found no room", unseen, noRoom)
	}
	return mixed
}

var skippedSpecs = []string{
	"work(mode, return >= 0, $duration)", "work(mode & 1, return > 0, $duration)",
	"work(mode, return > 0, $duration)", "work(mode, $kstack, return != 0, $duration)",
}

// Whatever interrupts come, each call is shown, or counted. It is shown with the values of
// another one only where the kernel has skipped the return of that, and its entry.
func TestSkippedAnywhere(t *testing.T) {
	const runs, calls = 40, 300
	backEnds(t, func(t *testing.T, f compiler.Features) {
		made, mixed, skipped := 0, 0, 0
		for seed := range uint64(runs) {
			of := skippedSpecs[seed%2 : 1+seed%uint64(len(skippedSpecs))]
			c := newBusyCPU(newRig(t, f, compiler.Options{}, of...), f.CountsSkipped, seed, stackWork)
			c.run(calls)
			mixed += c.check(t)
			made += len(c.all) * len(of)
			for _, call := range c.all {
				skipped += len(call.skipped[0])
			}
		}
		t.Logf("of %d calls, the kernel skipped the entry of %d, and %d were shown with the values of another one", made, skipped, mixed)
		require.Equal(t, f.CountsSkipped || !f.Trampoline, skipped > 0)
		if !f.CountsSkipped {
			require.Zero(t, mixed)
		}
	})
}
