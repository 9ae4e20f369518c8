package btfpart

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
)

// raw is the BTF of types.
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

// node is a record with one of everything, and a pointer to itself.
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
		&btf.Enum{Name: "mode", Size: 4, Values: []btf.EnumValue{{Name: "on", Value: 1}}},
		&btf.Enum{Name: "wide", Size: 8, Values: []btf.EnumValue{{Name: "max", Value: 1 << 40}}})

	part, err := Take(whole, Want{Names: []string{"wanted", "mode", "wide", "none"}, Members: []string{"leaf"}})
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

// A tracepoint's parameters are followed as a function's are.
func TestTypedef(t *testing.T) {
	proto := &btf.FuncProto{Return: number, Params: []btf.FuncParam{{Name: "l", Type: &btf.Pointer{Target: leaf}}}}
	part, err := Take(raw(t, &btf.Typedef{Name: "btf_trace_x", Type: &btf.Pointer{Target: proto}}), Want{Names: []string{"btf_trace_x"}})
	require.NoError(t, err)
	var td *btf.Typedef
	require.NoError(t, part.Types.TypeByName("btf_trace_x", &td))
	require.Equal(t, leaf, pointee(pointee(td.Type).(*btf.FuncProto).Params[0].Type))
}

func TestRefused(t *testing.T) {
	good := raw(t, function("f", btf.FuncParam{Name: "node", Type: &btf.Pointer{Target: node()}}))
	broken := func(at int, b byte) []byte {
		bad := bytes.Clone(good)
		bad[at] = b
		return bad
	}
	for _, tc := range []struct {
		raw  []byte
		want string
	}{
		{nil, "there is no little-endian BTF"},
		{broken(0, 0xeb), "there is no little-endian BTF"},
		{good[:len(good)-1], "the BTF is broken"},
		{broken(len(good)-1, 'x'), "the BTF is broken"},
		{broken(fileHeader+7, 31), "the BTF has a type of the unknown kind 31"},
	} {
		_, err := Take(tc.raw, Want{Names: []string{"f"}})
		require.EqualError(t, err, tc.want)
	}
}

// FuzzTake: any bytes give a part or an error, and functions of a part are those
// of the whole.
func FuzzTake(f *testing.F) {
	f.Add(raw(f, function("f", btf.FuncParam{Name: "node", Type: &btf.Pointer{Target: node()}})), "f", "leaf")
	f.Add(raw(f, node()), "node", "next")
	f.Fuzz(func(t *testing.T, raw []byte, name, member string) {
		part, err := Take(raw, Want{Names: []string{name}, Members: []string{member}})
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

var usual = Want{Names: []string{"vfs_read", "tcp_sendmsg", "task_struct", "thread_union", "btf_trace_sched_switch"}, Members: []string{"f_path", "dentry", "sk"}}

// The part has as many types of a name as the whole, with as many members.
func TestVmlinux(t *testing.T) {
	raw, err := os.ReadFile(vmlinux)
	if err != nil {
		t.Skip(err)
	}
	part, err := Take(raw, usual)
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

// The names are those of all types.
func TestNames(t *testing.T) {
	data := raw(t, node(), function("first"), function("second"), &btf.Typedef{Name: "word", Type: &btf.Int{Name: "int", Size: 4}},
		&btf.Union{Name: "either", Size: 4}, &btf.Enum{Name: "color", Size: 4, Values: []btf.EnumValue{{Name: "red"}}})
	for kind, want := range map[string][]string{
		"func": {"first", "second"}, "struct": {"node"}, "union": {"either"}, "enum": {"color"}, "": {"word", "int"},
	} {
		names, err := Names(data, kind)
		require.NoError(t, err)
		require.Subset(t, slices.Collect(names), want, kind)
	}
	for name := range must(Names(data, "func")) {
		require.Equal(t, "first", name)
		break
	}
	_, err := Names(data[:len(data)-1], "")
	require.Error(t, err)
}

// Decoding everything finds the same names.
func TestNamesOfVmlinux(t *testing.T) {
	data, err := os.ReadFile(vmlinux)
	if err != nil {
		t.Skip(err)
	}
	types, err := btf.LoadSpecFromReader(bytes.NewReader(data))
	require.NoError(t, err)
	want := map[string][]string{}
	for typ, err := range types.All() {
		require.NoError(t, err)
		kind := ""
		switch typ.(type) {
		case *btf.Func:
			kind = "func"
		case *btf.Struct:
			kind = "struct"
		case *btf.Union:
			kind = "union"
		case *btf.Enum:
			kind = "enum"
		case *btf.Typedef, *btf.Int, *btf.Float:
		default:
			continue
		}
		want[kind] = append(want[kind], typ.TypeName())
	}
	for kind := range want {
		require.Equal(t, want[kind], slices.Collect(must(Names(data, kind))), kind)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func BenchmarkTake(b *testing.B) {
	raw, err := os.ReadFile(vmlinux)
	if err != nil {
		b.Skip(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Take(raw, usual); err != nil {
			b.Fatal(err)
		}
	}
}
