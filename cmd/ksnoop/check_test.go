package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
)

// checkedKernels writes the types and symbols of two kernels, which differ as
// versions of Linux do.
func checkedKernels(t testing.TB) (dir string) {
	dir = t.TempDir()
	integer := &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	char := &btf.Int{Name: "unsigned char", Size: 1}
	file := func(members ...btf.Member) btf.Type {
		return &btf.Pointer{Target: &btf.Struct{Name: "file", Size: 16, Members: members}}
	}
	flags := btf.Member{Name: "flags", Type: integer}
	function := func(name string, params ...btf.FuncParam) btf.Type {
		return &btf.Func{Name: name, Linkage: btf.GlobalFunc, Type: &btf.FuncProto{Return: integer, Params: params}}
	}
	tick := &btf.Typedef{Name: "btf_trace_tick", Type: &btf.Pointer{Target: &btf.FuncProto{Return: &btf.Void{}, Params: []btf.FuncParam{
		{Type: &btf.Pointer{Target: &btf.Void{}}}, {Type: integer},
	}}}}
	freeing := func(name string) btf.Type {
		void := &btf.Pointer{Target: &btf.Void{}}
		return &btf.Typedef{Name: "btf_trace_" + name, Type: &btf.Pointer{Target: &btf.FuncProto{Return: &btf.Void{}, Params: []btf.FuncParam{
			{Type: void}, {Name: "call_site", Type: &btf.Int{Name: "unsigned long", Size: 8}}, {Name: "ptr", Type: void},
		}}}}
	}
	write := func(name, symbols string, types ...btf.Type) {
		b, err := btf.NewBuilder(types, nil)
		require.NoError(t, err)
		raw, err := b.Marshal(nil, nil)
		require.NoError(t, err)
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "btf"), raw, 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "map"), []byte(symbols), 0o644))
	}
	roomy := function("roomy", btf.FuncParam{Name: "room", Type: &btf.Pointer{Target: &btf.Struct{Name: "room", Size: 300, Members: []btf.Member{
		{Name: "number", Type: integer},
	}}}})
	oldFile := file(flags, btf.Member{Name: "pos", Type: integer, Offset: 32})
	write("old", `ffffffff81000100 T same
ffffffff81000200 t account_io
ffffffff81000300 T gone
ffffffff81000400 t inlined
ffffffff81000500 D limit
ffffffff81000600 T roomy
ffffffff81000700 T __fput
`,
		roomy,
		function("__fput", btf.FuncParam{Name: "file", Type: oldFile}),
		function("same", btf.FuncParam{Name: "file", Type: oldFile}, btf.FuncParam{Name: "count", Type: integer}),
		function("account_io", btf.FuncParam{Name: "file", Type: oldFile}),
		function("gone", btf.FuncParam{Name: "path", Type: oldFile}),
		function("inlined", btf.FuncParam{Name: "count", Type: integer}),
		freeing("kfree"), freeing("kmem_cache_free"),
		tick)
	newFile := file(btf.Member{Name: "flags", Type: char}, btf.Member{Name: "position", Type: integer, Offset: 32})
	idmap := &btf.Pointer{Target: &btf.Struct{Name: "idmap", Size: 16, Members: []btf.Member{{Name: "pos", Type: integer, Offset: 32}}}}
	write("new", `ffffffff81000100 T same
ffffffff81000200 t __account_io
ffffffff81000300 t inlined.isra.0
ffffffff81000400 D limit
ffffffff81000600 T roomy
`,
		roomy,
		function("same", btf.FuncParam{Name: "idmap", Type: idmap}, btf.FuncParam{Name: "file", Type: newFile}),
		function("__account_io", btf.FuncParam{Name: "file", Type: newFile}),
		function("account_io_start", btf.FuncParam{Name: "bio", Type: newFile}),
		function("inlined", btf.FuncParam{Name: "count", Type: integer}),
		function("nocode"))
	return dir
}

// checked runs check with both kernels.
func checked(t testing.TB, dir string, words ...string) (status int, stdout, stderr string) {
	args := []string{"ksnoop", "check", "--btf", dir + "/old/btf", "--btf", dir + "/new/btf"}
	var out, errors strings.Builder
	status = ksnoopStatus(append(args, words...), strings.NewReader(""), &out, &errors)
	return status, out.String(), errors.String()
}

