// Package compilertest provides a kernel of BTF literals for tests of the
// compiler's phases.
package compilertest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// Void is the type void.
var Void = &btf.Void{}

// Types of the fixture kernel.
var (
	Int   = &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	Uint  = &btf.Int{Name: "unsigned int", Size: 4}
	Long  = &btf.Int{Name: "long int", Size: 8, Encoding: btf.Signed}
	Ulong = &btf.Int{Name: "long unsigned int", Size: 8}
	U8    = &btf.Int{Name: "unsigned char", Size: 1}
	Char  = &btf.Int{Name: "char", Size: 1, Encoding: btf.Signed}
	Bool  = &btf.Int{Name: "_Bool", Size: 1, Encoding: btf.Bool}
	SizeT = &btf.Typedef{Name: "size_t", Type: Ulong}
	Mode  = &btf.Enum{Name: "mode", Size: 4, Values: []btf.EnumValue{{Name: "NONE", Value: 0}, {Name: "RESUME", Value: 1}}}
	Err   = &btf.Enum{Name: "err", Size: 4, Values: []btf.EnumValue{{Name: "BAD", Value: 0xffffffff}, {Name: "OK", Value: 0}}}
	Time  = &btf.Struct{Name: "timespec64", Size: 16, Members: []btf.Member{
		{Name: "tv_sec", Type: Long}, {Name: "tv_nsec", Type: Long, Offset: 64},
	}}
	Big = &btf.Struct{Name: "big", Size: 9000, Members: []btf.Member{
		{Name: "first", Type: Int}, {Name: "last", Type: Int, Offset: 8 * 8996},
	}}
	Dev = &btf.Struct{Name: "dev", Size: 24, Members: []btf.Member{
		{Name: "name", Type: &btf.Array{Type: Char, Index: Uint, Nelems: 16}},
		{Name: "index", Type: Int, Offset: 128},
		{Name: "alias", Type: Ptr(Char), Offset: 192 - 64 + 64},
	}}
	Buf = &btf.Struct{Name: "buf", Size: 64, Members: []btf.Member{
		{Name: "len", Type: Uint},
		{Name: "err", Type: Int, Offset: 32},
		{Name: "dev", Type: Ptr(Dev), Offset: 64},
		{Name: "type", Type: U8, Offset: 128, BitfieldSize: 3},
		{Name: "delta", Type: Int, Offset: 131, BitfieldSize: 7},
		{Name: "ready", Type: Bool, Offset: 144},
		{Name: "peek", Type: Int, Offset: 160},
		{Type: &btf.Union{Size: 8, Members: []btf.Member{
			{Name: "owner", Type: Ptr(Dev)}, {Name: "cookie", Type: Ulong},
		}}, Offset: 192},
		{Type: &btf.Struct{Size: 8, Members: []btf.Member{{Name: "hash", Type: Uint, Offset: 32}}}, Offset: 256},
		{Name: "stamp", Type: Time, Offset: 320},
	}}
)

// CommMember is the member of task_struct with the thread's name, in all
// kernels of the tests.
var CommMember = btf.Member{Name: "comm", Type: &btf.Array{Type: Char, Index: Uint, Nelems: compiler.CommSize}, Offset: 8 * CommOffset}

// CommOffset is the offset of that member in bytes.
const CommOffset = 24

// ParentOffset is the offset in bytes of the member of task_struct with the parent,
// which precedes the one with the id of the process. TaskSize is the size of
// task_struct.
const (
	ParentOffset = 40
	TaskSize     = 56
)

// CB is a structure of at most two words with members of all kinds.
var CB = &btf.Struct{Name: "cb", Size: 16, Members: []btf.Member{
	{Name: "flags", Type: Uint},
	{Name: "delta", Type: Int, Offset: 32, BitfieldSize: 7},
	{Name: "mark", Type: U8, Offset: 40},
	{Name: "dev", Type: Ptr(Dev), Offset: 64},
}}

func init() { Dev.Size = 32; Dev.Members[2].Offset = 192 }

// Ptr returns a pointer type to t.
func Ptr(t btf.Type) *btf.Pointer { return &btf.Pointer{Target: t} }

// Function returns a function of the fixture kernel.
func Function(name string, result btf.Type, params ...btf.FuncParam) *btf.Func {
	return &btf.Func{Name: name, Linkage: btf.StaticFunc, Type: &btf.FuncProto{Return: result, Params: params}}
}

// Param returns a parameter of a function.
func Param(name string, t btf.Type) btf.FuncParam { return btf.FuncParam{Name: name, Type: t} }

// TaskStruct returns the type of a thread in all kernels of the tests.
func TaskStruct() *btf.Struct {
	task := &btf.Struct{Name: "task_struct", Size: TaskSize}
	task.Members = []btf.Member{
		{Name: "flags", Type: Ulong}, {Name: "stack", Type: Ptr(Void), Offset: 64}, CommMember,
		{Name: "real_parent", Type: Ptr(task), Offset: 8 * ParentOffset}, {Name: "tgid", Type: Int, Offset: 8*ParentOffset + 64},
	}
	return task
}

// iterMeta is the structure that describes an iteration to the programs of iterators.
var iterMeta = &btf.Struct{Name: "bpf_iter_meta", Size: 24, Members: []btf.Member{
	{Name: "seq", Type: Ptr(&btf.Struct{Name: "seq_file"})}, {Name: "session_id", Type: Ulong, Offset: 64}, {Name: "seq_num", Type: Ulong, Offset: 128},
}}

