package compiler

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSkippedSides makes calls in interrupts whose programs the kernel skips,
// because the interrupt came into the same program just before it began its
// work, or just after it had done it.
func TestSkippedSides(t *testing.T) {
	task, irq := stackWork(1), stackWork(2)
	skipping := func(r *rig, kind Kind, c call) func() {
		return func() {
			enter := func(missed Kind) { r.missed = missed }
			if kind == Fentry {
				enter(Fentry)
			}
			leave := r.enter(c)
			enter("")
			if kind == Fexit {
				enter(Fexit)
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
			r.on(on, skipping(r, Fexit, irq))
			leave()
			r.on(on, skipping(r, Fentry, stackWork(3)))
			r.nest(task)()
		}, []string{"call mode=1 return=1 $duration=0", "call mode=1 return=1 $duration=0"}, 1},
		{"the same in an interrupt of an interrupt", func(r *rig) {
			r.onOtherStack(func() {
				leave := r.enter(task)
				skipping(r, Fexit, irq)()
				leave()
				leave = r.enter(task)
				skipping(r, Fentry, stackWork(3))()
				leave()
			})()
		}, []string{"call mode=1 return=1 $duration=0", "call mode=1 return=1 $duration=0"}, 1},
		{"an entry whose frame is free", func(r *rig) {
			r.nest(task)()
			r.onOtherStack(skipping(r, Fentry, irq))()
		}, []string{"call mode=1 return=1 $duration=0"}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, withTrampoline, Options{}, "work(mode, return > 0, $duration)")
			tc.calls(r)
			require.Equal(t, tc.want, r.shown())
			require.Equal(t, tc.unpaired, r.counters(0).Unpaired)
		})
	}
}

// on makes calls on a stack.
func (r *rig) on(s *kernelStack, calls func()) {
	own := r.stack
	r.stack = s
	calls()
	r.stack = own
}
