package resolve

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// TestRefuseValues verifies the errors for values that are read without a call.
func TestRefuseValues(t *testing.T) {
	target := compilertest.NewTarget(t, compilertest.WithProbes)
	for _, tc := range []struct{ text, at, want, hint string }{
		{"@jiffies", "@jiffies", "BTF has no type of '@jiffies'", "a cast gives it one: (int)@jiffies, (u64[3])@jiffies, (struct NAME)@jiffies"},
		{"@jiffies + 1", "@jiffies", "BTF has no type of '@jiffies'", "a cast gives it one: (int)@jiffies, (u64[3])@jiffies, (struct NAME)@jiffies"},
		{"@jiffies:x", "@jiffies", "BTF has no type of '@jiffies'", "a cast gives it one: (int)@jiffies, (u64[3])@jiffies, (struct NAME)@jiffies"},
		{"@jiffies.x", "x", "'@jiffies' is not a struct or union, so '.x' has no meaning", "BTF has no type of it; a cast says what it is: ((struct NAME)@jiffies).x"},
		{"*@jiffies", "*", "'@jiffies' is of unknown type, not a pointer, so '*' has no meaning", "a cast says what it is: *(u64 *)@jiffies"},
		{"(int)@jiffies[3]", "[3]", "'@jiffies' is of unknown type, neither an array nor a pointer, so '[3]' has no meaning", "a cast says what it is: ((u64[4])@jiffies)[3]"},
		{"@jiffie", "@jiffie", "there is no variable 'jiffie' in this kernel", "did you mean '@jiffies'?"},
		{"jiffies", "jiffies", "'jiffies' is not a value: there is no call that it could be an argument of", "did you mean the variable '@jiffies'?"},
		{"buf->len", "buf", "'buf' is not a value: there is no call that it could be an argument of",
			"a variable is written @buf, and memory is at an address with a cast: *(struct file *)0xffff888012345600"},
		{"PF_KTHREAD", "PF_KTHREAD", "'PF_KTHREAD' is not a value: there is no call that it could be an argument of",
			"macros of C are not in BTF: write the number; a variable is written @PF_KTHREAD"},
		{"(int)5", "(int)5", "'(int)5' is a constant", "memory is at a pointer: *(int *)5"},
		{"(u64)5", "(u64)5", "'(u64)5' is a constant", "memory is at a pointer: *(u64 *)5"},
		{"(struct dev[3])0xff", "(struct dev[3])0xff", "'(struct dev[3])0xff' is a constant", "memory is at a pointer: ((struct dev *)0xff)[0..2]"},
		{"(struct dev *[1])0xff", "(struct dev *[1])0xff", "'(struct dev *[1])0xff' is a constant", "memory is at a pointer: ((struct dev **)0xff)[0..0]"},
		{"((struct dev)@jiffies).name[0..16]", "[0..16]", "'((struct dev)@jiffies).name' has 16 elements, from [0] to [15]", ""},
		{"(struct dev[99999999])@jiffies", "struct dev[99999999]", "there is no array 'struct dev[99999999]': it would have no size, or more than a gigabyte", ""},
		{"*(void *)0xff", "*", "'(void *)0xff' points to something of unknown size", "say what it is with a cast: *(u64 *)(void *)0xff"},
	} {
		trace, err := spec.ParseValues(tc.text)
		require.NoError(t, err, tc.text)
		_, err = One(trace, target)
		var refused *spec.Error
		require.ErrorAs(t, err, &refused, tc.text)
		require.Equal(t, tc.want, refused.Msg)
		require.Equal(t, tc.at, tc.text[refused.At.Start:refused.At.End], tc.text)
		require.Equal(t, tc.hint, refused.Hint, tc.text)
		cure := regexp.MustCompile(`^(?:memory is at a pointer|a cast says what it is|say what it is with a cast): (.*)$`).FindStringSubmatch(tc.hint)
		if cure != nil {
			trace, err := spec.ParseValues(cure[1])
			require.NoError(t, err)
			_, err = One(trace, target)
			require.NoError(t, err)
		}
	}
}

