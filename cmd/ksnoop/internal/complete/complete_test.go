package complete

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/btfdump/rawbtf"
	"github.com/ksnoop/ksnoop/btfdump/rawbtf/rawtest"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/getopt"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// made is a system made up for tests.
type made struct {
	t     testing.TB
	raw   []byte // of vm
	vm    *rawbtf.Types
	extra map[string]*rawbtf.Types
}

func (m *made) types(file string) typeSource {
	if file != "" {
		return &typeFiles{kernelFile: file, read: map[string]*rawbtf.Types{}}
	}
	return m
}
func (m *made) kernel() *rawbtf.Types { return m.vm }
func (m *made) modules() (all []string) {
	for name := range m.extra {
		all = append(all, name)
	}
	return all
}
func (m *made) module(name string) *rawbtf.Types { return m.extra[name] }
func (*made) processes() []*candidate {
	return []*candidate{{text: "1", note: "init"}, {text: "12", note: "cat"}}
}
func (*made) threadNames() []*candidate { return []*candidate{{text: "cat"}, {text: "init"}} }
func (*made) users() []*candidate       { return []*candidate{{text: "root", note: "0"}} }

// madeSystem returns a system whose kernel has structures of all kinds, and a module.
func madeSystem(t testing.TB, more ...btf.Type) *made {
	integer := &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	char := &btf.Int{Name: "char", Size: 1, Encoding: btf.Signed}
	pointer := func(to btf.Type) btf.Type { return &btf.Pointer{Target: to} }
	function := func(name string, result btf.Type, params ...btf.FuncParam) btf.Type {
		return &btf.Func{Name: name, Linkage: btf.GlobalFunc, Type: &btf.FuncProto{Return: result, Params: params}}
	}
	mode := &btf.Enum{Name: "mode", Size: 4, Values: []btf.EnumValue{{Name: "MODE_A"}, {Name: "MODE_B", Value: 1}}}
	dentry := &btf.Struct{Name: "dentry", Size: 16, Members: []btf.Member{{Name: "d_name", Type: pointer(char)}, {Name: "d_flags", Type: integer, Offset: 64}}}
	path := &btf.Struct{Name: "path", Size: 8, Members: []btf.Member{{Name: "dentry", Type: &btf.Const{Type: pointer(dentry)}}}}
	inner := &btf.Union{Size: 8, Members: []btf.Member{{Name: "f_hidden", Type: integer}, {Name: "f_mode", Type: mode}}}
	file := &btf.Struct{Name: "file", Size: 40, Members: []btf.Member{
		{Name: "f_flags", Type: integer}, {Name: "f_path", Type: path, Offset: 64}, {Type: inner, Offset: 128},
		{Name: "f_all", Type: &btf.Array{Type: path, Index: integer, Nelems: 2}, Offset: 192},
	}}
	fileT := &btf.Typedef{Name: "file_t", Type: file}
	kernel := []btf.Type{
		function("vfs_read", integer, btf.FuncParam{Name: "file", Type: pointer(fileT)}, btf.FuncParam{Name: "count", Type: integer}),
		function("vfs_readv", integer, btf.FuncParam{Name: "fd", Type: integer}),
		function("vfs_open", pointer(file), btf.FuncParam{Name: "path", Type: pointer(&btf.Const{Type: path})}, btf.FuncParam{Name: "mode", Type: mode}),
		function("hidden\x1b", integer),
		function("hook", &btf.Void{}, btf.FuncParam{Name: "file", Type: pointer(file)}),
		&btf.Var{Name: "jiffies", Type: integer, Linkage: btf.GlobalVar},
		&btf.Typedef{Name: "btf_trace_tick", Type: pointer(&btf.FuncProto{Return: &btf.Void{}, Params: []btf.FuncParam{{Type: pointer(&btf.Void{})}, {Type: integer}}})},
		function("__bpf_trace_tick", &btf.Void{}, btf.FuncParam{Name: "__data", Type: pointer(&btf.Void{})}, btf.FuncParam{Name: "cpu", Type: integer}),
		&btf.Typedef{Name: "btf_trace_tock", Type: pointer(&btf.FuncProto{Return: &btf.Void{}, Params: []btf.FuncParam{{Type: pointer(&btf.Void{})}, {Type: pointer(file)}}})},
	}
	meta := pointer(&btf.Struct{Name: "bpf_iter_meta", Size: 8, Members: []btf.Member{{Name: "seq_num", Type: integer}}})
	kernel = append(kernel,
		function("bpf_iter_file", integer, btf.FuncParam{Name: "meta", Type: meta}, btf.FuncParam{Name: "file", Type: pointer(fileT)}),
		function("bpf_iter_find", pointer(file), btf.FuncParam{Name: "meta", Type: meta}, btf.FuncParam{Name: "fd", Type: integer}),
		function("bpf_iter_fill", integer, btf.FuncParam{Name: "fd", Type: integer}, btf.FuncParam{Name: "meta", Type: meta}))
	base, err := btf.NewBuilder(append(kernel, more...), nil)
	require.NoError(t, err)
	vmRaw, err := base.Marshal(nil, nil)
	require.NoError(t, err)
	vm, err := rawbtf.Index(vmRaw, nil)
	require.NoError(t, err)
	module, err := btf.NewBuilder([]btf.Type{
		function("ext_open", integer, btf.FuncParam{Name: "inode", Type: pointer(&btf.Struct{Name: "inode", Size: 4, Members: []btf.Member{{Name: "i_ino", Type: integer}}})}),
	}, nil)
	require.NoError(t, err)
	raw, err := module.Marshal(nil, nil)
	require.NoError(t, err)
	ext, err := rawbtf.Index(raw, nil)
	require.NoError(t, err)
	return &made{t, vmRaw, vm, map[string]*rawbtf.Types{"ext4": ext}}
}