// TestCheck covers all reasons.
func TestCheck(t *testing.T) {
	dir := checkedKernels(t)
	specs := []string{
		"same(file->flags > 5)", "account_io(file)", "gone", "same(count > 1)", "same($arg3)", "same(file->pos)", "same(file->flags == 300)", "same(idmap->pos)",
		"tp:tick", "inlined", "same(file) if @limit", "ext4:ext4_read", "g*", "p:e same", "p:e same x=$arg9",
	}
	status, stdout, stderr := checked(t, dir, specs...)
	require.Equal(t, exit.Failure, status)
	require.Empty(t, stderr)
	require.Equal(t, `
  SPEC                      old          new
  same(file->flags > 5)     ok           ok
  account_io(file)          ok           no function
  gone                      ok           no function
  same(count > 1)           ok           no argument
  same($arg3)               no argument  no argument
  same(file->pos)           ok           type
  same(file->flags == 300)  ok           type
  same(idmap->pos)          no argument  ok
  tp:tick                   ok           no function
  inlined                   ok           ok
  same(file) if @limit      unknown      unknown
  ext4:ext4_read            unknown      unknown
  g*                        ok           no function
  p:e same                  ok           ok
  p:e same x=$arg9          no argument  no argument

new: account_io(file): there is no function account_io in this kernel (did you mean '__account_io'?)
new: gone: there is no function gone in this kernel
new: same(count > 1): same has no argument 'count' (it has idmap, file)
old, new: same($arg3): same has no $arg3: it takes 2 (arguments count from $arg1)
new: same(file->pos): struct file has no member 'pos'
new: same(file->flags == 300): 300 does not fit 'file->flags', which is unsigned char and holds 0 to 255
old: same(idmap->pos): same has no argument 'idmap' (it has file, count)
new: tp:tick: there is no tracepoint tick in this kernel
old, new: same(file) if @limit: the address of 'limit' is not known, as there is no symbol table (--symbols has it)
old, new: ext4:ext4_read: read the BTF of module ext4: --btf has only the types of vmlinux
new: g*: no function of this kernel matches 'g*' (functions of a module need its name: MODULE:g*; tracepoints are tp:g*)
old, new: p:e same x=$arg9: same has no $arg9: it takes 2 (arguments count from $arg1)
`[1:], stdout)
}

// TestCheckSymbols verifies that symbols decide which functions have code, and of
// what kind.
func TestCheckSymbols(t *testing.T) {
	dir := checkedKernels(t)
	status, stdout, stderr := checked(t, dir, "--symbols", dir+"/old/map", "--symbols", dir+"/new/map",
		"inlined", "inlined.isra.0", "nocode", "same(file) if @limit", "same(file) if @limits", "account_io", "limit")
	require.Equal(t, exit.Failure, status, stderr)
	require.Equal(t, `
  SPEC                   old          new
  inlined                ok           suffix only
  inlined.isra.0         no function  ok
  nocode                 no function  inlined
  same(file) if @limit   ok           ok
  same(file) if @limits  no variable  no variable
  account_io             ok           no function
  limit                  no function  no function

new: inlined: this kernel has inlined only as inlined.isra.0, with arguments that may differ from its type (to trace it anyway, use this name: inlined.isra.0)
old: inlined.isra.0: there is no function inlined.isra.0 in this kernel (did you mean 'inlined'?)
old: nocode: there is no function nocode in this kernel
new: nocode: nocode has a type but no code in this kernel: it was inlined everywhere, or is start-up code that was freed
old, new: same(file) if @limits: there is no variable 'limits' in this kernel (did you mean '@limit'?)
new: account_io: there is no function account_io in this kernel (did you mean '__account_io'? the name is part of account_io_start)
old, new: limit: limit is data, not a function (its content is '@limit' in the list of a function)
`[1:], stdout)

	// The arguments are added to the nearest of them.
	_, stdout, _ = checked(t, dir, "same(flie)")
	require.Contains(t, stdout, "old: same(flie): same has no argument 'flie' (did you mean 'file'? it has file, count)\n")

	// A hint that has the names of all arguments does not repeat them.
	_, stdout, _ = checked(t, dir, "same(args->count)")
	require.Contains(t, stdout, "old: same(args->count): same has no argument 'args' (arguments are named by themselves: file, count)\n")

	// The nearest name may be one that no spec has.
	_, stdout, _ = checked(t, dir, "--symbols", dir+"/old/map", "--symbols", dir+"/new/map", "same(file) if @limits")
	require.Contains(t, stdout, "there is no variable 'limits' in this kernel (did you mean '@limit'?)")
}