// TestNearestVariable verifies the hint for a variable that the symbol table has as code,
// as that of 6.18 has some, and for a table that has only what the linker marks.
func TestNearestVariable(t *testing.T) {
	const asCode = compilertest.Symbols +
		"ffffffff82000000 T init_code\nffffffff82001000 D _sdata\nffffffff82001000 T init_task\nffffffff82002000 D _edata\n"
	const ofLinker = "ffffffff81000000 T init_code\nffffffff82000000 D __start_rodata\nffffffff82800000 D __init_begin\n"
	for _, tc := range []struct{ symbols, text, hint string }{
		{asCode, "@init_tsk", "did you mean '@init_task'?"},
		{asCode, "@init_cod", ""},
		{ofLinker, "@start_rodata", "its symbol table has no variables at all: that takes CONFIG_KALLSYMS_ALL"},
	} {
		target := compilertest.NewTarget(t, compilertest.WithProbes)
		symbols, err := kallsyms.Read(strings.NewReader(tc.symbols), nil)
		require.NoError(t, err)
		target.Symbols = symbols
		trace, err := spec.ParseValues(tc.text)
		require.NoError(t, err)
		_, err = One(trace, target)
		var refused *spec.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, tc.hint, refused.Hint)
	}
}

// TestResolveValues verifies that the program of values runs once, whatever the kernel
// can attach to.
func TestResolveValues(t *testing.T) {
	trace, err := spec.ParseValues("(u64)@local, (u64)@jiffies")
	require.NoError(t, err)
	p, err := One(trace, compilertest.NewTarget(t, compiler.Features{}))
	require.NoError(t, err)
	require.Equal(t, compiler.RawTP, p.Attach.Entry)
	require.True(t, p.OnEntry && !p.OnReturn && !p.Stash)
	require.NotZero(t, p.Entry[0].Base.PerCPU, "of each CPU")
	require.Zero(t, p.Entry[1].Base.PerCPU)
}

// withModules returns a kernel with two modules and their variables.
func withModules(t *testing.T) *compiler.Target {
	target := compilertest.NewTarget(t, compilertest.WithProbes)
	symbols, err := kallsyms.Read(strings.NewReader(compilertest.Symbols+`ffffffffc0001000 d devices	[loop]
ffffffffc0001010 d debug	[loop]
ffffffffc0002010 d debug	[nat]
0000000000002100 a hits	[nat]
ffffffffc0002020 D typed	[nat]
ffffffffc0003000 t nat_send	[nat]
ffffffffc0003010 t nat_asm	[nat]
`), nil)
	require.NoError(t, err)
	target.Symbols = symbols
	structure := func(name string, size uint32) *btf.Struct {
		return &btf.Struct{Name: name, Size: size, Members: []btf.Member{{Name: "number", Type: compilertest.Int}}}
	}
	modules := map[string][]btf.Type{
		"loop": {structure("disk", 4), structure("both", 4), structure("buf", 4)},
		"nat": {structure("table", 8), structure("both", 8), &btf.Var{Name: "typed", Type: structure("table", 8), Linkage: btf.GlobalVar},
			compilertest.Function("nat_send", compilertest.Int)},
	}
	target.Modules = func() []string { return []string{"loop", "nat"} }
	target.Module = func(name string) (*btf.Spec, error) {
		b, err := btf.NewBuilder(modules[name], nil)
		require.NoError(t, err)
		raw, err := b.Marshal(nil, nil)
		require.NoError(t, err)
		return btf.LoadSpecFromReader(bytes.NewReader(raw))
	}
	return target
}

