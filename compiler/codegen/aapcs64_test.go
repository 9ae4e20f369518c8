package codegen

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

var tQuad = &btf.Int{Name: "__int128", Size: 16, Encoding: btf.Signed}

var tWide = &btf.Struct{Name: "wide", Size: 16, Members: []btf.Member{
	{Type: &btf.Union{Size: 16, Members: []btf.Member{{Name: "time", Type: compilertest.Time}, {Name: "full", Type: tQuad}}}},
}}

// onARM64 returns the fixture kernel on arm64.
func onARM64(t testing.TB, f compiler.Features, more ...btf.Type) *compiler.Target {
	target := compilertest.NewTarget(t, f, more...)
	target.Arch = compiler.ARM64
	return target
}

// places returns the places of each parameter's words on arm64, such as x0 or
// sp+8.
func places(t *testing.T, fn *btf.Func) [][]string {
	sig, err := resolve.Place(fn.Type.(*btf.FuncProto), compiler.ARM64)
	require.NoError(t, err)
	var all [][]string
	for _, p := range sig.Params {
		var words []string
		for _, w := range p.Words {
			if w.Reg < 0 {
				words = append(words, fmt.Sprintf("sp+%d", w.Stack))
			} else {
				words = append(words, fmt.Sprintf("x%d", w.Reg/8))
			}
		}
		all = append(all, words)
	}
	return all
}

func params(types ...btf.Type) []btf.FuncParam {
	var ps []btf.FuncParam
	for i, t := range types {
		ps = append(ps, compilertest.Param(string(rune('a'+i)), t))
	}
	return ps
}

// Arguments are placed by the rules of AAPCS64 (6.8.2).
func TestPlaceAAPCS64(t *testing.T) {
	longs := slices.Repeat([]btf.Type{compilertest.Long}, 7)
	for name, tc := range map[string]struct {
		types []btf.Type
		want  [][]string
	}{
		"numbers": {append(longs, compilertest.Int, compilertest.Int, compilertest.U8), [][]string{
			{"x0"}, {"x1"}, {"x2"}, {"x3"}, {"x4"}, {"x5"}, {"x6"}, {"x7"}, {"sp+0"}, {"sp+8"}}},
		"two words":           {[]btf.Type{compilertest.Int, compilertest.Time, compilertest.Int}, [][]string{{"x0"}, {"x1", "x2"}, {"x3"}}},
		"not half on a stack": {append(longs[:7:7], compilertest.Time, compilertest.Int), [][]string{{"x0"}, {"x1"}, {"x2"}, {"x3"}, {"x4"}, {"x5"}, {"x6"}, {"sp+0", "sp+8"}, {"sp+16"}}},
		"a large record":      {[]btf.Type{compilertest.Int, compilertest.Big, compilertest.Int}, [][]string{{"x0"}, {"x1"}, {"x2"}}},
		"a packed record":     {[]btf.Type{tPacked, compilertest.Int}, [][]string{{"x0", "x1"}, {"x2"}}},
		"even registers":      {[]btf.Type{compilertest.Int, tQuad, compilertest.Int}, [][]string{{"x0"}, {"x2", "x3"}, {"x4"}}},
		"an even record":      {[]btf.Type{compilertest.Int, tWide, compilertest.Int}, [][]string{{"x0"}, {"x2", "x3"}, {"x4"}}},
		"an even place":       {append(longs[:7:7], compilertest.Time, compilertest.Int, tQuad), [][]string{{"x0"}, {"x1"}, {"x2"}, {"x3"}, {"x4"}, {"x5"}, {"x6"}, {"sp+0", "sp+8"}, {"sp+16"}, {"sp+32", "sp+40"}}},
	} {
		require.Equal(t, tc.want, places(t, compilertest.Function("f", compilertest.Int, params(tc.types...)...)), name)
	}
}

// A register's number determines its offset in struct user_pt_regs.
func TestRegistersARM64(t *testing.T) {
	for i := range 31 {
		require.Equal(t, int16(8*i), compiler.ARM64.Registers["x"+strconv.Itoa(i)])
	}
	require.Len(t, compiler.ARM64.Registers, 31+len([]string{"lr", "sp", "pc", "pstate"}))
	require.Equal(t, []int16{compiler.ARM64.SP, compiler.ARM64.IP, compiler.ARM64.RetAddr.Reg, compiler.ARM64.CallerFrame},
		[]int16{compiler.ARM64.Registers["sp"], compiler.ARM64.Registers["pc"], compiler.ARM64.Registers["lr"], compiler.ARM64.Registers["x29"]})
}

// Calls on arm64: arguments in registers and on the stack, structures by value (a
// large one is passed as the address of a copy), and results.
func TestCallsARM64(t *testing.T) {
	r := newRigOn(t, onARM64(t, compilertest.WithProbes), compiler.Options{}, resolve.Wishes{},
		"many(a, g, h->index)", "spill(t.tv_nsec, n)", "bybig(big->first, n)", "times(lhs, return.tv_nsec == 4)", "p read %x2 %lr", "r read $retval")
	dev := r.alloc(append(make([]byte, 16), le(int32(-3), uint64(0), uint32(0))...))
	r.do(call{fn: "many", args: []uint64{1, 2, 3, 4, 5, 6, 7, dev}, result: []uint64{0}})
	r.do(call{fn: "spill", args: []uint64{1, 2, 3, 4, 5, 60, 61, 7}})
	r.do(call{fn: "bybig", args: []uint64{r.alloc(append(le(int32(77)), make([]byte, 8996)...)), 5}})
	r.do(call{fn: "times", args: []uint64{1, 2, 0, 0}, result: []uint64{3, 4}})
	r.do(call{fn: "read", args: []uint64{0, 0, 9, 0}, result: []uint64{8}, caller: 0xffff})
	require.Equal(t, []string{
		"entry a=1 g=7 h->index=-3",
		"entry t.tv_nsec=61 n=7",
		"entry big->first=77 n=5",
		"call lhs=01000000000000000200000000000000 return.tv_nsec=4",
		"entry arg1=9 arg2=65535",
		"return arg1=8",
	}, r.shown())
}

// The address of a result in memory is lost when the function returns.
func TestResultInMemoryARM64(t *testing.T) {
	target := onARM64(t, compilertest.WithProbes)
	require.Len(t, mustResolve(t, target, "large").Entry, 1)
	trace, err := spec.Parse("large(return)")
	require.NoError(t, err)
	_, err = resolve.One(trace, target)
	require.EqualError(t, err, "large returns struct big in memory, and arm64 keeps its address only until the function begins\n"+
		"  large(return)\n        ^^^^^^\n  name arguments instead")
}

// The multi kinds follow returns as well.
func TestAttachARM64(t *testing.T) {
	target := onARM64(t, compilertest.WithKprobeSession)
	attach := mustResolve(t, target, "read(count, return == 3)").Attach
	require.Equal(t, []compiler.Kind{compiler.KprobeSession, compiler.KprobeSession}, []compiler.Kind{attach.Entry, attach.Return})
	require.Equal(t, compiler.KretprobeMulti, mustResolve(t, target, "read(return)").Attach.Return)
	require.Equal(t, compiler.KprobeMulti, mustResolve(t, target, "read(count)").Attach.Entry)
	target.Features = compilertest.WithTrampoline
	require.Equal(t, "fentry refuses argument big, which is struct big of 9000 bytes by value", mustResolve(t, target, "bybig").Attach.Reason)
}
