package main

import (
	"regexp"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
)

// infoTypes returns types with all that a layout can have.
func infoTypes() []btf.Type {
	integer := &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	char := &btf.Int{Name: "char", Size: 1, Encoding: btf.Signed}
	long := &btf.Int{Name: "long", Size: 8, Encoding: btf.Signed}
	list := &btf.Struct{Name: "list", Size: 16}
	list.Members = []btf.Member{
		{Name: "next", Type: &btf.Pointer{Target: list}}, {Name: "prev", Type: &btf.Pointer{Target: list}, Offset: 64},
	}
	mode := &btf.Enum{Name: "mode", Size: 4, Signed: true, Values: []btf.EnumValue{{Name: "BAD", Value: 1<<64 - 1}, {Name: "ON", Value: 1}}}
	packet := &btf.Struct{Name: "packet", Size: 152, Members: []btf.Member{
		{Type: &btf.Union{Size: 16, Members: []btf.Member{
			{Name: "list", Type: list},
			{Type: &btf.Struct{Size: 16, Members: []btf.Member{
				{Name: "kind", Type: char}, {Name: "owner", Type: &btf.Const{Type: &btf.Pointer{Target: list}}, Offset: 64},
			}}},
		}}},
		{Name: "big", Type: integer, Offset: 128, BitfieldSize: 1},
		{Name: "small", Type: integer, Offset: 130, BitfieldSize: 3},
		{Name: "state", Type: &btf.Enum{Size: 4, Values: []btf.EnumValue{{Name: "NEW"}, {Name: "OLD", Value: 1<<32 - 1}}}, Offset: 160},
		{Name: "parts", Type: &btf.Array{Type: &btf.Struct{Size: 16, Members: []btf.Member{
			{Name: "at", Type: long}, {Name: "size", Type: char, Offset: 64},
		}}, Index: integer, Nelems: 7}, Offset: 192},
		{Name: "done", Type: &btf.Pointer{Target: &btf.FuncProto{Return: integer, Params: []btf.FuncParam{{Name: "p", Type: long}}}}, Offset: 1088},
		{Name: "last", Type: char, Offset: 1152},
		{Name: "data", Type: &btf.Array{Type: char, Index: integer}, Offset: 1160},
	}}
	skb := &btf.Typedef{Name: "packet_t", Type: packet}
	function := func(name string, params ...btf.Type) btf.Type {
		proto := &btf.FuncProto{Return: &btf.Void{}}
		for i, p := range params {
			proto.Params = append(proto.Params, btf.FuncParam{Name: string('a' + rune(i)), Type: p})
		}
		return &btf.Func{Name: name, Type: proto, Linkage: btf.GlobalFunc}
	}
	to := func(t btf.Type) btf.Type { return &btf.Pointer{Target: t} }
	return []btf.Type{
		packet, mode, &btf.Enum{Name: "pfn", Size: 8, Values: []btf.EnumValue{{Name: "VALID"}, {Name: "SHIFT", Value: 56}}}, skb, &btf.Typedef{Name: "number", Type: &btf.Typedef{Name: "count_t", Type: integer}},
		&btf.Typedef{Name: "atomic_t", Type: &btf.Struct{Size: 4, Members: []btf.Member{{Name: "counter", Type: integer}}}},
		&btf.Struct{Name: "twin", Size: 4, Members: []btf.Member{{Name: "a", Type: integer}}},
		&btf.Struct{Name: "twin", Size: 8, Members: []btf.Member{{Name: "b", Type: long}}},
		&btf.Struct{Name: "empty"}, &btf.Int{Name: "bool", Size: 1, Encoding: btf.Bool},
		&btf.Struct{Name: "vfs_open", Size: 4, Members: []btf.Member{{Name: "a", Type: integer}}},
		function("send", to(packet), integer), function("send_const", to(&btf.Const{Type: packet})), function("send_typedef", to(skb)),
		function("send_list", to(packet), to(list)), function("send_all", to(to(packet))), function("send_number", &btf.Typedef{Name: "packet_no", Type: long}),
		function("send_raw", to(&btf.Void{}), to(char)),
		&btf.Typedef{Name: "btf_trace_sent", Type: to(&btf.FuncProto{Return: &btf.Void{}, Params: []btf.FuncParam{{Type: to(&btf.Void{})}, {Type: to(packet)}}})},
		function("__bpf_trace_sent", to(&btf.Void{}), to(packet)),
	}
}