// testCompleter returns a completer for command lines like those of ksnoop.
func testCompleter(system systemSource) *Completer {
	option := func(name, short, usage string) Option {
		o := Option{Option: getopt.Option{Name: name, TakesValue: strings.Contains(usage, "`")}, Short: short, Usage: usage}
		if o.TakesValue {
			o.Value = strings.Split(usage, "`")[1]
		}
		if _, list, ok := strings.Cut(usage, "`: "); ok {
			o.Choices = strings.Fields(strings.NewReplacer(",", "", " or", "").Replace(list))
		}
		return o
	}
	btf, attach := option("btf", "", "types in `FILE`"), option("attach", "", "attach by `KIND`: fentry, kprobe, kprobe.multi or kprobe.session")
	features := option("kernel-features", "", "assume `VERSION`: 5.10, 6.1, 6.12, 6.18 or 7.2")
	format := option("output", "o", "print `FORMAT`: text or json")
	return &Completer{types: "btf", system: system, commands: []*Command{
		{Name: "trace", Operands: "SPEC... [-- COMMAND]", Options: []Option{
			option("output", "o", "print events as `FORMAT`: text, compact or json"), attach, option("file", "f", "read `FILE`"), option("pid", "p", "only `PID`"),
			option("comm", "", "only `GLOB`"), option("uid", "", "only `USER`"), option("cgroup", "", "only `DIRECTORY`"), option("for", "", "for `DURATION`"),
			option("time", "", "as `CLOCK`: mono, wall or delta"), option("color", "", "`WHEN`: auto, always or never"),
		}},
		{Name: "follow", Operands: "SPEC [-- COMMAND]", Options: []Option{option("in", "", "only `FUNCTION`, a glob")}},
		{Name: "info", Operands: "FUNCTION|TYPE...", Options: []Option{btf}},
		{Name: "list", Operands: "GLOB...", Options: []Option{btf, features}},
		{Name: "compile", Operands: "SPEC...", Options: []Option{btf, features, attach}},
		{Name: "print", Operands: "EXPR...", Options: []Option{btf}},
		{Name: "watch", Operands: "MEMORY... [-- COMMAND]"},
		{Name: "dump", Operands: "TYPE", Options: []Option{btf, format}},
		{Name: "doctor", Options: []Option{format, option("self-test", "", "trace known calls")}},
		{Name: "test", Operands: "FILE [-- COMMAND]"},
		{Name: "check", Operands: "SPEC|PROBEFILE...", Options: []Option{btf}},
		{Name: "completion", Operands: "bash|zsh|fish"},
		{Name: "help", Operands: "[COMMAND|spec]"},
	}}
}

