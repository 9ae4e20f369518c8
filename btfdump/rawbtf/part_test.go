package rawbtf_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/btfdump/rawbtf"
)

// raw returns the raw BTF of types.
func raw(t testing.TB, types ...btf.Type) []byte {
	b, err := btf.NewBuilder(types, nil)
	require.NoError(t, err)
	raw, err := b.Marshal(nil, nil)
	require.NoError(t, err)
	return raw
}

var (
	number = &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	leaf   = &btf.Struct{Name: "leaf", Size: 4, Members: []btf.Member{{Name: "n", Type: number}}}
	other  = &btf.Union{Name: "other", Size: 4, Members: []btf.Member{{Name: "n", Type: number}}}
)

// node returns a structure with a member of every kind and a pointer to itself.
func node() *btf.Struct {
	n := &btf.Struct{Name: "node", Size: 64}
	n.Members = []btf.Member{
		{Name: "next", Type: &btf.Pointer{Target: n}},
		{Name: "leaf", Type: &btf.Pointer{Target: &btf.Const{Type: leaf}}, Offset: 64},
		{Name: "other", Type: &btf.Pointer{Target: &btf.Typedef{Name: "other_t", Type: other}}, Offset: 128},
		{Name: "inner", Type: leaf, Offset: 192},
		{Name: "bits", Type: number, Offset: 224, BitfieldSize: 3},
		{Name: "call", Type: &btf.Pointer{Target: &btf.FuncProto{Return: number, Params: []btf.FuncParam{{Name: "o", Type: &btf.Pointer{Target: other}}}}}, Offset: 256},
		{Name: "list", Type: &btf.Array{Type: number, Index: number, Nelems: 4}, Offset: 320},
	}
	return n
}

func function(name string, params ...btf.FuncParam) *btf.Func {
	return &btf.Func{Name: name, Linkage: btf.GlobalFunc, Type: &btf.FuncProto{Return: number, Params: params}}
}

func TestTake(t *testing.T) {
	whole := raw(t, function("unwanted", btf.FuncParam{Name: "n", Type: number}),
		function("wanted", btf.FuncParam{Name: "node", Type: &btf.Pointer{Target: node()}}),
		&btf.Var{Name: "count", Linkage: btf.GlobalVar, Type: &btf.Typedef{Name: "atomic_t", Type: leaf}},
		&btf.Enum{Name: "mode", Size: 4, Values: []btf.EnumValue{{Name: "on", Value: 1}}},
		&btf.Enum{Size: 4, Values: []btf.EnumValue{{Name: "no"}, {Name: "perhaps", Value: 2}}},
		&btf.Enum{Name: "later", Size: 4, Values: []btf.EnumValue{{Name: "perhaps", Value: 3}}},
		&btf.Enum{Name: "other", Size: 4, Values: []btf.EnumValue{{Name: "never", Value: 3}}},
		&btf.Enum{Name: "wide", Size: 8, Values: []btf.EnumValue{{Name: "max", Value: 1 << 40}}})

	part, err := rawbtf.Take(whole, rawbtf.Want{Names: []string{"wanted", "count", "mode", "wide", "none"}, Members: []string{"leaf"}, Enumerators: []string{"perhaps", "none"}})
	require.NoError(t, err)
	var fn *btf.Func
	require.NoError(t, part.Types.TypeByName("wanted", &fn))
	require.Error(t, part.Types.TypeByName("unwanted", &fn))
	want := node()
	got := pointee(fn.Type.(*btf.FuncProto).Params[0].Type).(*btf.Struct)
	require.Equal(t, want.Size, got.Size)
	for i, m := range want.Members {
		g := got.Members[i]
		require.Equal(t, []any{m.Name, m.Offset, m.BitfieldSize}, []any{g.Name, g.Offset, g.BitfieldSize})
	}
	require.Same(t, got, pointee(got.Members[0].Type))
	require.Equal(t, leaf, pointee(got.Members[1].Type).(*btf.Const).Type, "its name was wanted")
	require.Equal(t, &btf.Fwd{Name: "other", Kind: btf.FwdUnion}, pointee(got.Members[2].Type).(*btf.Typedef).Type)
	require.Equal(t, leaf, got.Members[3].Type)
	call := pointee(got.Members[5].Type).(*btf.FuncProto)
	require.Equal(t, &btf.Fwd{Name: "other", Kind: btf.FwdUnion}, pointee(call.Params[0].Type))
	require.Equal(t, want.Members[6].Type, got.Members[6].Type)
	var mode, wide *btf.Enum
	require.NoError(t, part.Types.TypeByName("mode", &mode))
	require.NoError(t, part.Types.TypeByName("wide", &wide))
	require.Equal(t, "on", mode.Values[0].Name)
	require.Equal(t, []btf.EnumValue{{Name: "max", Value: 1 << 40}}, wide.Values)

	var enums []string // in the order of the whole
	for typ, err := range part.Types.All() {
		require.NoError(t, err)
		if e, ok := typ.(*btf.Enum); ok {
			enums = append(enums, e.Name+" "+e.Values[len(e.Values)-1].Name)
		}
	}
	require.Equal(t, []string{"mode on", " perhaps", "later perhaps", "wide max"}, enums)

	var count *btf.Var
	require.NoError(t, part.Types.TypeByName("count", &count))
	require.Equal(t, leaf, count.Type.(*btf.Typedef).Type)

	all, err := btf.LoadSpecFromReader(bytes.NewReader(whole))
	require.NoError(t, err)
	id, err := part.Types.TypeID(fn)
	require.NoError(t, err)
	same, err := all.TypeByID(part.ID(id))
	require.NoError(t, err)
	require.Equal(t, "wanted", same.TypeName())
	require.Zero(t, part.ID(1<<20))
}