// TestInfoTypes covers how types are shown.
func TestInfoTypes(t *testing.T) {
	types := fixture.Write(t, infoTypes()...)
	for _, tc := range []struct{ line, want string }{
		{"info|struct packet", `struct packet {
/*      0       16 */  union {
/*      0       16 */      struct list list;
/*      0       16 */      struct {
/*      0        1 */          char kind;
                               /* hole of 7 bytes */
/*      8        8 */          struct list *const owner;
                           };
                       };
/*     16:0      4 */  int big : 1;
                       /* hole of 1 bit */
/*     16:2      4 */  int small : 3;
                       /* hole of 27 bits */
/*     20        4 */  enum {
                           NEW = 0,
                           OLD = 4294967295,
                       } state;
/*     24      112 */  struct {
/*     24        8 */      long at;
/*     32        1 */      char size;
                           /* padding of 7 bytes */
                       } parts[7];
/*    128: cache line 2 */
/*    136        8 */  int (*done)(long p);
/*    144        1 */  char last;
/*    145        0 */  char data[0];
                       /* padding of 7 bytes */
}; /* 152 bytes in 3 cache lines, 8 members, 3 holes of 10 bytes and 4 bits, 7 bytes of padding */
`},
		{"info|packet_t|vfs_read|number", `typedef struct packet packet_t; /* 152 bytes */
struct packet {
...
long vfs_read(struct file *file, long count);

typedef count_t number; /* 4 bytes */
typedef int count_t; /* 4 bytes */
`},
		{"info|enum mode|atomic_t|struct list", `enum mode {
    BAD = -1,
    ON = 1,
}; /* 4 bytes */

typedef struct {
/*      0        4 */  int counter;
} atomic_t; /* 4 bytes, 1 member */

struct list {
/*      0        8 */  struct list *next;
/*      8        8 */  struct list *prev;
}; /* 16 bytes, 2 members */
`},
		{"info|enum pfn", `enum pfn {
    VALID,
    SHIFT,
}; /* 8 bytes */
`},
		{"info|twin", `struct twin {
/*      0        4 */  int a;
}; /* 4 bytes, 1 member, #N of the types */

struct twin {
/*      0        8 */  long b;
}; /* 8 bytes, 1 member, #N of the types */
`},
		{"info|vfs_open|struct vfs_open|bool|struct empty", `int vfs_open(char *path, struct file *file);

struct vfs_open {
/*      0        4 */  int a;
}; /* 4 bytes, 1 member */

bool; /* 1 byte, bool */

struct empty {
}; /* 0 bytes, 0 members */
`},
	} {
		status, stdout, stderr := ksnoop(t, types, tc.line)
		require.Zero(t, status, stderr)
		stdout = regexp.MustCompile(`#\d+`).ReplaceAllString(stdout, "#N")
		stdout = regexp.MustCompile(`(?s)(packet_t;[^\n]*\nstruct packet \{\n).*\n(long)`).ReplaceAllString(stdout, "$1...\n$2")
		require.Equal(t, tc.want, stdout, tc.line)
	}
}

