package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
)

// checkedKernels writes the types of two kernels, and their symbols. What
// differs between them is what differs between versions of Linux.
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
	write := func(name, symbols string, types ...btf.Type) {
		b, err := btf.NewBuilder(types, nil)
		require.NoError(t, err)
		raw, err := b.Marshal(nil, nil)
		require.NoError(t, err)
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "btf"), raw, 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "map"), []byte(symbols), 0o644))
	}
	oldFile := file(flags, btf.Member{Name: "pos", Type: integer, Offset: 32})
	write("old", `ffffffff81000100 T same
ffffffff81000200 t account_io
ffffffff81000300 T gone
ffffffff81000400 t inlined
ffffffff81000500 D limit
`,
		function("same", btf.FuncParam{Name: "file", Type: oldFile}, btf.FuncParam{Name: "count", Type: integer}),
		function("account_io", btf.FuncParam{Name: "file", Type: oldFile}),
		function("gone", btf.FuncParam{Name: "path", Type: oldFile}),
		function("inlined", btf.FuncParam{Name: "count", Type: integer}),
		tick)
	newFile := file(btf.Member{Name: "flags", Type: char}, btf.Member{Name: "position", Type: integer, Offset: 32})
	write("new", `ffffffff81000100 T same
ffffffff81000200 t __account_io
ffffffff81000300 t inlined.isra.0
ffffffff81000400 D limit
`,
		function("same", btf.FuncParam{Name: "idmap", Type: oldFile}, btf.FuncParam{Name: "file", Type: newFile}),
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
	status = run(append(args, words...), strings.NewReader(""), &out, &errors)
	return status, out.String(), errors.String()
}

