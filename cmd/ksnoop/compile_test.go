package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
)

var update = flag.Bool("update", false, "write the golden files")

// TestCompileGolden covers all output of compile for a spec with all kinds of parts.
func TestCompileGolden(t *testing.T) {
	const golden = "testdata/compile.txt"
	status, stdout, stderr := ksnoop(t, fixture.Write(t), "compile|--kernel-features|6.1|vfs_read(file->flags & 2, file, return < 0)")
	require.Zero(t, status, stderr)
	require.Empty(t, stderr)
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(stdout), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), stdout)
}

// TestCompileChoices covers how functions are attached, by kernel features and
// options.
func TestCompileChoices(t *testing.T) {
	types := fixture.Write(t)
	const both = "vfs_read(file->flags, return < 0)"
	for line, want := range map[string]string{
		"--kernel-features|5.10|" + both:              "vfs_read: fentry and fexit: the cheapest kind, and the signature allows it\n",
		"--kernel-features|6.18|" + both:              "vfs_read: kprobe.session: this kernel preempts tasks inside fentry programs",
		both:                                          "vfs_read: kprobe.session: this kernel preempts tasks inside fentry programs",
		"--attach|kprobe|" + both:                     "vfs_read: kprobe and kretprobe: asked for\n",
		"--attach|fentry|vfs_read(count)":             "vfs_read: fentry: asked for\n",
		"-s|--kernel-features|6.1|vfs_open|vfs_read":  "vfs_open, vfs_read: fentry and fexit: the cheapest",
		"--attach|kprobe|tp:tick => vfs_open on $tid": "vfs_open: kprobe",
		"tp:tick":                                  "tp:tick: tp_btf: it is a tracepoint\n",
		"--kernel-features|6.12|vfs_print(fmt)":    "vfs_print: kprobe.multi: fentry refuses a variable number of arguments\n",
		"--kernel-features|6.1|vfs_*(file)":        "vfs_open, vfs_read: fentry: the cheapest",
		"--kernel-features|6.1|-p|7|vfs_open|-t|8": "vfs_open: fentry and fexit: the cheapest",
	} {
		status, stdout, stderr := ksnoop(t, types, "compile|"+line)
		require.Zero(t, status, stderr)
		require.Contains(t, stdout, want, line)
	}
}

// TestDocTracepoints verifies that the tracepoint lines of the page about kprobe_events fit
// the types of a kernel.
func TestDocTracepoints(t *testing.T) {
	page, err := os.ReadFile("../../docs/kprobe-events.md")
	require.NoError(t, err)
	lines := regexp.MustCompile("(?m)^t:[^#\n]*").FindAllString(string(page), -1)
	require.NotEmpty(t, lines)
	char := &btf.Int{Name: "char", Size: 1, Encoding: btf.Signed}
	task := &btf.Pointer{Target: &btf.Struct{Name: "task_struct", Size: 16, Members: []btf.Member{
		{Name: "comm", Type: &btf.Array{Type: char, Index: &btf.Int{Name: "int", Size: 4}, Nelems: 16}},
	}}}
	data := &btf.Pointer{Target: &btf.Void{}}
	types := fixture.Write(t,
		&btf.Typedef{Name: "btf_trace_sched_switch", Type: &btf.Pointer{Target: &btf.FuncProto{Return: &btf.Void{},
			Params: []btf.FuncParam{{Type: data}, {Type: task}, {Type: task}}}}},
		&btf.Func{Name: "__bpf_trace_sched_switch", Type: &btf.FuncProto{Return: &btf.Void{},
			Params: []btf.FuncParam{{Name: "__data", Type: data}, {Name: "prev", Type: task}, {Name: "next", Type: task}}}})
	for _, line := range lines {
		status, _, stderr := ksnoop(t, types, "compile|"+line)
		require.Zero(t, status, stderr)
	}
}