// TestNotInModule verifies what is said of a function that the module before its name has
// not.
func TestNotInModule(t *testing.T) {
	target := withModules(t)
	for text, want := range map[string]string{
		"nat:nat_sent":     "there is no function nat_sent in module nat\n  nat:nat_sent\n      ^^^^^^^^\n  did you mean 'nat_send'?",
		"nat:other":        "there is no function other in module nat\n  nat:other\n      ^^^^^",
		"nat:read":         "there is no function read in module nat\n  nat:read\n      ^^^^\n  read is a function of the kernel itself: leave out the module",
		"loop:nat_send":    "there is no function nat_send in module loop\n  loop:nat_send\n       ^^^^^^^^\n  it is in module nat: nat:nat_send",
		"vmlinux:nat_send": "there is no function nat_send in the kernel itself\n  vmlinux:nat_send\n          ^^^^^^^^\n  it is in module nat: nat:nat_send",
		"vmlinux:nat_sent": "there is no function nat_sent in this kernel\n  vmlinux:nat_sent\n          ^^^^^^^^",
		"nat:nat_asm":      "nat_asm has no type in BTF, so its arguments are not known (it is not written in C, or BTF left it out)\n  nat:nat_asm\n      ^^^^^^^",
	} {
		trace, err := spec.Parse(text)
		require.NoError(t, err)
		_, err = One(trace, target)
		require.EqualError(t, err, want)
	}
}

// TestModuleValues verifies that values of modules have the types of their module, and
// others those of vmlinux or of any module.
func TestModuleValues(t *testing.T) {
	target := withModules(t)
	for _, tc := range []struct {
		text   string
		addr   uint64
		perCPU bool
		name   string
		size   uint32
	}{
		{"(struct disk)@devices", 0xffffffffc0001000, false, "disk", 4},
		{"(struct both)@devices", 0xffffffffc0001000, false, "both", 4},
		{"(struct buf)@devices", 0xffffffffc0001000, false, "buf", 4},
		{"(struct dev)@devices", 0xffffffffc0001000, false, "dev", 32},
		{"@typed", 0xffffffffc0002020, false, "table", 8},
		{"(struct both)@typed", 0xffffffffc0002020, false, "both", 8},
		{"(struct both)@hits", 0x2100, true, "both", 8},
		{"(struct disk)@jiffies", 0xffffffff81001100, false, "disk", 4},
		{"*(struct table *)0xffff888000000000", 0xffff888000000000, false, "table", 8},
		{"*(struct buf *)0xffff888000000000", 0xffff888000000000, false, "buf", 64},
	} {
		trace, err := spec.ParseValues(tc.text)
		require.NoError(t, err)
		p, err := One(trace, target)
		require.NoError(t, err, tc.text)
		v := p.Entry[0]
		require.Equal(t, tc.addr, v.Base.Addr, tc.text)
		require.Equal(t, tc.perCPU, v.Base.PerCPU != 0, tc.text)
		structure, ok := btf.As[*btf.Struct](v.Type)
		require.True(t, ok, tc.text)
		require.Equal(t, tc.name, structure.Name)
		require.Equal(t, tc.size, structure.Size, tc.text)
	}
	for text, want := range map[string][2]string{
		"(int)@debug": {"there are 2 symbols 'debug' in this kernel, and a name cannot tell them apart",
			"in loop at 0xffffffffc0001010, in nat at 0xffffffffc0002010; an address with a cast is one of them: *(int *)0xffffffffc0001010"},
		"*(struct both *)0xffff888000000000": {"there are 2 types 'struct both' in this kernel, which differ",
			"they are in loop, nat: a variable of one of them has its types"},
		"(struct none)@devices": {"there is no type 'struct none' in this kernel", ""},
		"@devices":              {"BTF has no type of '@devices'", "a cast gives it one: (int)@devices, (u64[3])@devices, (struct NAME)@devices"},
	} {
		trace, err := spec.ParseValues(text)
		require.NoError(t, err)
		_, err = One(trace, target)
		var refused *spec.Error
		require.ErrorAs(t, err, &refused, text)
		require.Equal(t, want, [2]string{refused.Msg, refused.Hint})
	}
}