// TestCheckWatch covers memory to watch: where it is, or why it cannot be watched.
func TestCheckWatch(t *testing.T) {
	dir := checkedKernels(t)
	args := []string{"--symbols", dir + "/old/map", "--symbols", dir + "/new/map"}
	for _, memory := range []string{
		"(int)@limit", "*(u8 *)0xffff888000000003", "(struct file)@limit", "@none", "((struct room *)@limit)->number", "same(file->flags)", "same(file->posit)", "gone(path)",
	} {
		args = append(args, "--watch", memory)
	}
	status, stdout, stderr := checked(t, dir, append(args, "same(file->flags)")...)
	require.Equal(t, exit.Failure, status)
	require.Empty(t, stderr)
	require.Equal(t, `
  SPEC                                   old          new
  same(file->flags)                      ok           ok
  watch (int)@limit                      ok           ok
  watch *(u8 *)0xffff888000000003        ok           ok
  watch (struct file)@limit              type         type
  watch @none                            no variable  no variable
  watch ((struct room *)@limit)->number  ok           ok
  watch same(file->flags)                ok           no function
  watch same(file->posit)                type         type
  watch gone(path)                       type         no function

old: watch (int)@limit: 4 bytes at 0xffffffff81000500
new: watch (int)@limit: 4 bytes at 0xffffffff81000400
old, new: watch *(u8 *)0xffff888000000003: 1 byte at 0xffff888000000003
old, new: watch (struct file)@limit: '(struct file)@limit' has 16 bytes, and the hardware watches 1, 2, 4 or 8 (name a member or an element of it)
old, new: watch @none: there is no variable 'none' in this kernel
old, new: watch ((struct room *)@limit)->number: 4 bytes at offset 0 from a pointer, which is read when watching begins
old: watch same(file->flags): 4 bytes at offset 0 of the struct file that same finds, until __fput or tp:kfree or tp:kmem_cache_free
new: watch same(file->flags): there is no tracepoint kfree in this kernel
old: watch same(file->posit): struct file has no member 'posit' (did you mean 'pos'?)
new: watch same(file->posit): struct file has no member 'posit' (did you mean 'position'?)
old: watch gone(path): 'path' is not a member of an object (it must be behind a pointer to a structure: gone(ARGUMENT->MEMBER))
new: watch gone(path): there is no function gone in this kernel
`[1:], stdout)
	status, stdout, stderr = checked(t, dir, "--watch", "@limit", "--watch", "same(file->flags)")
	require.Equal(t, exit.Failure, status, stderr)
	require.Contains(t, stdout, "\n  watch @limit             unknown  unknown\n", "the address is not known without symbols")
	require.Contains(t, stdout, "(--symbols has it)")
	status, stdout, stderr = checked(t, dir, "--watch", "same", "--watch", "@limit ==")
	require.Equal(t, exit.Usage, status)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "'same' names no memory to watch")
	require.Contains(t, stderr, "@limit ==")
}