// TestCompileErrors verifies that mistakes on the command line, in specs or in the
// choice of attach kind give status 2, and nothing on stdout.
func TestCompileErrors(t *testing.T) {
	types := fixture.Write(t)
	for _, tc := range []struct{ line, want string }{
		{"--attach|fentri|vfs_read", "ksnoop: --attach is \"fentri\": did you mean \"fentry\"? it must be fentry, kprobe, kprobe.multi or kprobe.session\n"},
		{"--attach|tracepoint|vfs_read", "ksnoop: --attach is \"tracepoint\": it must be fentry, kprobe, kprobe.multi or kprobe.session\n"},
		{"--kernel-features|6.3|vfs_read", "ksnoop: --kernel-features is \"6.3\": it must be 5.10, 6.1, 6.12, 6.18 or 7.2\n"},
		{"--max-bytes|x|vfs_read", "ksnoop: --max-bytes is \"x\": it must be a number from 1 to 1048576\n"},
		{"--attach|fentry|vfs_print(fmt)|tp:tick", "ksnoop: attach fentry to vfs_print: fentry refuses a variable number of arguments\n"},
		{"--rate|5|vfs_read(count())", "ksnoop: --rate is for events, and these specs have a table in place of them: leave it out\n"},
		{"-p|5|--tree|-t|6|vfs_read", "ksnoop: --tree follows processes, and --tid is a thread: name its process with --pid\n"},
		{"--attach|kprobe|tp:tick|t:tack tick", "ksnoop: --attach kprobe is for functions, and tp:tick is a tracepoint\n"},
		{"--attach|kprobe|t tick|tp:tick() => tp:tick() on $tid", "ksnoop: --attach kprobe is for functions, and tp:tick is a tracepoint\n"},
		{"-s|iter:task|vfs_read", "ksnoop: a chain is made of functions, and task is an iterator\n  iter:task\n       ^^^^\n"},
		{"-s|vfs_read(count, diff(file))|vfs_open", "ksnoop: 'diff(file)' is of both sides of a call, and in a chain each side is an event of its own\n" +
			"  vfs_read(count, diff(file))\n                  ^^^^^^^^^^\n  after(file) is of the return alone\n"},
		{"vfs_raed|vfs_read(cuont)", "ksnoop: there is no function vfs_raed in this kernel\n  vfs_raed\n  ^^^^^^^^\n  did you mean 'vfs_read'?\n" +
			"ksnoop: vfs_read has no argument 'cuont'\n  vfs_read(cuont)\n           ^^^^^\n  did you mean 'count'?\n"},
		{"infos", "ksnoop: there is no function infos in this kernel\n  infos\n  ^^^^^\n  if infos was meant as a command: did you mean 'info'?\n"},
	} {
		status, stdout, stderr := ksnoop(t, types, "compile|"+tc.line)
		require.Equal(t, exit.Usage, status, tc.line)
		require.Equal(t, tc.want, stderr, tc.line)
		require.Empty(t, stdout)
	}
}

// TestOneErrorObject verifies that the command that a word may stand for is a hint of the
// one error.
func TestOneErrorObject(t *testing.T) {
	types := fixture.Write(t)
	_, _, stderr := ksnoop(t, types, "compile|--errors|json|infos")
	require.Equal(t, `{"type":"error","version":1,"status":2,"message":"there is no function infos in this kernel",`+
		`"hint":"if infos was meant as a command: did you mean 'info'?","spec":"infos","start":0,"end":5}`+"\n", stderr)
}

// TestCompileNotes verifies that stderr tells which functions of globs are left out.
func TestCompileNotes(t *testing.T) {
	types := fixture.Write(t)
	for line, want := range map[string]string{
		"vfs_*(file)":            "ksnoop: vfs_*: 2 functions are traced, 2 left out (1: it has a signature that BTF does not describe: parameter x: type *btf.Fwd: type is unsized; 1: it has no argument 'file')\n",
		"vfs_r*":                 "ksnoop: vfs_r*: 1 function is traced\n",
		"tp:t*":                  "ksnoop: tp:t*: 1 tracepoint is traced\n",
		"vfs_[or]*(path)":        "ksnoop: vfs_[or]*: 1 function is traced, 1 left out: it has no argument 'path'\n",
		"vfs_[or]*(path)|vfs_r*": "ksnoop: vfs_[or]*: 1 function is traced\nksnoop: vfs_r*: 1 function is traced\nksnoop: of all these, 1 left out: it has no argument 'path'\n",
		"vfs_read(file->flags)":  "",
	} {
		status, _, stderr := ksnoop(t, types, "compile|"+line)
		require.Zero(t, status, stderr)
		require.Equal(t, want, stderr, line)
	}
}

// TestEachCondition verifies that of several --comm or --uid one is enough, and that both
// options must hold.
func TestEachCondition(t *testing.T) {
	compiled := func(line string) string {
		status, stdout, stderr := ksnoop(t, fixture.Write(t), "compile|"+line)
		require.Zero(t, status, stderr)
		return stdout
	}
	specs := filepath.Join(t.TempDir(), "specs")
	for options, condition := range map[string]string{
		"--comm|a*|--comm|*b":         `$comm ~ "a*" || $comm ~ "*b"`,
		"--uid|7|--uid|8|--uid|9":     "$uid == 7 || $uid == 8 || $uid == 9",
		"--comm|a*|--uid|7|--comm|*b": `$uid == 7 && ($comm ~ "a*" || $comm ~ "*b")`,
	} {
		require.NoError(t, os.WriteFile(specs, []byte("vfs_read() if "+condition+"\n"), 0o644))
		require.Equal(t, compiled("-f|"+specs), compiled(options+"|vfs_read()"))
	}
}
