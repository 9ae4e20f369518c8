package compiler

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
)

var fixtureVoid = &btf.Void{}

// Types of the fixture kernel.
var (
	tInt   = &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	tUint  = &btf.Int{Name: "unsigned int", Size: 4}
	tLong  = &btf.Int{Name: "long int", Size: 8, Encoding: btf.Signed}
	tUlong = &btf.Int{Name: "long unsigned int", Size: 8}
	tU8    = &btf.Int{Name: "unsigned char", Size: 1}
	tChar  = &btf.Int{Name: "char", Size: 1, Encoding: btf.Signed}
	tBool  = &btf.Int{Name: "_Bool", Size: 1, Encoding: btf.Bool}
	tSizeT = &btf.Typedef{Name: "size_t", Type: tUlong}
	tMode  = &btf.Enum{Name: "mode", Size: 4, Values: []btf.EnumValue{{Name: "NONE", Value: 0}, {Name: "RESUME", Value: 1}}}
	tErr   = &btf.Enum{Name: "err", Size: 4, Values: []btf.EnumValue{{Name: "BAD", Value: 0xffffffff}, {Name: "OK", Value: 0}}}
	tTime  = &btf.Struct{Name: "timespec64", Size: 16, Members: []btf.Member{
		{Name: "tv_sec", Type: tLong}, {Name: "tv_nsec", Type: tLong, Offset: 64},
	}}
	tBig = &btf.Struct{Name: "big", Size: 9000, Members: []btf.Member{
		{Name: "first", Type: tInt}, {Name: "last", Type: tInt, Offset: 8 * 8996},
	}}
	tDev = &btf.Struct{Name: "dev", Size: 24, Members: []btf.Member{
		{Name: "name", Type: &btf.Array{Type: tChar, Index: tUint, Nelems: 16}},
		{Name: "index", Type: tInt, Offset: 128},
		{Name: "alias", Type: ptr(tChar), Offset: 192 - 64 + 64},
	}}
	tBuf = &btf.Struct{Name: "buf", Size: 64, Members: []btf.Member{
		{Name: "len", Type: tUint},
		{Name: "err", Type: tInt, Offset: 32},
		{Name: "dev", Type: ptr(tDev), Offset: 64},
		{Name: "type", Type: tU8, Offset: 128, BitfieldSize: 3},
		{Name: "delta", Type: tInt, Offset: 131, BitfieldSize: 7},
		{Name: "ready", Type: tBool, Offset: 144},
		{Name: "peek", Type: tInt, Offset: 160},
		{Type: &btf.Union{Size: 8, Members: []btf.Member{
			{Name: "owner", Type: ptr(tDev)}, {Name: "cookie", Type: tUlong},
		}}, Offset: 192},
		{Type: &btf.Struct{Size: 8, Members: []btf.Member{{Name: "hash", Type: tUint, Offset: 32}}}, Offset: 256},
		{Name: "stamp", Type: tTime, Offset: 320},
	}}
)

// commMember is where all kernels of the tests have the name of a thread.
var commMember = btf.Member{Name: "comm", Type: &btf.Array{Type: tChar, Index: tUint, Nelems: commSize}, Offset: 8 * fixtureComm}

const fixtureComm = 24

// tCB is a record of at most two words with parts of all kinds.
var tCB = &btf.Struct{Name: "cb", Size: 16, Members: []btf.Member{
	{Name: "flags", Type: tUint},
	{Name: "delta", Type: tInt, Offset: 32, BitfieldSize: 7},
	{Name: "mark", Type: tU8, Offset: 40},
	{Name: "dev", Type: ptr(tDev), Offset: 64},
}}

func init() { tDev.Size = 32; tDev.Members[2].Offset = 192 }

func ptr(t btf.Type) *btf.Pointer { return &btf.Pointer{Target: t} }

func function(name string, result btf.Type, params ...btf.FuncParam) *btf.Func {
	return &btf.Func{Name: name, Linkage: btf.StaticFunc, Type: &btf.FuncProto{Return: result, Params: params}}
}

func param(name string, t btf.Type) btf.FuncParam { return btf.FuncParam{Name: name, Type: t} }

