package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
)

// made is a system that is made up.
type made struct {
	t     testing.TB
	vm    *names
	extra map[string]*names
}

func (m *made) types(file string) typeSource {
	if file != "" {
		return &typeFiles{kernelFile: file, read: map[string]*names{}}
	}
	return m
}
func (m *made) kernel() *names { return m.vm }
func (m *made) modules() (all []string) {
	for name := range m.extra {
		all = append(all, name)
	}
	return all
}
func (m *made) module(name string) *names { return m.extra[name] }
func (*made) processes() []*candidate {
	return []*candidate{{text: "1", note: "init"}, {text: "12", note: "cat"}}
}
func (*made) threadNames() []*candidate { return []*candidate{{text: "cat"}, {text: "init"}} }
func (*made) users() []*candidate       { return []*candidate{{text: "root", note: "0"}} }

// madeSystem has a kernel with records of all kinds, and a module.
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
		&btf.Var{Name: "jiffies", Type: integer, Linkage: btf.GlobalVar},
		&btf.Typedef{Name: "btf_trace_tick", Type: pointer(&btf.FuncProto{Return: &btf.Void{}, Params: []btf.FuncParam{{Type: pointer(&btf.Void{})}, {Type: integer}}})},
		function("__bpf_trace_tick", &btf.Void{}, btf.FuncParam{Name: "__data", Type: pointer(&btf.Void{})}, btf.FuncParam{Name: "cpu", Type: integer}),
		&btf.Typedef{Name: "btf_trace_tock", Type: pointer(&btf.FuncProto{Return: &btf.Void{}, Params: []btf.FuncParam{{Type: pointer(&btf.Void{})}, {Type: pointer(file)}}})},
	}
	base, err := btf.NewBuilder(append(kernel, more...), nil)
	require.NoError(t, err)
	raw, err := base.Marshal(nil, nil)
	require.NoError(t, err)
	vm, err := newNames(raw, nil)
	require.NoError(t, err)
	module, err := btf.NewBuilder([]btf.Type{
		function("ext_open", integer, btf.FuncParam{Name: "inode", Type: pointer(&btf.Struct{Name: "inode", Size: 4, Members: []btf.Member{{Name: "i_ino", Type: integer}}})}),
	}, nil)
	require.NoError(t, err)
	raw, err = module.Marshal(nil, nil)
	require.NoError(t, err)
	ext, err := newNames(raw, nil)
	require.NoError(t, err)
	return &made{t, vm, map[string]*names{"ext4": ext}}
}

// completions is what the last of the words may become, without what stands
// before the name that is completed.
func completions(system systemSource, words ...string) string {
	a := complete(system, words)
	var texts []string
	for _, c := range a.candidates {
		texts = append(texts, c.text)
	}
	return strings.TrimSpace(string(a.kind) + ": " + strings.Join(texts, " | "))
}

// What specs become. A dot stands for what was typed.
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
		{"vfs_read($", "parts: .arg1 | .arg2 | .cgroup | .comm | .cpu | .duration | .kstack | .pid | .retval | .tid | .uid"},
		{"vfs_read(@jif", "parts: .fies | .fies, | .fies)"},
		{"vfs_read(count:x1", "parts: .6 | .6, | .6)"},
		{"vfs_read(count:ust", "parts: .ring | .ring, | .ring)"},
		{"vfs_read(file->f_mode == ", "parts: .MODE_A | .MODE_B"},
		{"vfs_read(return == -EINT", "parts: .R | .R, | .R)"},
		{"vfs_read(file == ", "parts: .NULL | .NULL, | .NULL)"},
		{`vfs_read($comm == "c`, "parts:"},
		{"vfs_read(count) ", "words: .if "},
		{"vfs_read(count) if file->f_fl", "parts: .ags | .ags == | .ags != | .ags < | .ags > | .ags &"},
		{"vfs_read if !(cou", "parts: .nt | .nt == | .nt != | .nt < | .nt > | .nt &"},
		{"vfs_read(count) if count > 3 && fi", "parts: .le | .le-> | .le == | .le != | .le < | .le > | .le &"},
		{"p:one vfs_re", "parts: p:one vfs_read | p:one vfs_readv"},
		{"p vfs_o", "parts: p vfs_open | p vfs_open "},
		{"p vfs_open x=$ar", "parts: .g1 | .g2 | .g3 | .g4 | .g5 | .g6"},
		{"p vfs_open x=mo", "parts: .de | .de  | .de:"},
		{"p vfs_open x=$arg2:us", "parts: .tring | .tring "},
		{"t tic", "parts: t tick | t tick "},
	} {
		got := completions(system, tc.word)
		want := strings.ReplaceAll(tc.want, " .", " "+tc.word)
		require.Equal(t, strings.TrimSpace(want), got, tc.word)
	}
}

