package rawbtf

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
)

// index returns an index of the types in raw. It fails the test if it cannot.
func index(t testing.TB, raw []byte, base *Types) *Types {
	types, err := Index(raw, base)
	require.NoError(t, err)
	return types
}

// kindsOf has the kinds for each word that C puts before names.
var kindsOf = map[string][]Kind{"func": {Func}, "struct": {Struct}, "union": {Union}, "enum": {Enum, Enum64}, "": {Typedef, Int, Float}}

func TestNamed(t *testing.T) {
	types := index(t, raw(t, node(), function("first"), function("second"), &btf.Typedef{Name: "word", Type: &btf.Int{Name: "int", Size: 4}},
		&btf.Union{Name: "either", Size: 4}, &btf.Enum{Name: "color", Size: 4, Values: []btf.EnumValue{{Name: "red"}}}), nil)
	for kind, want := range map[string][]string{
		"func": {"first", "second"}, "struct": {"node"}, "union": {"either"}, "enum": {"color"}, "": {"word", "int"},
	} {
		require.Subset(t, slices.Collect(maps.Values(maps.Collect(types.Named("", kindsOf[kind]...)))), want, kind)
	}
	for _, name := range types.Named("", Func) {
		require.Equal(t, "first", name)
		break
	}
	for id, name := range types.Named("sec", Func) {
		require.Equal(t, "second", name)
		require.Equal(t, Func, types.Kind(id))
		require.Equal(t, "second", types.Name(id))
	}
	require.Zero(t, types.Find("sec", Func))
	require.Zero(t, types.Find("second", Struct))
}

func TestTaking(t *testing.T) {
	param := func(typ btf.Type) btf.FuncParam { return btf.FuncParam{Name: "p", Type: typ} }
	toLeaf := &btf.Pointer{Target: leaf}
	base := raw(t, function("number", param(number)), function("value", param(leaf)), function("union", param(&btf.Pointer{Target: other})),
		function("twice", param(number), param(toLeaf)), function("far", param(&btf.Pointer{Target: toLeaf})),
		function("hidden", param(&btf.Typedef{Name: "leaf_p", Type: &btf.Pointer{Target: &btf.Const{Type: &btf.Typedef{Name: "leaf_t", Type: leaf}}}})),
		function("none"), &btf.Var{Name: "leaves", Linkage: btf.GlobalVar, Type: toLeaf})
	types := index(t, base, nil)
	var names []string
	for _, id := range types.Taking("leaf") {
		names = append(names, types.Name(id))
	}
	require.Equal(t, []string{"twice", "hidden"}, names)
	require.Empty(t, types.Taking("node"))
	require.Empty(t, types.Taking(""))
}

func TestWithEnumerator(t *testing.T) {
	enum := func(name string, size uint32, values ...string) *btf.Enum {
		e := &btf.Enum{Name: name, Size: size}
		for _, v := range values {
			e.Values = append(e.Values, btf.EnumValue{Name: v})
		}
		return e
	}
	types := index(t, raw(t, enum("a", 4, "one", "two"), number, enum("", 4, "three", "one"), enum("b", 8, "one"), enum("one", 4, "ones")), nil)
	require.Equal(t, []btf.TypeID{1, 3, 4}, types.WithEnumerator("one"))
	require.Equal(t, []btf.TypeID{3}, types.WithEnumerator("three"))
	require.Empty(t, types.WithEnumerator("on"))
	require.Empty(t, types.WithEnumerator(""))
}

func TestTypes(t *testing.T) {
	modes := &btf.Enum{Name: "mode", Size: 4, Values: []btf.EnumValue{{Name: "off"}, {Name: "on", Value: 1}}}
	holder := &btf.Struct{Name: "holder", Size: 24, Members: []btf.Member{
		{Name: "node", Type: &btf.Const{Type: &btf.Pointer{Target: &btf.Volatile{Type: node()}}}},
		{Type: &btf.Union{Size: 8, Members: []btf.Member{{Name: "mode", Type: modes}, {Name: "all", Type: &btf.Array{Type: leaf, Index: number, Nelems: 2}}}}, Offset: 64},
		{Name: "alias", Type: &btf.Typedef{Name: "alias_t", Type: leaf}, Offset: 128},
		{Name: "any", Type: &btf.Pointer{Target: &btf.Void{}}, Offset: 192},
	}}
	types := index(t, raw(t, holder, function("f", btf.FuncParam{Name: "h", Type: &btf.Pointer{Target: holder}})), nil)
	id := types.Find("holder", Struct)
	have := map[string]string{}
	for _, f := range types.Members(id) {
		have[f.Name] = types.CName(f.Type)
	}
	require.Equal(t, map[string]string{"node": "struct node *", "mode": "enum mode", "all": "struct leaf[]", "alias": "alias_t", "any": "void *"}, have)
	require.Equal(t, []Field{{"off", 0}, {"on", 0}}, types.Fields(types.Find("mode", Enum)))
	fn := types.Find("f", Func)
	proto := types.Target(fn)
	require.Equal(t, FuncProto, types.Kind(proto))
	require.Equal(t, "int", types.CName(types.Target(proto)))
	params := types.Fields(proto)
	require.Equal(t, id, types.Target(params[0].Type))
	members := types.Fields(id)
	require.Equal(t, "struct leaf", types.CName(types.Underlying(members[2].Type)))
	require.Equal(t, 5, types.Decoded, "holder twice, its union, the enum and the prototype")
	require.Zero(t, types.Kind(1<<20))
	require.Nil(t, types.Fields(1<<20))
	require.Nil(t, types.Fields(fn))
	require.Zero(t, types.Target(types.Find("int", Int)))
}