// completions returns the completions of the last word, without the text before the
// name that is completed.
func completions(system systemSource, words ...string) string {
	a := testCompleter(system).complete(words)
	var texts []string
	for _, c := range a.candidates {
		texts = append(texts, c.text)
	}
	return strings.TrimSpace(string(a.kind) + ": " + strings.Join(texts, " | "))
}

// TestCompleteSpec covers completions of specs. A dot stands for the typed text.
func TestCompleteSpec(t *testing.T) {
	system := madeSystem(t)
	for _, tc := range []struct{ word, want string }{
		{"vf", "parts: vfs_open | vfs_read | vfs_readv"},
		{"vfs_o", "parts: vfs_open | vfs_open("},
		{"vfs_read", "parts: . | .v"},
		{"vfs_readv", "parts: . | .("},
		{"hid", "parts:"},
		{"nosuch", "parts:"},
		{"vfs_*", "parts:"},
		{"vmlinux:vfs_o", "parts: vmlinux:vfs_open | vmlinux:vfs_open("},
		{"ex", "parts: ext4: | ext_open"},
		{"ext4:", "parts: .ext_open | .ext_open("},
		{"ext4:ext_open(inode->", "parts: .i_ino | .i_ino, | .i_ino)"},
		{"ext_open(", "parts: .inode | .return"},
		{"tp", "words: tp:"},
		{"tp:ti", "parts: tp:tick | tp:tick("},
		{"tp:tick(", "parts: .cpu | .cpu, | .cpu)"},
		{"tp:tock(", "parts: .$arg1 | .$arg1-> | .$arg1, | .$arg1)"},
		{"tp:tock($arg1->f_fl", "parts: .ags | .ags, | .ags)"},
		{"ite", "words: iter:"},
		{"iter:fi", "parts: iter:file | iter:file("},
		{"iter:file(", "parts: .file | .meta"},
		{"iter:file(file->f_fl", "parts: .ags | .ags, | .ags)"},
		{"vfs_read(", "parts: .count | .file | .return"},
		{"vfs_read (", "parts: .count | .file | .return"},
		{"vfs_read(file", "parts: . | .-> | ., | .)"},
		{"vfs_read(count, ", "parts: .count | .file | .return"},
		{"vfs_read(count > 3, fi", "parts: .le | .le-> | .le, | .le)"},
		{"vfs_read(file->", "parts: .f_all | .f_flags | .f_hidden | .f_mode | .f_path"},
		{"vfs_read(file->f_path", "parts: . | .. | ., | .)"},
		{"vfs_read(file->f_path.", "parts: .dentry | .dentry-> | .dentry, | .dentry)"},
		{"vfs_read(file->f_path.dentry->d_f", "parts: .lags | .lags, | .lags)"},
		{"vfs_read(file->f_all[1].d", "parts: .entry | .entry-> | .entry, | .entry)"},
		{"vfs_read(file[0].f_fl", "parts: .ags | .ags, | .ags)"},
		{"vfs_read((*file).f_fl", "parts: .ags | .ags, | .ags)"},
		{"vfs_read(((struct dentry *)count)->d_f", "parts: .lags | .lags, | .lags)"},
		{"vfs_read(((file_t *)count)->f_fl", "parts: .ags | .ags, | .ags)"},
		{"vfs_read((struct f", "parts: .ile | .ile *) | .ile)"},
		{"vfs_read((struct file *)c", "parts: .ount | .ount, | .ount)"},
		{"vfs_read(file.", "parts:"},
		{"vfs_read(count->", "parts:"},
		{"vfs_read(nosuch->", "parts:"},
		{"vfs_open(return->f_fl", "parts: .ags | .ags, | .ags)"},
		{"vfs_open($arg1->d", "parts: .entry | .entry-> | .entry, | .entry)"},
		{"vfs_open($retval->f_fl", "parts: .ags | .ags, | .ags)"},
		{"tp:tick($", "parts: .arg1 | .cgroup | .comm | .container | .cpu | .kstack | .pid | .ppid | .task | .tid | .uid | .ustack"},
		{"vfs_read => tp:tick($d", "parts: .uration | .uration, | .uration)"},
		{"iter:file($", "parts: .arg1 | .arg2"},
		{"hook($re", "parts:"},
		{"vfs_read($", "parts: .arg1 | .arg2 | .cgroup | .comm | .container | .cpu | .duration | .kstack | .pid | .ppid | .retval | .task | .tid | .uid | .ustack"},
		{"vfs_read(@jif", "parts: .fies | .fies, | .fies)"},
		{"vfs_read(count:x1", "parts: .6 | .6, | .6)"},
		{"vfs_read(count:ust", "parts: .ring | .ring, | .ring)"},
		{"vfs_read(file->f_mode == ", "parts: .MODE_A | .MODE_B"},
		{"vfs_read(return == -EINT", "parts: .R | .R, | .R)"},
		{"vfs_read(file == ", "parts: .NULL | .NULL, | .NULL)"},
		{`vfs_read($comm == "c`, "parts:"},
		{`vfs_read($comm == "c\" `, "parts:"},
		{`vfs_read(count == '"', cou`, "parts: .nt | .nt, | .nt)"},
		{`vfs_read($comm == "a\"b", cou`, "parts: .nt | .nt, | .nt)"},
		{`vfs_read($comm == "a=>b", cou`, "parts: .nt | .nt, | .nt)"},
		{`vfs_read($comm == "a)", cou`, "parts: .nt | .nt, | .nt)"},
		{`vfs_read($comm == "x if y", cou`, "parts: .nt | .nt, | .nt)"},
		{`vfs_read($comm == "(") `, "parts: .=>  | .if "},
		{`vfs_read => vfs_open($comm == "a on b", mo`, "parts: .de | .de, | .de)"},
		{"vfs_read(count) ", "parts: .=>  | .if "},
		{"vfs_read(count) => vfs_o", "parts: .pen | .pen("},
		{"vfs_read => tp:ti", "parts: .ck | .ck("},
		{"vfs_read(count) => vfs_open(mo", "parts: .de | .de, | .de)"},
		{"vfs_read(count) => vfs_open() ", "parts: .if  | .on "},
		{"vfs_read(count) => vfs_open(mode) on fi", "parts: .le | .le-> | .le =="},
		{"vfs_read(count) => vfs_open(mode) on file->f_fl", "parts: .ags | .ags =="},
		{"vfs_read(count) => vfs_open(mode) on file:", "parts:"},
		{"vfs_read(count) => vfs_open(mode) on aft", "parts:"},
		{"vfs_read(count) => vfs_open(aft", "parts:"},
		{"vfs_read => vfs_open(mode) on file == mo", "words: .de"},
		{"vfs_read => vfs_open(mode) on file == pa", "parts: .th | .th->"},
		{"vfs_read => vfs_open(mode) on file == (struct pa", "parts: .th | .th *) | .th)"},
		{"vfs_read(count, hi", "words: .st("},
		{"vfs_read(su", "words: .m("},
		{"vfs_read(aft", "words: .er("},
		{"vfs_read(count > 3) if hi", "parts:"},
		{"vfs_read(count + fi", "parts: .le | .le-> | .le, | .le)"},
		{"vfs_read(count - fi", "parts: .le | .le-> | .le, | .le)"},
		{"vfs_read(count << fi", "parts: .le | .le-> | .le, | .le)"},
		{"vfs_read(return != co", "parts: .unt | .unt, | .unt)"},
		{"vfs_read(count())", "parts:"},
		{"vfs_read(count)", "parts:"},
		{"vfs_read(count) if file->f_fl", "parts: .ags | .ags == | .ags != | .ags < | .ags > | .ags &"},
		{"vfs_read if !(cou", "parts: .nt | .nt == | .nt != | .nt < | .nt > | .nt &"},
		{"vfs_read(count) if count > 3 && fi", "parts: .le | .le-> | .le == | .le != | .le < | .le > | .le &"},
		{"p:one vfs_re", "parts: p:one vfs_read | p:one vfs_readv"},
		{"p vfs_o", "parts: p vfs_open | p vfs_open "},
		{"p vfs_open x=$ar", "parts: .g1 | .g2"},
		{"p assembly x=$ar", "parts: .g1 | .g2 | .g3 | .g4 | .g5 | .g6"},
		{"p vfs_open ", "parts: .$arg1 | .$arg2 | .$comm | .$stack | .mode | .path"},
		{"p vfs_open+0%return ", "parts: .$arg1 | .$arg2 | .$comm | .$retval | .$stack | .mode | .path"},
		{"p vfs_open+4 ", "parts: .$comm | .$stack"},
		{"p assembly+4 x=$ar", "parts:"},
		{"p vfs_open x=+0($", "parts: .arg1 | .stack"},
		{"p vfs_read x=+0(c", "parts:"},
		{"p vfs_read x=+0(file->f_", "parts: .path | .path."}, // only its members may be addresses
		{"r vfs_open $r", "parts: .etval | .etval  | .etval:"},
		{"f vfs_open $", "parts: .arg1 | .arg2 | .comm | .retval | .stack"},
		{"f vfs_open%return pa", "parts: .th | .th-> | .th  | .th:"},
		{"r __bpf_trace_tick $", "parts: .arg1 | .arg2 | .comm | .stack"},
		{"r assembly $re", "parts: .tval | .tval  | .tval:"},
		{"t tick $", "parts: .arg1 | .comm"},
		{"p vfs_open x=mo", "parts: .de | .de  | .de:"},
		{"p vfs_open x=$arg2:us", "parts: .tring | .tring "},
		{"p vfs_open x=$arg2:%p", "parts: .D | .d"},
		{"p vfs_open pa", "parts: .th | .th-> | .th  | .th:"},
		{"p vfs_open path->dentry->d_f", "parts: .lags | .lags  | .lags:"},
		{"p vfs_open name=path->dentry->d_name:string $arg1->d", "parts: .entry | .entry-> | .entry  | .entry:"},
		{"p vfs_read +0(file->f_path.d", "parts: .entry | .entry-> | .entry)"},
		{"p vfs_read +0(file)->f_fl", "parts:"},
		{"p vfs_read +8(+0(fi", "parts: .le | .le-> | .le)"},
		{"p vfs_read @jif", "parts: .fies | .fies  | .fies:"},
		{`p vfs_read x=\"a =:b" cou`, "parts: .nt | .nt  | .nt:"},
		{"r:one vfs_open $retval->f_fl", "parts: .ags | .ags  | .ags:"},
		{"r:one vfs_open mo", "parts: .de | .de  | .de:"},
		{"p vfs_read file n=count $arg1 if ", "parts: .COMM | .CPU | .arg3 | .comm | .common_cpu | .common_pid | .cpu | .file | .n"},
		{"p vfs_read file if fi", "parts: .le | .le == | .le != | .le < | .le > | .le &"},
		{"p vfs_read $arg* if (fi", "parts: .le | .le == | .le != | .le < | .le > | .le &"},
		{"p vfs_read file n=count if file == n", "parts:"},
		{"p vfs_read file if file->", "parts:"},
		{"p ext4:ext_open inode->i", "parts: ._ino | ._ino  | ._ino:"},
		{"t tick cp", "parts: .u | .u  | .u:"},
		{"t tock $arg1->f_fl", "parts: .ags | .ags  | .ags:"},
		{"t tic", "parts: t tick | t tick "},
	} {
		got := completions(system, tc.word)
		want := strings.ReplaceAll(tc.want, " .", " "+tc.word)
		require.Equal(t, strings.TrimSpace(want), got, tc.word)
	}
}