// TestInfoOfGlob verifies that at least one function of a glob has what is named after it.
func TestInfoOfGlob(t *testing.T) {
	types := fixture.Write(t)
	status, stdout, _ := ksnoop(t, types, "info|vfs_[or]*(count > 5)")
	require.Zero(t, status)
	require.Equal(t, "int vfs_open(char *path, struct file *file);\nlong vfs_read(struct file *file, long count);\n", stdout)
	for line, want := range map[string]string{
		"info|vfs_[or]*(cuont)":      "ksnoop: none of the 2 functions that match 'vfs_[or]*' has what the spec names: vfs_read has no argument 'cuont'\n  vfs_[or]*(cuont)\n            ^^^^^\n  did you mean 'count'?\n",
		"info|vfs_[pr]*(file_flags)": "ksnoop: none of the 2 functions that match 'vfs_[pr]*' has what the spec names: vfs_read has no argument 'file_flags'\n  vfs_[pr]*(file_flags)\n            ^^^^^^^^^^\n  did you mean 'file->flags'?\n",
		"info|vfs_[or]*(nosuch)":     "ksnoop: none of the 2 functions that match 'vfs_[or]*' has what the spec names: vfs_open has no argument 'nosuch'\n  vfs_[or]*(nosuch)\n            ^^^^^^\n",
	} {
		status, stdout, stderr := ksnoop(t, types, line)
		require.Equal(t, exit.Usage, status, line)
		require.Empty(t, stdout, line)
		require.Equal(t, want, stderr)
	}
}

// TestListTakes verifies that list finds functions by the types of their arguments.
func TestListTakes(t *testing.T) {
	types := fixture.Write(t, infoTypes()...)
	for line, want := range map[string][]string{
		"struct packet *":                       {"send", "send_const", "send_list", "send_typedef"},
		"const struct packet*":                  {"send", "send_const", "send_list", "send_typedef"},
		"packet_t *":                            {"send_typedef"},
		"packet *":                              {"send", "send_const", "send_list", "send_typedef"},
		"struct packet **":                      {"send_all"},
		"struct packet *|--takes|int":           {"send"},
		"struct list *|--takes|struct packet *": {"send_list"},
		"struct packet *|send_*":                {"send_const", "send_list", "send_typedef"},
		"struct packet *|tp:*":                  {"tp:sent"},
		"void *":                                {"send_raw"},
		"char *|vfs_*":                          {"vfs_open", "vfs_print"},
		"long|vfs_read|send*":                   {"vfs_read", "send_number"},
		"struct packet *|send|vfs_read|send_raw|s*ef": {"send", "send_typedef"},
	} {
		status, stdout, stderr := ksnoop(t, types, "list|--takes|"+line)
		require.Zero(t, status, stderr)
		var names []string
		for _, m := range regexp.MustCompile(`(?m)^\S+ +(?:void |long |int )?(\S+)\(`).FindAllStringSubmatch(stdout, -1) {
			names = append(names, m[1])
		}
		require.Equal(t, want, names, "%s\n%s", line, stdout)
	}
}

func TestTypeErrors(t *testing.T) {
	types := fixture.Write(t, infoTypes()...)
	for line, want := range map[string]string{
		"info|packte":                     "ksnoop: there is no function packte in this kernel\n  packte\n  ^^^^^^\n  did you mean 'struct packet'?\n",
		"info|struct packte":              "ksnoop: there is no type \"struct packte\": did you mean \"struct packet\"?\n",
		"info|union packet":               "ksnoop: there is no type \"union packet\": did you mean \"struct packet\"?\n",
		"info|typedef numbr":              "ksnoop: there is no type \"typedef numbr\": did you mean \"number\"?\n",
		"info|struct zzzzzzzz":            "ksnoop: there is no type \"struct zzzzzzzz\"\n",
		"info|mod:struct packet":          "ksnoop: module mod is not loaded, or has no BTF\n",
		"info|-o|yaml|vfs_read":           "ksnoop: --output is \"yaml\": it must be text or json\n",
		"compile|-o|jsn|vfs_read":         "ksnoop: --output is \"jsn\": did you mean \"json\"? it must be text or json\n",
		"list|--takes|struct packte *":    "ksnoop: there is no type \"struct packte\": did you mean \"struct packet\"?\n",
		"list|--takes|struct packet":      "ksnoop: no function takes \"struct packet\" by value: did you mean 'struct packet *'?\n",
		"list|--takes|int (*)(void)":      "ksnoop: --takes is \"int (*)(void)\": it must be the name of a type, and a star for each pointer to it, as in 'struct sk_buff *'\n",
		"list|--takes|struct twin *":      "ksnoop: no function that was looked at takes 'struct twin *'\n",
		"list|--takes|struct list *|vfs*": "ksnoop: no function that was looked at takes 'struct list *'\n",
	} {
		status, stdout, stderr := ksnoop(t, types, line)
		require.Equal(t, exit.Usage, status, line)
		require.Equal(t, want, stderr, line)
		require.Empty(t, stdout)
	}
}