// TestModule checks that the types and names of a module follow those of its base.
func TestModule(t *testing.T) {
	b, err := btf.NewBuilder([]btf.Type{node(), function("base")}, nil)
	require.NoError(t, err)
	vmlinux, err := b.Marshal(nil, nil)
	require.NoError(t, err)
	w := newFile()
	w.strings = nil
	base := index(t, vmlinux, nil)
	first := uint32(len(base.wire.offsets))
	text := base.baseStrings() + uint32(len(base.wire.strings))
	w.strings = []byte("\x00ext_open\x00")
	w.add(text+1, Typedef, 0, uint32(base.Find("node", Struct)))
	w.add(0, Pointer, 0, first)
	types := index(t, w.bytes(), base)
	id := types.Find("ext_open", Typedef)
	require.Equal(t, btf.TypeID(first), id)
	require.Equal(t, "struct node", types.CName(types.Underlying(id)))
	require.Equal(t, id, types.Target(id+1))
	require.Equal(t, "ext_open *", types.CName(id+1))
	require.Equal(t, base.Find("base", Func), types.Find("base", Func))
	require.Zero(t, types.Kind(id+2))
}

// TestBigEndian checks that types in the other byte order give the same index.
func TestBigEndian(t *testing.T) {
	little := raw(t, node(), function("f", btf.FuncParam{Name: "n", Type: number}))
	big := swapped(little[:fileHeader])
	copy(big, []byte{magic >> 8, magic & 0xff, 1, 0})
	types := word(little, 12)
	big = append(append(big, swapped(little[fileHeader:][:types])...), little[fileHeader+types:]...)
	require.NoError(t, Check(big))
	require.Equal(t, index(t, little, nil), index(t, big, nil))
}

// TestNamedOfVmlinux checks that package btf, which decodes everything, finds the
// same names.
func TestNamedOfVmlinux(t *testing.T) {
	data, err := os.ReadFile(vmlinux)
	if err != nil {
		t.Skip(err)
	}
	all, err := btf.LoadSpecFromReader(bytes.NewReader(data))
	require.NoError(t, err)
	want := map[string][]string{}
	for typ, err := range all.All() {
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
		if name := typ.TypeName(); name != "" {
			want[kind] = append(want[kind], name)
		}
	}
	types := index(t, data, nil)
	for kind := range want {
		var got []string
		for id, name := range types.Named("", kindsOf[kind]...) {
			require.Equal(t, name, types.Name(id))
			got = append(got, name)
		}
		require.Equal(t, want[kind], got, kind)
	}
}

// FuzzIndex calls all methods on an index of any bytes.
func FuzzIndex(f *testing.F) {
	f.Add(raw(f, function("f", btf.FuncParam{Name: "node", Type: &btf.Pointer{Target: node()}})), "f")
	loop := newFile()
	loop.add(0, Typedef, 0, 2)
	loop.add(0, Const, 0, 1)
	loop.add(loop.name("s"), Struct, 2, 8, 0, 3, 0, 0, 77, 0)
	f.Add(loop.bytes(), "s")
	f.Fuzz(func(t *testing.T, raw []byte, prefix string) {
		types, err := Index(raw, nil)
		if err != nil {
			return
		}
		module, err := Index(raw, types)
		require.NoError(t, err)
		for _, of := range []*Types{types, module} {
			all := []Kind{Int, Pointer, Array, Struct, Union, Enum, Forward, Typedef, Volatile, Const, Restrict, Func, FuncProto, Var, Datasec, Float, DeclTag, TypeTag, Enum64}
			for id, name := range of.Named(prefix, all...) {
				require.Equal(t, prefix, name[:len(prefix)])
				require.Equal(t, name, of.Name(id))
				require.NotZero(t, of.Find(name, of.Kind(id)))
				of.Members(id)
				of.CName(of.Underlying(id))
				of.Fields(of.Target(id))
			}
		}
	})
}

func BenchmarkNamed(b *testing.B) {
	raw, err := os.ReadFile(vmlinux)
	if err != nil {
		b.Skip(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		types := index(b, raw, nil)
		for _, name := range types.Named("", Func) {
			if name == "" {
				b.Fatal("a function without a name")
			}
		}
	}
}