// TestCompleteLine covers completions of command lines.
func TestCompleteLine(t *testing.T) {
	system := madeSystem(t)
	all := ""
	for _, c := range testCompleter(system).commands[:12] {
		all += c.Name + " | "
	}
	for _, tc := range []struct{ line, want string }{
		{"", "words: " + all + "help"},
		{"li", "words: list"},
		{"list vfs_o", "words: vfs_open"},
		{"info vfs_read(", "parts:"},
		{"follow vfs_read(co", "parts: vfs_read(count | vfs_read(count, | vfs_read(count)"},
		{"follow --in vfs_o", "words: vfs_open"},
		{"compile vfs_read(co", "parts: vfs_read(count | vfs_read(count, | vfs_read(count)"},
		{"-p 1 vfs_read vfs_o", "parts: vfs_open | vfs_open("},
		{"--att", "words: --attach"},
		{"--attach ", "words: fentry | kprobe | kprobe.multi | kprobe.session"},
		{"--attach=kprobe.", "words: --attach=kprobe.multi | --attach=kprobe.session"},
		{"-o ", "words: text | compact | json"},
		{"dump -o ", "words: text | json"},
		{"doctor -o ", "words: text | json"},
		{"doctor ", "words:"},
		{"doctor --s", "words: --self-test"},
		{"--time ", "words: mono | wall | delta"},
		{"--color a", "words: auto | always"},
		{"-p ", "words: 1 | 12"},
		{"--comm c", "words: cat"},
		{"--uid r", "words: root"},
		{"--btf ", "files:"},
		{"-f ", "files:"},
		{"test ", "files:"},
		{"test tcp.probes -- mkf", "command:"},
		{"check ", "files:"},
		{"check tcp", "files:"},
		{"check vfs_o", "parts: vfs_open | vfs_open("},
		{"--cgroup ", "directories:"},
		{"list --kernel-features 6", "words: 6.1 | 6.12 | 6.18"},
		{"vfs_read -- ", "command:"},
		{"vfs_read -- ls -", "command:"},
		{"list -- vfs_o", "words: vfs_open"},
		{"dump fil", "parts: file | file_t"},
		{"dump mod", "words: mode"},
		{"help ", "words: " + all + "spec"},
		{"help sp", "words: spec"},
		{"completion ", "words: bash | zsh | fish"},
		{"--for ", "words:"},
		{"--nosuch x", "parts:"},
	} {
		require.Equal(t, tc.want, completions(system, strings.Split(tc.line, " ")...), tc.line)
	}
	require.Equal(t, "parts: (struct file | (struct file *) | (struct file)", completions(system, "print", "(struct fil"))
	require.Equal(t, "parts: ((struct file *)0xff10)->f_all | ((struct file *)0xff10)->f_flags | ((struct file *)0xff10)->f_hidden | ((struct file *)0xff10)->f_mode | "+
		"((struct file *)0xff10)->f_path", completions(system, "print", "((struct file *)0xff10)->f_"))
	require.Equal(t, "parts: $task | $task-> | $task,", completions(system, "print", "$ta"))
	require.Equal(t, "parts: $cgroup | $comm | $container | $cpu | $pid | $ppid | $task | $tid | $uid", completions(system, "print", ""))
	require.Equal(t, "parts: @jiffies | @jiffies,", completions(system, "print", "@ji"))
	require.Equal(t, "parts: (int)@jiffies, $pid | (int)@jiffies, $pid,", completions(system, "print", "(int)@jiffies, $pi"))
	require.Equal(t, "parts: @jiffies | @jiffies,", completions(system, "watch", "@ji"))
	require.Equal(t, "parts: ((struct path *)0xff10)->dentry | ((struct path *)0xff10)->dentry-> | ((struct path *)0xff10)->dentry,",
		completions(system, "watch", "((struct path *)0xff10)->d"))
	require.Equal(t, "parts: vfs_open(path->dentry->d_flags | vfs_open(path->dentry->d_flags, | vfs_open(path->dentry->d_flags)", completions(system, "watch", "vfs_open(path->dentry->d_f"))
	require.Equal(t, "words: struct file", completions(system, "dump", "struct fi"))
	require.Equal(t, "parts:", completions(system, "compile", "--btf", "/no/such", "vfs"))
}