// TestCheckPrint covers values without a call.
func TestCheckPrint(t *testing.T) {
	dir := checkedKernels(t)
	status, stdout, stderr := checked(t, dir, "--symbols", dir+"/old/map", "--symbols", dir+"/new/map",
		"--print", "(int)@limit, ((struct room *)0xff)->number", "--print", "@none", "--print", "((struct room *)0xff)->numbre")
	require.Equal(t, exit.Failure, status)
	require.Empty(t, stderr)
	require.Equal(t, `
  SPEC                                              old          new
  print (int)@limit, ((struct room *)0xff)->number  ok           ok
  print @none                                       no variable  no variable
  print ((struct room *)0xff)->numbre               type         type

old, new: print @none: there is no variable 'none' in this kernel
old, new: print ((struct room *)0xff)->numbre: struct room has no member 'numbre' (did you mean 'number'?)
`[1:], stdout)
	// A kernel without CONFIG_KALLSYMS_ALL has only functions in its table.
	require.NoError(t, os.WriteFile(dir+"/old/map", []byte("ffffffff81000100 T same\nffffffff81000200 t limit_all\n"), 0o644))
	_, stdout, _ = checked(t, dir, "--symbols", dir+"/old/map", "--symbols", dir+"/new/map", "--print", "(int)@limit", "--print", "@"+strings.Repeat("a", 200))
	require.Contains(t, stdout, "old: print (int)@limit: there is no variable 'limit' in this kernel (its symbol table has no variables at all: that takes CONFIG_KALLSYMS_ALL)\n")
	require.Regexp(t, `(?m)^new: print @a+\.\.\.: there is no variable 'a+' in this kernel$`, stdout)

	status, stdout, stderr = checked(t, dir, "--print", "return")
	require.Equal(t, exit.Usage, status)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "'return' is of a call, and values are read without one")
	status, _, stderr = checked(t, dir, "(int)@limit")
	require.Equal(t, exit.Usage, status)
	require.Contains(t, stderr, "ksnoop check --print checks them")
}

// TestCheckFits verifies status 0 and no reasons if everything fits.
func TestCheckFits(t *testing.T) {
	status, stdout, stderr := checked(t, checkedKernels(t), "same(file->flags)", "same(file->flags)")
	require.Zero(t, status, stderr)
	require.Equal(t, "  SPEC               old  new\n  same(file->flags)  ok   ok\n", stdout)
}

// TestCheckJSON covers results for programs, from a file of specs.
func TestCheckJSON(t *testing.T) {
	dir := checkedKernels(t)
	specs := filepath.Join(dir, "specs")
	require.NoError(t, os.WriteFile(specs, []byte("# comment\nsame(count)\n\nsame*\n"), 0o644))
	status, stdout, stderr := checked(t, dir, "-o", "json", "-f", specs)
	require.Equal(t, exit.Failure, status, stderr)
	require.NoError(t, fixture.Schema(t, "results").Lines(stdout))
	var got []map[string]any
	for line := range strings.Lines(stdout) {
		var object map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &object))
		got = append(got, object)
	}
	require.Len(t, got, 6)
	require.Equal(t, map[string]any{
		"type": "result", "suite": "check", "name": "same(count) on new", "status": "fail", "file": specs, "line": 2.0,
		"text":   "same has no argument 'count' (it has idmap, file)",
		"fields": map[string]any{"spec": "same(count)", "kernel": "new", "reason": "no argument"},
	}, got[3])
	require.Equal(t, "1 function is traced", got[4]["text"])
	require.Equal(t, map[string]any{"spec": "same*", "kernel": "new", "reason": "ok", "functions": 1.0}, got[4]["fields"])
	require.Equal(t, 3.0, got[5]["pass"])
}

// TestCheckHostileNames covers names that would control a terminal, or that look the
// same on one.
func TestCheckHostileNames(t *testing.T) {
	dir := checkedKernels(t)
	for _, name := range []string{"\x1b", "\x07"} {
		require.NoError(t, os.Symlink("new/btf", filepath.Join(dir, name)))
	}
	status, stdout, _ := checked(t, dir, "--btf", dir+"/\x1b", "--btf", dir+"/\x07", "same(\x1bx)", "same(file)")
	require.Equal(t, exit.Usage, status)
	require.Empty(t, stdout)
	status, stdout, stderr := checked(t, dir, "--btf", dir+"/\x1b", "--btf", dir+"/\x07", "same(idmap)")
	require.Equal(t, exit.Failure, status, stderr)
	require.Regexp(t, `(?m)^  same\(idmap\)  no argument  ok       ok     ok$`, stdout)
}

// TestCheckBroken verifies that a broken file of types leaves the results of its
// kernel unknown, and that the others are checked.
func TestCheckBroken(t *testing.T) {
	dir := checkedKernels(t)
	require.NoError(t, os.WriteFile(dir+"/old/btf", fixture.Types(t)[:100], 0o644))
	status, stdout, stderr := checked(t, dir, "same(file)")
	require.Equal(t, exit.Failure, status, stderr)
	require.Equal(t, "  SPEC        old      new\n  same(file)  unknown  ok\n\n"+
		"old: same(file): read the types of "+dir+"/old/btf: it ends too early\n", stdout)
}