// All reasons, told apart.
func TestCheck(t *testing.T) {
	dir := checkedKernels(t)
	specs := []string{
		"same(file->flags > 5)", "account_io(file)", "gone", "same(count > 1)", "same($arg3)", "same(file->pos)", "same(file->flags == 300)", "same(idmap->pos)",
		"tp:tick", "inlined", "same(file) if @limit", "ext4:ext4_read", "g*", "p:e same", "p:e same x=$arg9",
	}
	status, stdout, stderr := checked(t, dir, specs...)
	require.Equal(t, exitFailure, status)
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
old, new: ext4:ext4_read: read the BTF of module ext4: --btf has the types of vmlinux alone
new: g*: no function of this kernel matches 'g*' (those of a module take its name: MODULE:g*; tracepoints are tp:g*)
old, new: p:e same x=$arg9: same has no $arg9: it takes 2 (arguments count from $arg1)
`[1:], stdout)
}

// Symbols tell what has code, and as what.
func TestCheckSymbols(t *testing.T) {
	dir := checkedKernels(t)
	status, stdout, stderr := checked(t, dir, "--symbols", dir+"/old/map", "--symbols", dir+"/new/map",
		"inlined", "inlined.isra.0", "nocode", "same(file) if @limit", "same(file) if @limits", "account_io", "limit")
	require.Equal(t, exitFailure, status, stderr)
	require.Equal(t, `
  SPEC                   old          new
  inlined                ok           suffix only
  inlined.isra.0         no function  ok
  nocode                 no function  inlined
  same(file) if @limit   ok           ok
  same(file) if @limits  no variable  no variable
  account_io             ok           no function
  limit                  no function  no function

new: inlined: this kernel has inlined only as inlined.isra.0, with arguments that may differ from its type (to trace it all the same, name it so: inlined.isra.0)
old: inlined.isra.0: inlined.isra.0 has a type but no code in this kernel: it was inlined everywhere, or is start-up code that was freed
old: nocode: there is no function nocode in this kernel
new: nocode: nocode has a type but no code in this kernel: it was inlined everywhere, or is start-up code that was freed
old, new: same(file) if @limits: there is no variable 'limits' in this kernel (did you mean '@limit'?)
new: account_io: there is no function account_io in this kernel (did you mean '__account_io'? the name is part of account_io_start)
old, new: limit: limit is data, not a function (its content is '@limit' in the list of a function)
`[1:], stdout)
}

// Everything fits: status 0, and no reasons.
func TestCheckFits(t *testing.T) {
	status, stdout, stderr := checked(t, checkedKernels(t), "same(file->flags)", "same(file->flags)")
	require.Zero(t, status, stderr)
	require.Equal(t, "  SPEC               old  new\n  same(file->flags)  ok   ok\n", stdout)
}

// Results for programs, from a file of specs.
func TestCheckJSON(t *testing.T) {
	dir := checkedKernels(t)
	specs := filepath.Join(dir, "specs")
	require.NoError(t, os.WriteFile(specs, []byte("# comment\nsame(count)\n\nsame*\n"), 0o644))
	status, stdout, stderr := checked(t, dir, "-o", "json", "-f", specs)
	require.Equal(t, exitFailure, status, stderr)
	require.NoError(t, strictSchema(t, "results").Lines(stdout))
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

// Names that a terminal would obey, or that look the same on one.
func TestCheckHostileNames(t *testing.T) {
	dir := checkedKernels(t)
	for _, name := range []string{"\x1b", "\x07"} {
		require.NoError(t, os.Symlink("new/btf", filepath.Join(dir, name)))
	}
	status, stdout, _ := checked(t, dir, "--btf", dir+"/\x1b", "--btf", dir+"/\x07", "same(\x1bx)", "same(file)")
	require.Equal(t, exitUsage, status)
	require.Empty(t, stdout)
	status, stdout, stderr := checked(t, dir, "--btf", dir+"/\x1b", "--btf", dir+"/\x07", "same(idmap)")
	require.Equal(t, exitFailure, status, stderr)
	require.Regexp(t, `(?m)^  same\(idmap\)  no argument  ok       ok     ok$`, stdout)
}

// A file of types that is broken leaves its kernel open; the others are checked.
func TestCheckBroken(t *testing.T) {
	dir := checkedKernels(t)
	require.NoError(t, os.WriteFile(dir+"/old/btf", []byte("\x9f\xebxxxxxxxxxxxxxxxxxxxxxxxxxxx\x1b"), 0o644))
	status, stdout, stderr := checked(t, dir, "same(file)")
	require.Equal(t, exitFailure, status, stderr)
	require.Equal(t, "  SPEC        old      new\n  same(file)  unknown  ok\n\n"+
		"old: same(file): read the types of "+dir+"/old/btf: it ends too early\n", stdout)
}

// What is wrong with the command line is status 2, and nothing is checked.
func TestCheckErrors(t *testing.T) {
	dir := checkedKernels(t)
	for _, tc := range []struct{ line, want string }{
		{"", "ksnoop: no function to check: name one, as in ksnoop check vfs_read (ksnoop help explains more)\n"},
		{"same(", "ksnoop: ')' is missing\n"},
		{"--btf|DIR/none|same", "ksnoop: open DIR/none: no such file or directory\n"},
		{"--symbols|DIR/old/map|same", "ksnoop: --symbols and --btf are given 1 and 2 times: give one for each kernel, in the same order\n"},
		{"--kernel-features|6.1|--kernel-features|6.1|--kernel-features|6.1|same", "ksnoop: --kernel-features and --btf are given 3 and 2 times: give the first once, or once for each kernel\n"},
		{"--kernel-features|6.3|same", "ksnoop: --kernel-features is \"6.3\": it must be 5.10, 6.1, 6.12, 6.18 or 7.2\n"},
		{"-o|jsno|same", "ksnoop: --output is \"jsno\": did you mean \"json\"? it must be table, ktap, tap, junit, json or github\n"},
		{"-o|json|-o|ktap|same", "ksnoop: --output sends both json and ktap to stdout: give one of them a file, as in ktap=results\n"},
		{"-o|json=|same", "ksnoop: --output is \"json=\": name a file behind =, as in json=results\n"},
		{"--btf|DIR/old/../old/btf|same", "ksnoop: --btf DIR/old/../old/btf is given twice: once is enough\n"},
		{"-f|/dev/null", "ksnoop: there is nothing in /dev/null: each line is empty, a comment or taken back\n"},
		{"DIR/none.probes", "ksnoop: read specs: open DIR/none.probes: no such file or directory\n"},
		{"--btf=|same", "ksnoop: --btf has no value: ksnoop check --help explains it\n"},
	} {
		var words []string
		if tc.line != "" {
			words = strings.Split(strings.ReplaceAll(tc.line, "DIR", dir), "|")
		}
		status, stdout, stderr := checked(t, dir, words...)
		require.Equal(t, exitUsage, status, tc.line)
		require.True(t, strings.HasPrefix(strings.ReplaceAll(stderr, dir, "DIR"), tc.want), "%s: %s", tc.line, stderr)
		require.Empty(t, stdout)
	}
}

func TestFileNames(t *testing.T) {
	for files, want := range map[string]string{
		"a/b":                             "b",
		"/k/5.10 /k/6.1":                  "5.10 6.1",
		"/k/5.10/btf /k/6.1/btf":          "5.10 6.1",
		"5.10/x/btf 6.1/x/btf":            "5.10 6.1",
		"/k/a/5.10 /k/b/5.10 /k/b/6.1":    "a/5.10 b/5.10 b/6.1",
		"a/1/btf b/1/btf b/2/btf":         "a/1 b/1 b/2",
		"btf x/btf":                       "btf x/btf",
		"btf btf":                         "btf btf",
		"./x/../btf vmlinux":              "btf vmlinux",
		"/sys/kernel/btf/vmlinux vmlinux": "btf/vmlinux vmlinux",
	} {
		require.Equal(t, want, strings.Join(fileNames(strings.Split(files, " ")), " "), files)
	}
}
