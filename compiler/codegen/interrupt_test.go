package codegen

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
)

// preemptWord is the address at which the CPU of a machine counts interrupts.
const preemptWord = 0xffff_8888_0000_1000

// Where the kernels of both architectures count interrupts.
var (
	perCPUCount = compiler.PreemptCount{PerCPU: []uint64{8, 8, 8, preemptWord, 8}}
	taskCount   = compiler.PreemptCount{Task: 16}
)

// Calls in ksnoop's own process are its own unless an interrupt makes them, in events,
// counts and what is kept from the entry to the return.
func TestInterrupts(t *testing.T) {
	for _, tc := range []struct {
		name  string
		count uint32 // include/linux/preempt.h
		shown bool
	}{
		{"task", 0, false},
		{"preemption is off", 1, false},
		{"softirqs are off", 0x200, false},
		{"preemption and softirqs are off, resched is set", 0x8000_0602, false},
		{"softirq", 0x101, true},
		{"softirq in a part without softirqs", 0x301, true},
		{"interrupt", 0x1_0001, true},
		{"NMI", 0x10_0000, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			backEnds(t, func(t *testing.T, f compiler.Features) {
				for _, where := range []compiler.PreemptCount{perCPUCount, taskCount, {}} {
					f.PreemptCount = where
					shown := tc.shown && where.Known()
					interrupted := func(m *machine) {
						word := binary.LittleEndian.AppendUint32(nil, tc.count)
						m.put(preemptWord, word)
						if where.Task != 0 {
							m.task = preemptWord - uint64(where.Task)
						}
					}
					for _, spec := range []string{"read(count)", "read(count == 1)", "read(count, return)", "read(count == 1, return)"} {
						r := newRig(t, f, compiler.Options{Self: 7, CountCalls: true}, spec)
						interrupted(r.machine)
						r.do(call{args: []uint64{0, 0, 1, 0}, result: []uint64{0}})
						require.Equal(t, shown, len(r.records) > 0, "%s %+v", spec, where)
					}
					for _, spec := range []string{"read(count == 5)", "read(return == 5)", "read(count == 5, return == 5)"} {
						r, err := measuredRig(t, f, compiler.Options{Self: 7}, resolve.Wishes{}, compiler.Calls, spec)
						require.NoError(t, err)
						interrupted(r.machine)
						for _, count := range []uint64{4, 5} {
							r.do(call{args: []uint64{0, 0, count, 0}, result: []uint64{count}})
						}
						want := compiler.Counters{}
						if shown {
							want = compiler.Counters{Matched: 1, Filtered: 1}
						}
						got := r.counters(0)
						require.Equal(t, []uint64{want.Matched, want.Filtered}, []uint64{got.Matched, got.Filtered}, "%s %+v", spec, where)
					}
				}
			})
		})
	}
}