// TestCompleteMany verifies that of many functions only the next part of each name
// is shown.
func TestCompleteMany(t *testing.T) {
	var many []btf.Type
	for i := range 30 {
		for j := range 30 {
			many = append(many, &btf.Func{Name: fmt.Sprintf("many_%c_%d", 'a'+i%3, i*30+j), Linkage: btf.GlobalFunc, Type: &btf.FuncProto{Return: &btf.Void{}}})
		}
	}
	system := madeSystem(t, many...)
	require.Equal(t, "parts: many_", completions(system, "man"))
	require.Equal(t, "parts: many_a_ | many_b_ | many_c_", completions(system, "many_"))
	require.Len(t, strings.Split(completions(system, "many_a_"), " | "), 300)
}

// TestCompleteDecodesLittle verifies that completion decodes only the types that a
// word leads to, however many there are.
func TestCompleteDecodesLittle(t *testing.T) {
	var many []btf.Type
	for i := range 5000 {
		many = append(many, &btf.Struct{Name: fmt.Sprintf("s%d", i), Size: 4, Members: []btf.Member{{Name: "m", Type: &btf.Int{Name: "int", Size: 4}}}},
			&btf.Func{Name: fmt.Sprintf("f%d", i), Linkage: btf.GlobalFunc, Type: &btf.FuncProto{Return: &btf.Void{}}})
	}
	for word, most := range map[string]int{"vfs_read(file->f_path.dentry->d": 5, "vfs_read(": 1, "vfs_re": 0} {
		system := madeSystem(t, many...)
		require.NotContains(t, completions(system, word), "parts:$")
		require.LessOrEqual(t, system.vm.Decoded, most, word)
	}
}