func pointee(t btf.Type) btf.Type { return t.(*btf.Pointer).Target }

// TestTypedef checks that the parameters of a tracepoint are followed like those of
// a function.
func TestTypedef(t *testing.T) {
	proto := &btf.FuncProto{Return: number, Params: []btf.FuncParam{{Name: "l", Type: &btf.Pointer{Target: leaf}}}}
	part, err := rawbtf.Take(raw(t, &btf.Typedef{Name: "btf_trace_x", Type: &btf.Pointer{Target: proto}}), rawbtf.Want{Names: []string{"btf_trace_x"}})
	require.NoError(t, err)
	var td *btf.Typedef
	require.NoError(t, part.Types.TypeByName("btf_trace_x", &td))
	require.Equal(t, leaf, pointee(pointee(td.Type).(*btf.FuncProto).Params[0].Type))
}

// FuzzTake checks that any bytes give a part or an error, and that the functions of
// a part are those of the whole.
func FuzzTake(f *testing.F) {
	f.Add(raw(f, function("f", btf.FuncParam{Name: "node", Type: &btf.Pointer{Target: node()}})), "f", "leaf")
	f.Add(raw(f, node()), "node", "next")
	f.Fuzz(func(t *testing.T, raw []byte, name, member string) {
		part, err := rawbtf.Take(raw, rawbtf.Want{Names: []string{name}, Members: []string{member}})
		if err != nil {
			return
		}
		for typ, err := range part.Types.All() {
			if err != nil {
				return
			}
			require.LessOrEqual(t, len(typ.TypeName()), len(raw))
		}
	})
}

const vmlinux = "/sys/kernel/btf/vmlinux"

var usual = rawbtf.Want{Names: []string{"vfs_read", "tcp_sendmsg", "task_struct", "thread_union", "btf_trace_sched_switch"}, Members: []string{"f_path", "dentry", "sk"}}

// TestVmlinux checks that a part has as many types of a name as the whole, with as
// many members.
func TestVmlinux(t *testing.T) {
	raw, err := os.ReadFile(vmlinux)
	if err != nil {
		t.Skip(err)
	}
	part, err := rawbtf.Take(raw, usual)
	require.NoError(t, err)
	all, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
	require.NoError(t, err)
	for _, name := range usual.Names {
		want, _ := all.AnyTypesByName(name)
		got, _ := part.Types.AnyTypesByName(name)
		require.Len(t, got, len(want), name)
		for i := range want {
			id, err := all.TypeID(want[i])
			require.NoError(t, err)
			partID, err := part.Types.TypeID(got[i])
			require.NoError(t, err)
			require.Equal(t, id, part.ID(partID), name)
			wantSize, _ := btf.Sizeof(want[i])
			gotSize, _ := btf.Sizeof(got[i])
			require.Equal(t, wantSize, gotSize, name)
		}
	}
	n := 0
	for range part.Types.All() {
		n++
	}
	t.Logf("%d types", n)
}

func BenchmarkTake(b *testing.B) {
	raw, err := os.ReadFile(vmlinux)
	if err != nil {
		b.Skip(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rawbtf.Take(raw, usual); err != nil {
			b.Fatal(err)
		}
	}
}
