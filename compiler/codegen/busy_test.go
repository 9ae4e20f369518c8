package codegen

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
)

// TestSkippedSides makes calls in interrupts whose programs the kernel skips,
// because the interrupt came during the same program, just before it set the
// word, or just after it released it.
func TestSkippedSides(t *testing.T) {
	task, irq := stackWork(1), stackWork(2)
	skipping := func(r *rig, kind compiler.Kind, c call) func() {
		return func() {
			enter := func(missed compiler.Kind) { r.missed = missed }
			if kind == compiler.Fentry {
				enter(compiler.Fentry)
			}
			leave := r.enter(c)
			enter("")
			if kind == compiler.Fexit {
				enter(compiler.Fexit)
			}
			leave()
			enter("")
		}
	}
	for _, tc := range []struct {
		name     string
		calls    func(r *rig)
		want     []string
		unpaired uint64
	}{
		{"none", func(r *rig) {
			r.nest(task)()
			r.onOtherStack(r.nest(irq))()
			r.nest(task)()
		}, []string{"call mode=1 return=1 $duration=0", "call mode=2 return=2 $duration=0", "call mode=1 return=1 $duration=0"}, 0},
		{"none, an interrupt in a call", func(r *rig) {
			r.nest(task, r.onOtherStack(r.nest(irq)))()
		}, []string{"call mode=2 return=2 $duration=0", "call mode=1 return=1 $duration=0"}, 0},
		{"none, a call in a call of an interrupt", func(r *rig) {
			r.nest(task, r.onOtherStack(r.nest(irq, r.nest(stackWork(3)))))()
		}, []string{"call mode=3 return=3 $duration=0", "call mode=2 return=2 $duration=0", "call mode=1 return=1 $duration=0"}, 0},
		{"an interrupt of an interrupt, on one more stack", func(r *rig) {
			r.onOtherStack(r.nest(irq, r.onOtherStack(r.nest(stackWork(3)))))()
			r.nest(task)()
		}, []string{"call mode=3 return=3 $duration=0", "call mode=1 return=1 $duration=0"}, 1},
		{"a return, then an entry in the same frame", func(r *rig) {
			on := r.newStack()
			leave := r.enter(task)
			r.on(on, skipping(r, compiler.Fexit, irq))
			leave()
			r.on(on, skipping(r, compiler.Fentry, stackWork(3)))
			r.nest(task)()
		}, []string{"call mode=1 return=1 $duration=0", "call mode=1 return=1 $duration=0"}, 1},
		{"the same, and a call of one more interrupt came in between", func(r *rig) {
			on := r.newStack()
			leave := r.enter(task)
			r.on(on, skipping(r, compiler.Fexit, irq))
			leave()
			on.depth++
			r.on(on, r.nest(stackWork(4)))
			on.depth--
			r.on(on, skipping(r, compiler.Fentry, stackWork(3)))
			r.nest(task)()
		}, []string{"call mode=1 return=1 $duration=0", "call mode=4 return=4 $duration=0", "call mode=1 return=1 $duration=0"}, 1},
		{"the same in an interrupt of an interrupt", func(r *rig) {
			r.onOtherStack(func() {
				leave := r.enter(task)
				skipping(r, compiler.Fexit, irq)()
				leave()
				leave = r.enter(task)
				skipping(r, compiler.Fentry, stackWork(3))()
				leave()
			})()
		}, []string{"call mode=1 return=1 $duration=0", "call mode=1 return=1 $duration=0"}, 1},
		{"the same, and the call of the task goes on", func(r *rig) {
			on := r.newStack()
			r.nest(task)()
			r.on(on, skipping(r, compiler.Fexit, irq)) // when the program had released the word
			leave := r.enter(stackWork(5))
			r.on(on, skipping(r, compiler.Fentry, stackWork(3)))
			leave()
		}, []string{"call mode=1 return=1 $duration=0", "call mode=5 return=5 $duration=0"}, 1},
		{"an entry whose frame is free", func(r *rig) {
			r.nest(task)()
			r.onOtherStack(skipping(r, compiler.Fentry, irq))()
		}, []string{"call mode=1 return=1 $duration=0"}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, compilertest.WithTrampoline, compiler.Options{}, "work(mode, return > 0, $duration)")
			tc.calls(r)
			require.Equal(t, tc.want, r.shown())
			require.Equal(t, tc.unpaired, r.counters(0).Unpaired)
		})
	}
}

