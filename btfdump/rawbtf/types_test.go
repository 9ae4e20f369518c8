package rawbtf_test

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/btfdump/rawbtf"
	"github.com/ksnoop/ksnoop/btfdump/rawbtf/rawtest"
)

// index returns an index of the types in raw. It fails the test if it cannot.
func index(t testing.TB, raw []byte, base *rawbtf.Types) *rawbtf.Types {
	types, err := rawbtf.Index(raw, base)
	require.NoError(t, err)
	return types
}

// kindsOf has the kinds for each word that C puts before names.
var kindsOf = map[string][]rawbtf.Kind{"func": {rawbtf.Func}, "struct": {rawbtf.Struct}, "union": {rawbtf.Union}, "enum": {rawbtf.Enum, rawbtf.Enum64}, "": {rawbtf.Typedef, rawbtf.Int, rawbtf.Float}}

func TestNamed(t *testing.T) {
	types := index(t, raw(t, node(), function("first"), function("second"), &btf.Typedef{Name: "word", Type: &btf.Int{Name: "int", Size: 4}},
		&btf.Union{Name: "either", Size: 4}, &btf.Enum{Name: "color", Size: 4, Values: []btf.EnumValue{{Name: "red"}}}), nil)
	for kind, want := range map[string][]string{
		"func": {"first", "second"}, "struct": {"node"}, "union": {"either"}, "enum": {"color"}, "": {"word", "int"},
	} {
		require.Subset(t, slices.Collect(maps.Values(maps.Collect(types.Named("", kindsOf[kind]...)))), want, kind)
	}
	for _, name := range types.Named("", rawbtf.Func) {
		require.Equal(t, "first", name)
		break
	}
	for id, name := range types.Named("sec", rawbtf.Func) {
		require.Equal(t, "second", name)
		require.Equal(t, rawbtf.Func, types.Kind(id))
		require.Equal(t, "second", types.Name(id))
	}
	require.Zero(t, types.Find("sec", rawbtf.Func))
	require.Zero(t, types.Find("second", rawbtf.Struct))
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
	id := types.Find("holder", rawbtf.Struct)
	have := map[string]string{}
	for _, f := range types.Members(id) {
		have[f.Name] = types.CName(f.Type)
	}
	require.Equal(t, map[string]string{"node": "struct node *", "mode": "enum mode", "all": "struct leaf[]", "alias": "alias_t", "any": "void *"}, have)
	require.Equal(t, []rawbtf.Field{{"off", 0}, {"on", 0}}, types.Fields(types.Find("mode", rawbtf.Enum)))
	fn := types.Find("f", rawbtf.Func)
	proto := types.Target(fn)
	require.Equal(t, rawbtf.FuncProto, types.Kind(proto))
	require.Equal(t, "int", types.CName(types.Target(proto)))
	params := types.Fields(proto)
	require.Equal(t, id, types.Target(params[0].Type))
	members := types.Fields(id)
	require.Equal(t, "struct leaf", types.CName(types.Underlying(members[2].Type)))
	require.Equal(t, 5, types.Decoded, "holder twice, its union, the enum and the prototype")
	require.Zero(t, types.Kind(1<<20))
	require.Nil(t, types.Fields(1<<20))
	require.Nil(t, types.Fields(fn))
	require.Zero(t, types.Target(types.Find("int", rawbtf.Int)))
}

// TestModule checks that the types and names of a module follow those of its base.
func TestModule(t *testing.T) {
	vmlinux := rawtest.New()
	node := vmlinux.Add(vmlinux.Name("node"), rawbtf.Struct, 0, 8)
	vmlinux.Function("base")
	base := index(t, vmlinux.Bytes(), nil)
	first := vmlinux.Number + 1
	module := &rawtest.File{Strings: []byte("\x00ext_open\x00")}
	module.Add(uint32(len(vmlinux.Strings))+1, rawbtf.Typedef, 0, node)
	module.Add(0, rawbtf.Pointer, 0, first)
	types := index(t, module.Bytes(), base)
	id := types.Find("ext_open", rawbtf.Typedef)
	require.Equal(t, btf.TypeID(first), id)
	require.Equal(t, "struct node", types.CName(types.Underlying(id)))
	require.Equal(t, id, types.Target(id+1))
	require.Equal(t, "ext_open *", types.CName(id+1))
	require.Equal(t, base.Find("base", rawbtf.Func), types.Find("base", rawbtf.Func))
	require.Zero(t, types.Kind(id+2))
}

// TestBigEndian checks that types in the other byte order give the same index.
func TestBigEndian(t *testing.T) {
	file := rawtest.Read(raw(t, node(), function("f", btf.FuncParam{Name: "n", Type: number})))
	require.NoError(t, rawbtf.Check(file.BigEndian()))
	require.Equal(t, index(t, file.Bytes(), nil), index(t, file.BigEndian(), nil))
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
	loop := rawtest.New()
	loop.Add(0, rawbtf.Typedef, 0, 2)
	loop.Add(0, rawbtf.Const, 0, 1)
	loop.Add(loop.Name("s"), rawbtf.Struct, 2, 8, 0, 3, 0, 0, 77, 0)
	f.Add(loop.Bytes(), "s")
	f.Fuzz(func(t *testing.T, raw []byte, prefix string) {
		types, err := rawbtf.Index(raw, nil)
		if err != nil {
			return
		}
		module, err := rawbtf.Index(raw, types)
		require.NoError(t, err)
		for _, of := range []*rawbtf.Types{types, module} {
			var all []rawbtf.Kind
			for k := rawbtf.Int; k <= rawbtf.Enum64; k++ {
				all = append(all, k)
			}
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
		for _, name := range types.Named("", rawbtf.Func) {
			if name == "" {
				b.Fatal("a function without a name")
			}
		}
	}
}