// FuzzComplete verifies that for any text and any types, all candidates begin with
// the text and are printable.
func FuzzComplete(f *testing.F) {
	system := madeSystem(f)
	for _, word := range []string{"vfs_read(file->f_path.", "vfs_read((struct file *)count)->", "p vfs_read x=", "tp:ti", "]->", "vfs_read(((", "vfs_read if !x.y[1]->",
		"p vfs_read +0(file->", "p vfs_read $arg* if !(", `vfs_read($comm == "\" => on if)", `} {
		f.Add(word, []byte(nil))
		f.Add(word, rawtest.Read(system.raw).Types)
	}
	f.Fuzz(func(t *testing.T, word string, types []byte) {
		file := rawtest.Read(system.raw)
		if len(types) > 0 {
			file.Types = types
		}
		vm, _ := rawbtf.Index(file.Bytes(), nil) // nil if they are broken
		for _, c := range completeSpec(&made{t: t, vm: vm}, word, false) {
			require.True(t, strings.HasPrefix(c.text, word), c.text)
			require.Equal(t, render.PlainName(c.text[len(word):]), c.text[len(word):])
		}
	})
}

// TestCompleteBash covers the text by which bash replaces the piece of the word that
// it completes.
func TestCompleteBash(t *testing.T) {
	const breaks = " \t\n\"'><=;|&(:@"
	system := madeSystem(t)
	for _, tc := range []struct{ line, want string }{
		{"ksnoop vfs_o", "vfs_open"},
		{"ksnoop vfs_open", "'vfs_open("},
		{"ksnoop 'vfs_op", "vfs_open vfs_open("},
		{"ksnoop 'vfs_read(fi", "vfs_read(file vfs_read(file-> vfs_read(file, vfs_read(file)"},
		{"ksnoop 'vfs_read(count, fi", "vfs_read(count, file vfs_read(count, file-> vfs_read(count, file, vfs_read(count, file)"},
		{`ksnoop "vfs_read(fi`, "vfs_read(file vfs_read(file-> vfs_read(file, vfs_read(file)"},
		{`ksnoop "vfs_read(\$comm, fi`, `vfs_read(\$comm, file vfs_read(\$comm, file-> vfs_read(\$comm, file, vfs_read(\$comm, file)`},
		{`ksnoop "vfs_read(\$comm == \"é\", fi`, `vfs_read(\$comm == \"é\", file vfs_read(\$comm == \"é\", file-> vfs_read(\$comm == \"é\", file, vfs_read(\$comm == \"é\", file)`},
		{"ksnoop vfs_read'(fi", "(file (file-> (file, (file)"},
		{`ksnoop vfs_read\(file-\>f_fl`, `vfs_read\(file-\>f_flags vfs_read\(file-\>f_flags, vfs_read\(file-\>f_flags\)`},
		{"ksnoop tp:ti", "tick"},
		{`ksnoop tp:tick`, `tick\(`},
		{"ksnoop --attach=kprobe.m", "kprobe.multi"},
		{"ksnoop 'vfs_read(count:ust", "vfs_read(count:ustring vfs_read(count:ustring, vfs_read(count:ustring)"},
		{"ksnoop -o  js", "json"},
		{`ksnoop vfs_read\(\$comm==\"é\",fi`, `\"é\",file \"é\",file-\> \"é\",file, \"é\",file\)`},
		{"ksnoop", ""},
		{"", ""},
	} {
		a := testCompleter(system).completeBash(breaks, tc.line)
		var texts []string
		for _, c := range a.candidates {
			texts = append(texts, c.text)
		}
		require.Equal(t, tc.want, strings.Join(texts, " "), tc.line)
	}
}