func fixtureFunctions() []btf.Type {
	void := Void
	return []btf.Type{
		TaskStruct(),
		Function("send", Int, Param("dev", Ptr(Dev)), Param("buf", Ptr(Buf))),
		Function("read", Long, Param("buf", Ptr(Buf)), Param("ubuf", Ptr(Char)), Param("count", SizeT), Param("pos", Ptr(Long))),
		Function("open", Ptr(Buf), Param("dfd", Int), Param("path", Ptr(&btf.Const{Type: Char}))),
		Function("work", Int, Param("mode", Mode), Param("why", Err), Param("now", Bool)),
		Function("many", Int, Param("a", Int), Param("b", Int), Param("c", Int), Param("d", Int),
			Param("e", Int), Param("f", Int), Param("g", Int), Param("h", Ptr(Dev))),
		Function("times", Time, Param("lhs", Time), Param("rhs", Time)),
		Function("spill", void, Param("a", Long), Param("b", Long), Param("c", Long), Param("d", Long),
			Param("e", Long), Param("t", Time), Param("n", Int)),
		Function("large", Big, Param("x", Int)),
		Function("bybig", void, Param("big", Big), Param("n", Int)),
		Function("print", Int, Param("fmt", Ptr(&btf.Const{Type: Char})), Param("", void)),
		Function("free", void, Param("buf", Ptr(Buf)), Param("data", Ptr(void))),
		Function("nothing", void),
		Function("huge", void, Param("big", Ptr(Big))),
		Function("do_exit", void, Param("code", Long)),
		Function("twin", void, Param("a", Int)),
		Function("twice", void, Param("a", Int)),
		Function("pair", void, Param("a", Int)),
		Function("gone", void, Param("a", Int)),
		Function("cloned", void, Param("a", Int)),
		Function("visit", void, Param("when", Time), Param("page", CB), Param("word", Ulong)),
		&btf.Typedef{Name: "btf_trace_tick", Type: Ptr(&btf.FuncProto{Return: void, Params: []btf.FuncParam{
			Param("", Ptr(void)), Param("", Int), Param("", Ptr(Buf)),
		}})},
		Function("__bpf_trace_tick", void, Param("__data", Ptr(void)), Param("cpu", Int), Param("buf", Ptr(Buf))),
		Function("bpf_iter_buf", Int, Param("meta", Ptr(iterMeta)), Param("buf", Ptr(Buf)), Param("fd", Uint)),
		Function("bpf_iter_ksym", Int, Param("meta", Ptr(iterMeta)), Param("ksym", Ptr(Dev))),
		Function("bpf_iter_map_elem", Int, Param("meta", Ptr(iterMeta)), Param("map", Ptr(Dev)), Param("key", Ptr(void))),
		Function("bpf_iter_get_info", Ptr(Dev), Param("meta", Ptr(iterMeta)), Param("in_stop", Bool)),
		Function("callback", void, Param("fn", Ptr(&btf.FuncProto{Return: void})), Param("fwd", Ptr(&btf.Fwd{Name: "secret"}))),
	}
}

// Symbols is the fixture kernel's symbol table, as /proc/kallsyms has it.
const Symbols = `0000000000000000 D __per_cpu_start
0000000000001000 D local
0000000000002000 D __per_cpu_end
ffffffff81000000 T send
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
ffffffff81001e00 T socket
ffffffff81001e10 T do_sys_open
ffffffff81001e20 T marked
ffffffff81001e30 T product
ffffffff81001600 t __bpf_trace_tick
ffffffff81001700 D __per_cpu_offset
ffffffff81001800 t pair
ffffffff81001900 t pair
ffffffffc0000000 t dummy_xmit	[dummy]
`

// NewTarget returns the fixture kernel with the given features.
func NewTarget(t testing.TB, f compiler.Features, more ...btf.Type) *compiler.Target {
	b, err := btf.NewBuilder(append(fixtureFunctions(), more...), nil)
	require.NoError(t, err)
	raw, err := b.Marshal(nil, nil)
	require.NoError(t, err)
	types, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
	require.NoError(t, err)
	symbols, err := kallsyms.Read(strings.NewReader(Symbols), nil)
	require.NoError(t, err)
	return &compiler.Target{
		Kernel: types, Symbols: symbols, Arch: compiler.AMD64, Features: f,
		Module: func(string) (*btf.Spec, error) { return nil, compiler.ErrNoModuleBTF },
	}
}

// These are the features of kernels on which generated programs must agree.
var (
	WithTrampoline    = compiler.Features{Trampoline: true, TrampolineWords: 12, TrampolineStructs: true, CurrentTask: true, FuncArg: true, CountsSkipped: true, CompareExchange: true, RuntimeAlloc: true}
	WithoutFuncArg    = compiler.Features{Trampoline: true, TrampolineWords: 12, TrampolineStructs: true, CurrentTask: true, RuntimeAlloc: true}
	WithProbes        = compiler.Features{}
	WithMulti         = compiler.Features{CPUs: 6, KprobeMulti: true, ReturnsUnlimited: true, RuntimeAlloc: true}
	WithKprobeSession = compiler.Features{CPUs: 2, KprobeMulti: true, ReturnsUnlimited: true, RuntimeAlloc: true, SessionIsReturn: 77}
	WithBothSides     = compiler.Features{KprobeMulti: true, ReturnsUnlimited: true, RuntimeAlloc: true, SessionIsReturn: 77, CancelRepeats: true}
)

// ParseAll parses specs and kprobe_events lines, one from each argument.
func ParseAll(t *testing.T, lines ...string) []*spec.Trace {
	var traces []*spec.Trace
	for _, line := range lines {
		trace, err := kprobe.ParseAny(line)
		require.NoError(t, err)
		traces = append(traces, trace)
	}
	return traces
}
