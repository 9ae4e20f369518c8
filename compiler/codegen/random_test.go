package codegen

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// FuzzPredicate tests a member of random type, place and content. It compares
// the result of generated code with an evaluation bit by bit.
func FuzzPredicate(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		m := randomMember(rnd)
		record := &btf.Struct{Name: "random", Size: 16, Members: []btf.Member{m.member}}
		fn := compilertest.Function("probe_random", &btf.Void{}, compilertest.Param("p", compilertest.Ptr(record)))
		data := make([]byte, 16)
		for i := range data {
			data[i] = byte(rnd.Uint32())
		}
		if rnd.IntN(4) == 0 {
			clear(data)
		}
		value := m.evaluate(data)
		constant := m.randomConstant(rnd, value)
		op := spec.Op(1 + rnd.IntN(6))
		text := fmt.Sprintf("probe_random(p->m %v %v)", op, constant)
		for _, features := range []compiler.Features{compilertest.WithTrampoline, compilertest.WithProbes} {
			checkPredicate(t, features, fn, text, data, value, holds(op, value.Cmp(constant)))
		}
	})
}

func checkPredicate(t *testing.T, f compiler.Features, fn *btf.Func, text string, data []byte, value *big.Int, want bool) {
	target := compilertest.NewTarget(t, f, fn)
	target.Symbols = nil
	trace, err := spec.Parse(text)
	require.NoError(t, err)
	p, err := resolve.One(trace, target)
	if err != nil {
		require.Contains(t, err.Error(), "hold", text) // the comparison always or never holds
		return
	}
	unit, err := generate([]*compiler.Probe{p}, compiler.Options{RingBytes: 4096})
	require.NoError(t, err)
	r := withMachine(t, unit, compiler.AMD64)
	r.do(call{args: []uint64{r.alloc(data)}})
	shown := r.shown()
	if !want {
		require.Empty(t, shown, text)
		return
	}
	require.Equal(t, []string{fmt.Sprintf("entry p->m=%v", value)}, shown, "%s of % x", text, data)
}

// randomScalar is a member with its place in bits.
type randomScalar struct {
	member       btf.Member
	offset, bits uint
	signed       bool
}

func randomMember(rnd *rand.Rand) randomScalar {
	size := uint(1) << rnd.IntN(4)
	signed := rnd.IntN(2) == 0
	integer := &btf.Int{Name: "number", Size: uint32(size)}
	if signed {
		integer.Encoding = btf.Signed
	}
	m := randomScalar{bits: 8 * size, signed: signed}
	m.offset = 8 * size * uint(rnd.IntN(int(16/size)))
	m.member = btf.Member{Name: "m", Type: integer, Offset: btf.Bits(m.offset)}
	if rnd.IntN(2) == 0 { // a bitfield anywhere in its unit
		m.bits = 1 + uint(rnd.IntN(int(8*size)))
		m.offset += uint(rnd.IntN(int(8*size - m.bits + 1)))
		m.member.Offset, m.member.BitfieldSize = btf.Bits(m.offset), btf.Bits(m.bits)
	}
	return m
}

// evaluate reads the member bit by bit.
func (m randomScalar) evaluate(data []byte) *big.Int {
	v := new(big.Int)
	for i := range m.bits {
		at := m.offset + i
		v.SetBit(v, int(i), uint(data[at/8]>>(at%8)&1))
	}
	if m.signed && v.Bit(int(m.bits-1)) == 1 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), m.bits))
	}
	return v
}

// randomConstant returns a constant that is often near the value, and always
// fits the type.
func (m randomScalar) randomConstant(rnd *rand.Rand, value *big.Int) *big.Int {
	c := new(big.Int).Add(value, big.NewInt(int64(rnd.IntN(3)-1)))
	if rnd.IntN(3) == 0 {
		c.SetUint64(rnd.Uint64())
		c.Rsh(c, 64-m.bits)
	}
	lo, hi := new(big.Int), new(big.Int).Lsh(big.NewInt(1), m.bits)
	if m.signed {
		hi.Rsh(hi, 1)
		lo.Neg(hi)
	}
	if c.Cmp(lo) < 0 || c.Cmp(hi) >= 0 {
		return value
	}
	return c
}

// holds reports whether op holds for the result cmp of a comparison.
func holds(op spec.Op, cmp int) bool {
	switch op {
	case spec.Eq:
		return cmp == 0
	case spec.Ne:
		return cmp != 0
	case spec.Lt:
		return cmp < 0
	case spec.Le:
		return cmp <= 0
	case spec.Gt:
		return cmp > 0
	}
	return cmp >= 0
}