// TestListingJSON verifies that the JSON of info, list and compile matches the schemas.
func TestListingJSON(t *testing.T) {
	meta := &btf.Struct{Name: "bpf_iter_meta", Size: 8, Members: []btf.Member{{Name: "seq", Type: &btf.Pointer{Target: &btf.Struct{Name: "seq_file", Size: 8}}}}}
	thing := &btf.Struct{Name: "thing", Size: 4, Members: []btf.Member{{Name: "id", Type: &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}}}}
	iterator := &btf.Func{Name: "bpf_iter_thing", Linkage: btf.GlobalFunc, Type: &btf.FuncProto{
		Return: &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed},
		Params: []btf.FuncParam{{Name: "meta", Type: &btf.Pointer{Target: meta}}, {Name: "thing", Type: &btf.Pointer{Target: thing}}},
	}}
	types := fixture.Write(t, append(infoTypes(), iterator)...)
	for _, tc := range []struct{ schema, line, want string }{
		{"info", "info|struct packet", `"holes":[{"offset":16,"bit":1,"bits":1},{"offset":16,"bit":5,"bits":27}],"padding":7}`},
		{"info", "info|struct packet", `{"name":"small","type":"int","offset":16,"size":4,"bit":2,"bits":3}`},
		{"info", "info|packet_t", `"kind":"typedef","id":`},
		{"info", "info|enum mode", `"size":4,"values":[{"name":"BAD","value":-1},{"name":"ON","value":1}]}`},
		{"info", "info|enum pfn", `"size":8,"values":[{"name":"VALID"},{"name":"SHIFT"}]}`},
		{"info", "info|vfs_read", `{"type":"function","version":1,"name":"vfs_read","prototype":"long vfs_read(struct file *file, long count)","args":[{"name":"file","type":"struct file *"},{"name":"count","type":"long"}],"return":"long"}`},
		{"info", "info|vfs_print", `"args":[{"name":"fmt","type":"char *"},{"name":"","type":"..."}]}`},
		{"info", "info|tp:tick", `{"type":"tracepoint","version":1,"name":"tick","prototype":"tp:tick(int cpu)","args":[{"name":"cpu","type":"int"}]}`},
		{"info", "info|p:x vfs_read n=count", `{"type":"event","version":1,"name":"x","func":"vfs_read","format":"name: x\nformat:\n`},
		{"info", "list|vfs_read", `"return":"long","attach":"kprobe.session"}`},
		{"info", "list|vfs_*", `"name":"vfs_broken","prototype":"void vfs_broken(struct secret x)","args":[{"name":"x","type":"struct secret"}],"reason":"vfs_broken has a signature`},
		{"info", "list|vfs_*|tp:*|--takes|int", `"name":"tick"`},
		{"compile", "compile|vfs_read(count > 3)", `"functions":[{"func":"vfs_read","attach":"kprobe.multi","reason":"`},
		{"compile", "compile|iter:thing(thing->id)", `"kind":"row"`},
		{"compile", "compile|vfs_read", `"kind":"return","size":`},
		{"compile", "compile|-s|vfs_read|vfs_open|tp:tick", `{"offset":0,`},
	} {
		status, stdout, stderr := ksnoop(t, types, tc.line+"|-o|json")
		require.Zero(t, status, stderr)
		require.NoError(t, fixture.Schema(t, tc.schema).Lines(stdout), tc.line)
		require.Contains(t, stdout, tc.want, tc.line)
	}
}