// Two probes of one function keep a call in its frame each. The return of the one
// leaves what the other has kept.
func TestSlotsOfOneFrame(t *testing.T) {
	for _, specs := range [][]string{{"work(mode, return > 0)", "work(mode, return >= 1)"}, {"work(mode, return >= 1)", "work(mode, return > 0)"}} {
		r := newRig(t, compilertest.WithTrampoline, compiler.Options{}, specs...)
		r.nest(stackWork(1), r.onOtherStack(r.nest(stackWork(2), r.nest(stackWork(3)))))()
		r.nest(stackWork(4))()
		want := map[string]int{}
		for _, line := range r.shown() {
			want[line]++
		}
		require.Equal(t, map[string]int{"call mode=1 return=1": 2, "call mode=2 return=2": 2, "call mode=3 return=3": 2, "call mode=4 return=4": 2}, want)
		require.Zero(t, r.counters(0).Unpaired+r.counters(1).Unpaired)
		require.Zero(t, r.keptCalls())
	}
}

// Interrupts come on two stacks by turns: on their own and, from user space, on that of
// the task. What is left of them where the kernel skips their returns does not fill the
// slots.
func TestSkippedOnTwoStacks(t *testing.T) {
	r := newRig(t, compilertest.WithTrampoline, compiler.Options{}, "work(mode, return > 0, $duration)")
	irq := r.newStack()
	left := func() {
		r.missed = compiler.Fexit
		r.nest(stackWork(2))()
		r.missed = ""
	}
	for range 2 * manySlots {
		r.on(irq, left)
		r.on(irq, r.nest(stackWork(3)))
		require.Equal(t, []string{"call mode=3 return=3 $duration=0"}, r.shown())
		r.on(irq, left)
		left()
	}
	r.nest(stackWork(4))()
	require.Equal(t, []string{"call mode=4 return=4 $duration=0"}, r.shown())
	require.Zero(t, r.keptCalls())
	require.Equal(t, compiler.Counters{}, r.counters(0))
}

// Of two probes of one function the kernel skips the return program of one, and then its
// entry program. What the other has kept is found, and what is left does not fill the slots.
func TestSkippedOfOneProbe(t *testing.T) {
	for of := range 2 {
		r := newRig(t, compilertest.WithTrampoline, compiler.Options{}, "work(mode, return > 0, $duration)", "work(mode, return >= 1, $duration)")
		var entries, returns []string
		for _, at := range r.unit.Attachments {
			switch at.Kind {
			case compiler.Fentry:
				entries = append(entries, at.Program)
			case compiler.Fexit:
				returns = append(returns, at.Program)
			}
		}
		irq := r.newStack()
		for range 2 * manySlots {
			r.skips = returns[of]
			r.on(irq, r.nest(stackWork(2)))
			r.skips = ""
			require.Len(t, r.shown(), 1)
			r.on(irq, r.nest(stackWork(3)))
			require.Len(t, r.shown(), 2)
		}
		r.skips = returns[of]
		r.on(irq, r.nest(stackWork(2)))
		r.skips = ""
		require.Len(t, r.shown(), 1)
		leave := r.enter(stackWork(1))
		r.skips = entries[of]
		inside := func() {
			leave := r.enter(stackWork(4))
			r.skips = ""
			leave()
		}
		r.on(irq, inside)
		require.Equal(t, []string{"call mode=4 return=4 $duration=0"}, r.shown())
		leave()
		require.Equal(t, []string{"call mode=1 return=1 $duration=0", "call mode=1 return=1 $duration=0"}, r.shown())
		require.Zero(t, r.keptCalls())
		require.Equal(t, compiler.Counters{Unpaired: 1}, r.counters(of))
		require.Equal(t, compiler.Counters{}, r.counters(1-of))
	}
}

// on makes calls on a stack.
func (r *rig) on(s *kernelStack, calls func()) {
	own := r.stack
	r.stack = s
	calls()
	r.stack = own
}

// Of a call in an interrupt that comes inside a program, the kernel skips one side and
// counts that. Before 5.12 it skips none, and the call is shown.
func TestInterruptInProgram(t *testing.T) {
	for spec, want := range map[string][]string{
		"work(mode, return > 0, $duration)": {"call mode=1 return=1 $duration=0"},
		"work(mode, return, $duration)":     {"entry mode=1", "return return=1 $duration=0"},
	} {
		for depth := range uint64(compiler.Nesting) {
			r := newRig(t, compilertest.WithoutFuncArg, compiler.Options{}, spec)
			busy, err := r.at(r.arrays[busyMap], 8)
			require.NoError(t, err)
			binary.LittleEndian.PutUint64(busy, 8*depth) // as many programs have been interrupted
			r.nest(stackWork(1))()
			require.Equal(t, want, r.shown())
			require.Equal(t, 8*depth, binary.LittleEndian.Uint64(busy))
			require.Zero(t, r.keptCalls())
		}
		r := newRig(t, compilertest.WithTrampoline, compiler.Options{}, spec)
		busy, err := r.at(r.arrays[busyMap], 8)
		require.NoError(t, err)
		busy[0] = 1
		leave := r.enter(stackWork(1))
		r.missed = compiler.Fexit
		leave()
		require.Empty(t, r.shown())
		require.Zero(t, r.keptCalls())
		for i := range want {
			require.Equal(t, compiler.Counters{}, r.counters(i))
		}
	}
}