// TestCommOf covers names in /proc that are not what $comm is.
func TestCommOf(t *testing.T) {
	for name, want := range map[string]string{
		"kworker/0:1H-kblockd": "kworker/0:1H", "kworker/u8:2+events_unbound": "kworker/u8:2", "kworker/R-mm_percpu_wq": "kworker/R-mm_pe",
		"irq/24-pciehp_long": "irq/24-pciehp_l", "my-thread": "my-thread",
	} {
		require.Equal(t, want, commOf(name))
	}
}

// TestCommon verifies that candidates have whole characters in common.
func TestCommon(t *testing.T) {
	for want, texts := range map[string][]string{"zq": {"zq日", "zq时"}, "": {"日", "时"}, "zq日": {"zq日本", "zq日"}} {
		var all []*candidate
		for _, text := range texts {
			all = append(all, &candidate{text: text})
		}
		require.Equal(t, want, common(all))
	}
}

// FuzzCompleteBash verifies that any line is split into words without loss, and that a
// candidate, in its place in the line, is read by the shell as the word that begins with
// what was typed.
func FuzzCompleteBash(f *testing.F) {
	const breaks = " \t\n\"'><=;|&(:@"
	system := madeSystem(f)
	for _, line := range []string{`ksnoop vfs_read\(\$comm==\"é\",fi`, "ksnoop 'vfs_read(\xc3", `ksnoop "vfs_r\`, `ksnoop "vfs_read(\$comm, \`, `ksnoop vfs_read'('"fi`, `ksnoop "vfs_read(\$comm == \"a\", fi`, "ksnoop \xffvfs", "ksnoop --attach=kpr"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := splitShell(line)
		for _, w := range words {
			require.Len(t, w.plain, len(w.raw))
			require.Len(t, w.places, len(w.raw))
			require.Contains(t, line, w.raw)
		}
		for _, c := range testCompleter(system).completeBash(breaks, line).candidates {
			typed := words[len(words)-1]
			whole := splitShell("ksnoop " + typed.raw[:typed.from(breaks)] + c.text)
			require.Len(t, whole, 2)
			require.True(t, strings.HasPrefix(whole[1].text, typed.text), "%q", c.text)
		}
	})
}

// TestThreadNames verifies that each offered pattern matches the name of a process, and
// that a process without a name, such as one that has just ended, is left out.
func TestThreadNames(t *testing.T) {
	for name, want := range map[string]string{"": "", `a*[b?\c`: `a\*\[b\?\\c`} {
		cmd := exec.Command("sh", "-c", `printf '%s\0' "$0" > /proc/$$/comm; echo; read end`, name)
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		_, err = out.Read(make([]byte, 1))
		require.NoError(t, err)
		var texts []string
		for _, c := range (running{}).threadNames() {
			texts = append(texts, c.text)
		}
		require.NoError(t, in.Close())
		_ = cmd.Wait() // read has failed
		require.NotContains(t, texts, "")
		if want != "" {
			require.Contains(t, texts, want)
			require.True(t, spec.Matches(want, name))
		}
	}
}

func BenchmarkComplete(b *testing.B) {
	types := running{}.types("")
	if types.kernel() == nil {
		b.Skip("this kernel has no BTF")
	}
	for b.Loop() {
		if completeSpec(running{}.types(""), "vfs_read(file->f_", false) == nil {
			b.Fatal("nothing was found")
		}
	}
}
