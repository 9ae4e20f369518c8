package compiler

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/require"
)

// The comparison with the reference finds programs that are wrong in one of the
// instructions that run. Many do not matter: an R0 that nobody looks at, a byte
// more in a scratch buffer, a bit that none of the calls has.
func TestSemanticsFindsMutants(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	mutants, found := 0, 0
	for seed := range uint64(40) {
		k, err := newKernel(rand.New(rand.NewPCG(seed, 1)))
		require.NoError(t, err)
		x := newExperiment(t, k, k.funcs[0])
		unit := x.compile(t, backEnd{AMD64, withTrampoline}, &tally{})
		if unit == nil {
			continue
		}
		tr := x.on(t, unit, AMD64)
		require.NoError(t, tr.run())
		for _, name := range slices.Sorted(maps.Keys(unit.Collection.Programs)) {
			ps := unit.Collection.Programs[name]
			right := ps.Instructions
			for range 5 {
				ps.Instructions = mutant(rnd, right, tr.decoded[&right[0]])
				wrong := x.on(t, unit, AMD64)
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

// mutant changes one instruction of those that ran.
func mutant(rnd *rand.Rand, insns asm.Instructions, ran []instruction) asm.Instructions {
	insns = slices.Clone(insns)
	for {
		i := rnd.IntN(len(insns))
		if !ran[i].ran || guards[stepOf(insns, i)] {
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
}

// guards are the steps that do nothing to calls that come one after the other:
// TestSkippedSides has interrupts.
var guards = map[string]bool{
	"no program of this function runs on this CPU": true, "counting goes on": true, "done": true,
}

// stepOf is the step that an instruction belongs to.
func stepOf(insns asm.Instructions, i int) string {
	for ; i >= 0; i-- {
		if source := insns[i].Source(); source != nil {
			return source.String()
		}
	}
	return ""
}
