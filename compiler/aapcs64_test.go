package compiler

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

var tQuad = &btf.Int{Name: "__int128", Size: 16, Encoding: btf.Signed}

var tWide = &btf.Struct{Name: "wide", Size: 16, Members: []btf.Member{
	{Type: &btf.Union{Size: 16, Members: []btf.Member{{Name: "time", Type: tTime}, {Name: "full", Type: tQuad}}}},
}}

// onARM64 is the fixture kernel on arm64.
func onARM64(t testing.TB, f Features, more ...btf.Type) *Target {
	target := newTarget(t, f, more...)
	target.Arch = ARM64
	return target
}

// places says where arm64 has the words of each parameter: x0 or sp+8.
func places(t *testing.T, fn *btf.Func) [][]string {
	sig, err := place(fn.Type.(*btf.FuncProto), ARM64)
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
		ps = append(ps, param(string(rune('a'+i)), t))
	}
	return ps
}

// Where arguments are by the rules of AAPCS64 (6.8.2).
func TestPlaceAAPCS64(t *testing.T) {
	longs := slices.Repeat([]btf.Type{tLong}, 7)
	for name, tc := range map[string]struct {
		types []btf.Type
		want  [][]string
	}{
		"numbers": {append(longs, tInt, tInt, tU8), [][]string{
			{"x0"}, {"x1"}, {"x2"}, {"x3"}, {"x4"}, {"x5"}, {"x6"}, {"x7"}, {"sp+0"}, {"sp+8"}}},
		"two words":           {[]btf.Type{tInt, tTime, tInt}, [][]string{{"x0"}, {"x1", "x2"}, {"x3"}}},
		"not half on a stack": {append(longs[:7:7], tTime, tInt), [][]string{{"x0"}, {"x1"}, {"x2"}, {"x3"}, {"x4"}, {"x5"}, {"x6"}, {"sp+0", "sp+8"}, {"sp+16"}}},
		"a large record":      {[]btf.Type{tInt, tBig, tInt}, [][]string{{"x0"}, {"x1"}, {"x2"}}},
		"a packed record":     {[]btf.Type{tPacked, tInt}, [][]string{{"x0", "x1"}, {"x2"}}},
		"even registers":      {[]btf.Type{tInt, tQuad, tInt}, [][]string{{"x0"}, {"x2", "x3"}, {"x4"}}},
		"an even record":      {[]btf.Type{tInt, tWide, tInt}, [][]string{{"x0"}, {"x2", "x3"}, {"x4"}}},
		"an even place":       {append(longs[:7:7], tTime, tInt, tQuad), [][]string{{"x0"}, {"x1"}, {"x2"}, {"x3"}, {"x4"}, {"x5"}, {"x6"}, {"sp+0", "sp+8"}, {"sp+16"}, {"sp+32", "sp+40"}}},
	} {
		require.Equal(t, tc.want, places(t, function("f", tInt, params(tc.types...)...)), name)
	}
}

// A register's number says where it is in struct user_pt_regs.
func TestRegistersARM64(t *testing.T) {
	for i := range 31 {
		require.Equal(t, int16(8*i), ARM64.Registers["x"+strconv.Itoa(i)])
	}
	require.Len(t, ARM64.Registers, 31+len([]string{"lr", "sp", "pc", "pstate"}))
	require.Equal(t, []int16{ARM64.SP, ARM64.IP, ARM64.RetAddr.Reg},
		[]int16{ARM64.Registers["sp"], ARM64.Registers["pc"], ARM64.Registers["lr"]})
}

// Calls on arm64: arguments in registers and on the stack, records by value, of
// which a large one is the address of a copy, and what they return.
func TestCallsARM64(t *testing.T) {
	r := newRigOn(t, onARM64(t, withProbes), Options{}, Wishes{},
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

// The address of a result in memory is nowhere when the function returns.
func TestResultInMemoryARM64(t *testing.T) {
	target := onARM64(t, withProbes)
	require.Len(t, mustResolve(t, target, "large").Entry, 1)
	trace, err := spec.Parse("large(return)")
	require.NoError(t, err)
	_, err = Resolve(trace, target)
	require.EqualError(t, err, "large returns struct big in memory, and arm64 keeps its address only until the function begins\n"+
		"  large(return)\n        ^^^^^^\n  name arguments instead")
}

// Return probes that cannot tell calls apart are not taken.
func TestAttachARM64(t *testing.T) {
	target := onARM64(t, withSession)
	attach := mustResolve(t, target, "read(count, return == 3)").Attach
	require.Equal(t, []Kind{Kprobe, Kretprobe}, []Kind{attach.Entry, attach.Return})
	require.Equal(t, Kretprobe, mustResolve(t, target, "read(return)").Attach.Return)
	require.Equal(t, KprobeMulti, mustResolve(t, target, "read(count)").Attach.Entry)
	for _, kind := range []Kind{KprobeMulti, Session} {
		_, err := ResolveAll(parseAll(t, "read(return)"), target, Wishes{Attach: kind})
		require.EqualError(t, err, fmt.Sprintf("attach %s to read: on this architecture its return probes lack the stack pointer, which tells calls apart", kind))
	}
	target.Features = withTrampoline
	require.Equal(t, "fentry refuses argument big, which is struct big of 9000 bytes by value", mustResolve(t, target, "bybig").Attach.Reason)
}

// A kernel's types say of which architecture they are.
func TestArchOf(t *testing.T) {
	native, err := NativeArch()
	require.NoError(t, err)
	member := func(name string, offset btf.Bits) *btf.Struct {
		return &btf.Struct{Name: "pt_regs", Size: 400, Members: []btf.Member{{Name: name, Type: tUlong, Offset: 8 * offset}}}
	}
	user := &btf.Struct{Size: 272, Members: []btf.Member{
		{Name: "regs", Type: &btf.Array{Index: tUint, Type: tUlong, Nelems: 31}}, {Name: "pstate", Type: tUlong, Offset: 8 * 264},
	}}
	for _, tc := range []struct {
		regs btf.Type
		want *Arch
	}{
		{member("di", 112), AMD64},
		{&btf.Struct{Name: "pt_regs", Size: 336, Members: []btf.Member{{Type: &btf.Union{Size: 272, Members: []btf.Member{{Type: user}}}}}}, ARM64},
		{tBuf, native},
		{member("di", 16), nil}, // i386
		{member("a0", 80), nil}, // riscv64
	} {
		arch, err := ArchOf(newTarget(t, withProbes, tc.regs).Kernel)
		require.Equal(t, tc.want, arch)
		if tc.want == nil {
			require.EqualError(t, err, "the types are of an architecture whose registers ksnoop does not know: it knows amd64 and arm64, so give it the BTF of such a kernel")
		}
	}
}