// TestCheckBrokenSymbols verifies that a file without symbols leaves the results of its kernel
// unknown, and that lines may end as on Windows.
func TestCheckBrokenSymbols(t *testing.T) {
	dir := checkedKernels(t)
	require.NoError(t, os.WriteFile(dir+"/old/map", nil, 0o644))
	require.NoError(t, os.WriteFile(dir+"/new/map", []byte("ffffffff81000100 T same\r\nffffffff81000200 t none\t[module]\r\n"), 0o644))
	status, stdout, stderr := checked(t, dir, "--symbols", dir+"/old/map", "--symbols", dir+"/new/map", "same(file)")
	require.Equal(t, exit.Failure, status, stderr)
	require.Equal(t, "  SPEC        old      new\n  same(file)  unknown  ok\n\n"+
		"old: same(file): "+dir+"/old/map: there are no symbols in it: copy /proc/kallsyms of a machine that runs the kernel\n", stdout)
}

// TestCheckFullOutput verifies that the other outputs are complete if one cannot be written.
func TestCheckFullOutput(t *testing.T) {
	dir := checkedKernels(t)
	status, stdout, stderr := checked(t, dir, "-o", "json=/dev/full", "-o", "junit="+dir+"/x.xml", "-o", "table", "same(file)")
	require.Equal(t, exit.Failure, status)
	require.Equal(t, "ksnoop: write the results: write /dev/full: no space left on device\n", stderr)
	require.Equal(t, "  SPEC        old  new\n  same(file)  ok   ok\n", stdout)
	text, err := os.ReadFile(dir + "/x.xml")
	require.NoError(t, err)
	require.Contains(t, string(text), "</testsuites>")
}

// TestCheckErrors verifies that mistakes on the command line give status 2, and that
// nothing is checked.
func TestCheckErrors(t *testing.T) {
	dir := checkedKernels(t)
	for _, tc := range []struct{ line, want string }{
		{"", "ksnoop: check needs a function, as in ksnoop check vfs_read (ksnoop help check explains more)\n"},
		{"same(", "ksnoop: ')' is missing\n"},
		{"--btf|DIR/none|same", "ksnoop: open DIR/none: no such file or directory\n"},
		{"--symbols|DIR/old/map|same", "ksnoop: --symbols and --btf are given 1 and 2 times: give one for each kernel, in the same order\n"},
		{"--kernel-features|6.1|--kernel-features|6.1|--kernel-features|6.1|same", "ksnoop: --kernel-features and --btf are given 3 and 2 times: give the first once, or once for each kernel\n"},
		{"--kernel-features|6.3|same", "ksnoop: --kernel-features is \"6.3\": it must be 5.10, 6.1, 6.12, 6.18 or 7.2\n"},
		{"-o|jsno|same", "ksnoop: --output is \"jsno\": did you mean \"json\"? it must be table, ktap, tap, junit, json or github\n"},
		{"-o|json|-o|ktap|same", "ksnoop: --output sends both json and ktap to stdout: give one of them a file, as in ktap=results\n"},
		{"-o|json=|same", "ksnoop: --output is \"json=\": name a file after =, as in json=results\n"},
		{"--btf|DIR/old/../old/btf|same", "ksnoop: --btf DIR/old/../old/btf is given twice: once is enough\n"},
		{"-f|/dev/null", "ksnoop: there is nothing in /dev/null: each line is empty, a comment or removed\n"},
		{"DIR/none.probes", "ksnoop: read specs: open DIR/none.probes: no such file or directory\n"},
		{"--btf=|same", "ksnoop: --btf has no value: ksnoop check --help explains it\n"},
	} {
		var words []string
		if tc.line != "" {
			words = strings.Split(strings.ReplaceAll(tc.line, "DIR", dir), "|")
		}
		status, stdout, stderr := checked(t, dir, words...)
		require.Equal(t, exit.Usage, status, tc.line)
		require.True(t, strings.HasPrefix(strings.ReplaceAll(stderr, dir, "DIR"), tc.want), "%s: %s", tc.line, stderr)
		require.Empty(t, stdout)
	}
}
