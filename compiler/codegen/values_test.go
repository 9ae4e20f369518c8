package codegen

import (
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// Values are read without a call, by a program that is told the CPU.
func TestValuesWithoutCall(t *testing.T) {
	for _, f := range []compiler.Features{compilertest.WithTrampoline, compilertest.WithProbes, compilertest.WithKprobeSession} {
		for _, tc := range []struct{ text, want string }{
			{"(u64)@jiffies, (u8)@jiffies", "(u64)@jiffies=1234 (u8)@jiffies=210"},
			{"((u32[4])@jiffies)[2], ((u32[4])@jiffies)[1..2]", "((u32[4])@jiffies)[2]=99 ((u32[4])@jiffies)[1..2]=0000000063000000"},
			{"(u64)@jiffies + 0x10, ((u64)@jiffies & 2):x", "(u64)@jiffies + 0x10=1250 (u64)@jiffies & 2=2"},
			{"(u64)@jiffies & 2", "(u64)@jiffies & 2=2"},
			{"(u64)@local, (u8[2])@local, $cpu", "(u64)@local=55 (u8[2])@local=3700 $cpu=2"},
			{"*(u64 *)0xffffffff81001100", "*(u64 *)0xffffffff81001100=1234"},
			{"((struct dev *)0xffffffff81001100)->index", "((struct dev *)0xffffffff81001100)->index=7"},
			{"((u32 *)(0xffffffff81001100 + 8))[0..1]", "((u32 *)(0xffffffff81001100 + 8))[0..1]=6300000000000000"},
			{"(u32 *)0xffffffff81001100 + 2", "(u32 *)0xffffffff81001100 + 2=63000000"},
			{"(u32 *)0xffffffff81001108", "(u32 *)0xffffffff81001108=63000000"},
			{"*(u64 *)8, *(u64 *)0xffff800000000000, (struct dev *)8", "*(u64 *)8=fault(0x8) *(u64 *)0xffff800000000000=fault(0xffff800000000000) (struct dev *)8=*fault(0x8)"},
			{"$task->tgid, $pid, $comm", `$task->tgid=7 $pid=7 $comm="worker"`},
			{"$task->real_parent->comm:string", `$task->real_parent->comm="parent"`},
		} {
			r := rigOfValues(t, f, tc.text)
			r.put(0xffffffff81001100, le(uint64(1234), uint64(99), uint32(7), uint32(0), uint64(0)))
			table := make([]byte, 32)
			copy(table[16:], le(uint64(0xffff_8880_0000_0000)))
			r.put(0xffffffff81001700, table)
			r.put(0xffff_8880_0000_1000, le(uint64(55)))
			require.NoError(t, r.runProgram(r.unit.Attachments[0].Program, r.alloc(le(uint64(2)))))
			require.Equal(t, []string{"entry " + tc.want}, r.shown())
		}
	}
}

// rigOfValues returns a rig for values that are read without a call.
func rigOfValues(t *testing.T, f compiler.Features, text string) *rig {
	trace, err := spec.ParseValues(text)
	require.NoError(t, err)
	target := compilertest.NewTarget(t, f)
	plan, err := resolve.All([]*spec.Trace{trace}, target, resolve.Wishes{})
	require.NoError(t, err)
	unit, err := generate(plan.Probes, compiler.Options{})
	require.NoError(t, err)
	require.Len(t, unit.Attachments, 1)
	require.Equal(t, compiler.RawTP, unit.Attachments[0].Kind)
	for name, p := range unit.Collection.Programs {
		requireReachable(t, name, p.Instructions)
	}
	return withMachine(t, unit, target.Arch)
}

// What is kept of a narrow argument is its whole word, and the upper half means nothing,
// also where it is cast to a typedef of a pointer.
func TestNarrowArgumentAfter(t *testing.T) {
	backEnds(t, func(t *testing.T, f compiler.Features) {
		handle := &btf.Typedef{Name: "handle_t", Type: compilertest.Ptr(compilertest.Void)}
		target := compilertest.NewTarget(t, f, handle)
		r := newRigOn(t, target, compiler.Options{}, resolve.Wishes{}, "open(after((handle_t)dfd), dfd)")
		r.do(call{args: []uint64{0xabcd_0000_0000_0007, 0}, result: []uint64{0}})
		require.Equal(t, []string{"call dfd=7 after((handle_t)dfd)=7"}, r.shown())
	})
}