func fixtureFunctions() []btf.Type {
	void := fixtureVoid
	return []btf.Type{
		&btf.Struct{Name: "task_struct", Size: 48, Members: []btf.Member{
			{Name: "flags", Type: tUlong}, {Name: "stack", Type: ptr(void), Offset: 64}, commMember,
		}},
		function("send", tInt, param("dev", ptr(tDev)), param("buf", ptr(tBuf))),
		function("read", tLong, param("buf", ptr(tBuf)), param("ubuf", ptr(tChar)), param("count", tSizeT), param("pos", ptr(tLong))),
		function("open", ptr(tBuf), param("dfd", tInt), param("path", ptr(&btf.Const{Type: tChar}))),
		function("work", tInt, param("mode", tMode), param("why", tErr), param("now", tBool)),
		function("many", tInt, param("a", tInt), param("b", tInt), param("c", tInt), param("d", tInt),
			param("e", tInt), param("f", tInt), param("g", tInt), param("h", ptr(tDev))),
		function("times", tTime, param("lhs", tTime), param("rhs", tTime)),
		function("spill", void, param("a", tLong), param("b", tLong), param("c", tLong), param("d", tLong),
			param("e", tLong), param("t", tTime), param("n", tInt)),
		function("large", tBig, param("x", tInt)),
		function("bybig", void, param("big", tBig), param("n", tInt)),
		function("print", tInt, param("fmt", ptr(&btf.Const{Type: tChar})), param("", void)),
		function("free", void, param("buf", ptr(tBuf)), param("data", ptr(void))),
		function("nothing", void),
		function("huge", void, param("big", ptr(tBig))),
		function("do_exit", void, param("code", tLong)),
		function("twin", void, param("a", tInt)),
		function("twice", void, param("a", tInt)),
		function("pair", void, param("a", tInt)),
		function("gone", void, param("a", tInt)),
		function("cloned", void, param("a", tInt)),
		function("visit", void, param("when", tTime), param("page", tCB), param("word", tUlong)),
		&btf.Typedef{Name: "btf_trace_tick", Type: ptr(&btf.FuncProto{Return: void, Params: []btf.FuncParam{
			param("", ptr(void)), param("", tInt), param("", ptr(tBuf)),
		}})},
		function("__bpf_trace_tick", void, param("__data", ptr(void)), param("cpu", tInt), param("buf", ptr(tBuf))),
		function("callback", void, param("fn", ptr(&btf.FuncProto{Return: void})), param("fwd", ptr(&btf.Fwd{Name: "secret"}))),
	}
}

const fixtureSymbols = `ffffffff81000000 T send
ffffffff81000100 T read
ffffffff81000200 T open
ffffffff81000300 T work
ffffffff81000400 T many
ffffffff81000500 T times
ffffffff81000600 T spill
ffffffff81000700 T large
ffffffff81000800 T print
ffffffff81000900 T free
ffffffff81000a00 T nothing
ffffffff81000b00 T huge
ffffffff81000c00 T do_exit
ffffffff81000d00 t twin
ffffffff81000e00 t twin
ffffffff81000f00 t cloned.isra.0
ffffffff81001000 T assembly
ffffffff81001100 D jiffies
ffffffff81001200 T bybig
ffffffff81001300 T callback
ffffffff81001400 T twice
ffffffff81001500 T visit
ffffffff81001a00 T dozen
ffffffff81001b00 T void_dozen
ffffffff81001c00 T either
ffffffff81001600 t __bpf_trace_tick
ffffffff81001700 D __per_cpu_offset
ffffffff81001800 t pair
ffffffff81001900 t pair
ffffffffc0000000 t dummy_xmit	[dummy]
`

// newTarget is the fixture kernel with these features.
func newTarget(t testing.TB, f Features, more ...btf.Type) *Target {
	b, err := btf.NewBuilder(append(fixtureFunctions(), more...), nil)
	require.NoError(t, err)
	raw, err := b.Marshal(nil, nil)
	require.NoError(t, err)
	types, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
	require.NoError(t, err)
	symbols, err := kallsyms.Read(strings.NewReader(fixtureSymbols), nil)
	require.NoError(t, err)
	return &Target{
		Kernel: types, Symbols: symbols, Arch: AMD64, Features: f,
		Module: func(string) (*btf.Spec, error) { return nil, ErrNoModuleBTF },
	}
}

// The back ends that must agree.
var (
	withTrampoline = Features{Trampoline: true, TrampolineWords: 12, TrampolineStructs: true, CurrentTask: true, RuntimeAlloc: true}
	withProbes     = Features{}
	withMulti      = Features{KprobeMulti: true, ReturnsUnlimited: true, RuntimeAlloc: true}
	withSession    = Features{KprobeMulti: true, ReturnsUnlimited: true, RuntimeAlloc: true, SessionIsReturn: 77}
	withBothSides  = Features{KprobeMulti: true, ReturnsUnlimited: true, RuntimeAlloc: true, SessionIsReturn: 77, CancelRepeats: true}
)

func mustResolve(t testing.TB, target *Target, text string) *Probe {
	trace, err := spec.Parse(text)
	require.NoError(t, err)
	p, err := Resolve(trace, target)
	require.NoError(t, err)
	return p
}

func le(values ...any) []byte {
	var b bytes.Buffer
	for _, v := range values {
		_ = binary.Write(&b, binary.LittleEndian, v) // never fails on a buffer
	}
	return b.Bytes()
}