// What command lines become.
func TestCompleteLine(t *testing.T) {
	system := madeSystem(t)
	all := ""
	for _, c := range subcommands() {
		all += c.name + " | "
	}
	for _, tc := range []struct{ line, want string }{
		{"", "words: " + all + "help"},
		{"li", "words: list"},
		{"list vfs_o", "words: vfs_open"},
		{"info vfs_read(", "parts:"},
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
	require.Equal(t, "words: struct file", completions(system, "dump", "struct fi"))
	require.Equal(t, "parts:", completions(system, "compile", "--btf", "/no/such", "vfs"))
}

// The values that an option is said to have are those that it takes.
func TestChoices(t *testing.T) {
	types := writeKernel(t)
	for option, line := range map[string]string{"attach": "compile|vfs_read", "kernel-features": "list|vfs_read", "color": "list|vfs_read"} {
		_, choices := choicesOf(optionOf(strings.Split(line, "|")[:1], option).Usage)
		require.GreaterOrEqual(t, len(choices), 3, option)
		for _, c := range choices {
			status, _, stderr := ksnoop(t, types, line+"|--"+option+"="+c)
			require.Zero(t, status, stderr)
		}
	}
	_, formats := choicesOf(optionSet(outputFlag).Lookup("output").Usage)
	require.Equal(t, outputFormats, formats)
}

// Of many functions the next part of each name is shown.
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

// However many types there are, a word decodes those alone that it leads to.
func TestCompleteDecodesLittle(t *testing.T) {
	var many []btf.Type
	for i := range 5000 {
		many = append(many, &btf.Struct{Name: fmt.Sprintf("s%d", i), Size: 4, Members: []btf.Member{{Name: "m", Type: &btf.Int{Name: "int", Size: 4}}}},
			&btf.Func{Name: fmt.Sprintf("f%d", i), Linkage: btf.GlobalFunc, Type: &btf.FuncProto{Return: &btf.Void{}}})
	}
	for word, most := range map[string]int{"vfs_read(file->f_path.dentry->d": 5, "vfs_read(": 1, "vfs_re": 0} {
		system := madeSystem(t, many...)
		require.NotContains(t, completions(system, word), "parts:$")
		require.LessOrEqual(t, system.vm.decoded, most, word)
	}
}

// FuzzComplete: whatever is typed, and whatever the types are, there are
// candidates that begin with it and can be printed, or none.
func FuzzComplete(f *testing.F) {
	system := madeSystem(f)
	for _, word := range []string{"vfs_read(file->f_path.", "vfs_read((struct file *)count)->", "p vfs_read x=", "tp:ti", "]->", "vfs_read(((", "vfs_read if !x.y[1]->"} {
		f.Add(word, []byte(nil))
		f.Add(word, system.vm.raw.types)
	}
	f.Fuzz(func(t *testing.T, word string, types []byte) {
		raw := *system.vm.raw
		if len(types) > 0 {
			raw.types = types
		}
		vm := &names{raw: &raw}
		vm.findTypes()
		for _, c := range completeSpec(&made{t: t, vm: vm}, word, false) {
			require.True(t, strings.HasPrefix(c.text, word), c.text)
			require.Equal(t, plainName(c.text[len(word):]), c.text[len(word):])
		}
	})
}

// What bash puts in place of the piece of a word that it completes.
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
		{"ksnoop vfs_read'(fi", "(file (file-> (file, (file)"},
		{`ksnoop vfs_read\(file-\>f_fl`, `vfs_read\(file-\>f_flags vfs_read\(file-\>f_flags, vfs_read\(file-\>f_flags\)`},
		{"ksnoop tp:ti", "tick"},
		{`ksnoop tp:tick`, `tick\(`},
		{"ksnoop --attach=kprobe.m", "kprobe.multi"},
		{"ksnoop 'vfs_read(count:ust", "vfs_read(count:ustring vfs_read(count:ustring, vfs_read(count:ustring)"},
		{"ksnoop -o  js", "json"},
		{"ksnoop", ""},
		{"", ""},
	} {
		a := completeBash(system, breaks, tc.line)
		var texts []string
		for _, c := range a.candidates {
			texts = append(texts, c.text)
		}
		require.Equal(t, tc.want, strings.Join(texts, " "), tc.line)
	}
}

// The hidden command always succeeds, and says nothing else.
func TestCompleteCommand(t *testing.T) {
	types := writeKernel(t)
	for _, tc := range []struct{ args, want string }{
		{"--|compile|--btf|" + types + "|vfs_read(file->po", "parts\nvfs_read(file->pos\tlong\nvfs_read(file->pos,\tlong\nvfs_read(file->pos)\tlong\n"},
		{"--bash| '|ksnoop list --btf " + types + " vfs_r", "words\nvfs_read\t\n"},
		{"--|compile|--btf|/dev/null|vfs", "parts\n"},
		{"--", "words\ntrace\t"},
		{"", "\n"},
	} {
		status, stdout, stderr := runLine(append([]string{completeWord}, strings.Split(tc.args, "|")...)...)
		require.Zero(t, status)
		require.Empty(t, stderr)
		require.True(t, strings.HasPrefix(stdout, tc.want), stdout)
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
