package codegen

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
)

// The comparison with the reference detects programs in which one of the
// executed instructions is wrong. Many such changes do not matter: an R0 that
// is not used, one more byte in a scratch buffer, a bit that is 0 in all calls.
func TestSemanticsFindsMutants(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	mutants, found := 0, 0
	for seed := range uint64(80) {
		k, err := newKernel(rand.New(rand.NewPCG(seed, 1)))
		require.NoError(t, err)
		x := newExperiment(t, k, k.funcs[0])
		unit := x.compile(t, backEnd{compiler.AMD64, compilertest.WithTrampoline}, &tried{})
		if unit == nil {
			continue
		}
		tr := x.on(t, unit, compiler.AMD64)
		require.NoError(t, tr.run())
		for _, name := range slices.Sorted(maps.Keys(unit.Collection.Programs)) {
			ps := unit.Collection.Programs[name]
			right := ps.Instructions
			if tr.decoded[&right[0]] == nil {
				continue // it has not run: no thread has ended
			}
			for range 5 {
				if ps.Instructions = mutant(rnd, right, tr.decoded[&right[0]]); ps.Instructions == nil {
					break
				}
				wrong := x.on(t, unit, compiler.AMD64)
				mutants++
				if wrong.run() != nil || wrong.check() != nil {
					found++
				}
			}
			ps.Instructions = right
		}
	}
	t.Logf("%d mutants, %d found", mutants, found)
	require.Greater(t, 2*found, mutants)
}

// mutant returns the program with one of the executed instructions changed, or nil
// if none can be.
func mutant(rnd *rand.Rand, insns asm.Instructions, ran []instruction) asm.Instructions {
	insns = slices.Clone(insns)
	for _, i := range rnd.Perm(len(insns)) {
		if !ran[i].ran || guards[stepOf(insns, i)] || choosesSlot(insns, i) {
			continue
		}
		in := &insns[i]
		switch class := in.OpCode.Class(); {
		case class == asm.LdXClass, class.IsStore():
			in.Offset += 8
		case class.IsALU() && in.OpCode.Source() == asm.ImmSource:
			in.Constant++
		case class.IsJump() && in.OpCode.JumpOp() == asm.JEq:
			in.OpCode = in.OpCode.SetJumpOp(asm.JNE)
		case class.IsJump() && in.OpCode.JumpOp() == asm.JNE:
			in.OpCode = in.OpCode.SetJumpOp(asm.JEq)
		default:
			continue
		}
		return insns
	}
	return nil
}

// guards are the steps that do not affect consecutive calls in one thread.
// TestSkippedSides covers interrupts; TestTakenBuckets and its neighbours cover
// threads, recursion and missed returns.
var guards = map[string]bool{
	"no program of this function runs on this CPU": true, "counting goes on": true, "done": true,
	"a slot of the thread": true, "an element for the thread: is its bucket free?": true, "the thread has no bucket": true,
	"the topmost slot that is taken": true, "does its call go on?": true, "its return was missed": true, "further down": true,
}

// choosesSlot reports whether an instruction only selects one of the slots of
// an event: the sum of the slots is the same.
func choosesSlot(insns asm.Instructions, i int) bool {
	return slices.ContainsFunc(insns[max(i-2, 0):i], func(in asm.Instruction) bool {
		return in.IsBuiltinCall() && in.Constant == int64(asm.FnGetSmpProcessorId)
	})
}

// stepOf returns the step that an instruction belongs to.
func stepOf(insns asm.Instructions, i int) string {
	for ; i >= 0; i-- {
		if source := insns[i].Source(); source != nil {
			return source.String()
		}
	}
	return ""
}
