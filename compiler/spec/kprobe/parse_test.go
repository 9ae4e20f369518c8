package kprobe

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// accepted has lines with their canonical form, their event and the names of its
// fields.
var accepted = []struct{ line, canonical, event, fields string }{
	// Kinds, events and places.
	{"p vfs_read", "p vfs_read", "kprobes/p_vfs_read_0", ""},
	{" \tp  vfs_read\r", "p vfs_read", "kprobes/p_vfs_read_0", ""},
	{"p:open vfs_read", "p:open vfs_read", "kprobes/open", ""},
	{"p:grp/open vfs_read", "p:grp/open vfs_read", "grp/open", ""},
	{"p:my-grp.open vfs_read", "p:my-grp/open vfs_read", "my-grp/open", ""},
	{"p:grp/ vfs_read", "p:grp/ vfs_read", "grp/p_vfs_read_0", ""},
	{"p vfs_read+0x10", "p vfs_read+16", "kprobes/p_vfs_read_16", ""},
	{"p vfs_read+010", "p vfs_read+8", "kprobes/p_vfs_read_8", ""},
	{"p vfs_read+0", "p vfs_read", "kprobes/p_vfs_read_0", ""},
	{"p ext4:ext4_sync_file+4", "p ext4:ext4_sync_file+4", "kprobes/p_ext4_ext4_sync_file_4", ""},
	{"p 8021q:vlan_dev_open", "p 8021q:vlan_dev_open", "kprobes/p_8021q_vlan_dev_open_0", ""},
	{"p copy_process.isra.0", "p copy_process.isra.0", "kprobes/p_copy_process_isra_0_0", ""},
	{"p 0xffffffff81000000", "p 0xffffffff81000000", "kprobes/p_0xffffffff81000000", ""},
	{"p 18446744071578845184", "p 0xffffffff81000000", "kprobes/p_0xffffffff81000000", ""},
	{"p vfs_read%return", "p vfs_read%return", "kprobes/r_vfs_read_0", ""},
	{"p 0xff%return", "p 0xff%return", "kprobes/r_0xff", ""},
	{"p " + strings.Repeat("f", 70), "p " + strings.Repeat("f", 70), "kprobes/p_" + strings.Repeat("f", 61), ""},
	{"r vfs_read", "r vfs_read", "kprobes/r_vfs_read_0", ""},
	{"r vfs_read+0%return", "r vfs_read", "kprobes/r_vfs_read_0", ""},
	{"r8:grp/done ext4:ext4_sync_file", "r8:grp/done ext4:ext4_sync_file", "grp/done", ""},
	{"r4096 vfs_read", "r4096 vfs_read", "kprobes/r_vfs_read_0", ""},
	{"r010 vfs_read", "r8 vfs_read", "kprobes/r_vfs_read_0", ""},
	{"r0x1f:x vfs_read", "r31:x vfs_read", "kprobes/x", ""},
	{"r 0xff", "r 0xff", "kprobes/r_0xff", ""},
	{"f vfs_read", "f vfs_read", "fprobes/vfs_read__entry", ""},
	{"f vfs_read%return", "f vfs_read%return", "fprobes/vfs_read__exit", ""},
	{"f:g/e nf_tables:nft_do_chain", "f:g/e nf_tables:nft_do_chain", "g/e", ""},
	{"f vfs_* $arg1", "f vfs_* $arg1", "fprobes/vfs____entry", "arg1"},
	{"f [a-z]?[!b]_* $arg1", "f [a-z]?[!b]_* $arg1", "fprobes/_a_z____b_____entry", "arg1"},
	{"f vfs_read $retval", "f vfs_read%return $retval", "fprobes/vfs_read__exit", "arg1"},
	{"f vfs_read x=+0($retval->x)", "f vfs_read%return x=+0($retval->x)", "fprobes/vfs_read__exit", "x"},
	{"t sched_switch", "t sched_switch", "tracepoints/sched_switch", ""},
	{"t:tps/e sched_switch prev $arg3", "t:tps/e sched_switch prev $arg3", "tps/e", "prev arg2"},

	// Values.
	{"p f %di %r15", "p f %di %r15", "kprobes/p_f_0", "arg1 arg2"},
	{"p f $stack $stack0 $stack2048", "p f $stack $stack0 $stack2048", "kprobes/p_f_0", "arg1 arg2 arg3"},
	{"p f $arg1 $arg255 $arg010", "p f $arg1 $arg255 $arg10", "kprobes/p_f_0", "arg1 arg2 arg3"},
	{"p f $comm x=$COMM", "p f $comm x=$comm", "kprobes/p_f_0", "arg1 x"},
	{"r f $retval $arg1", "r f $retval $arg1", "kprobes/r_f_0", "arg1 arg2"},
	{"p f%return $retval", "p f%return $retval", "kprobes/r_f_0", "arg1"},
	{"p f @0xff @16 @x @x+8 @x-0x10", "p f @0xff @0x10 @x @x+8 @x-16", "kprobes/p_f_0", "arg1 arg2 arg3 arg4 arg5"},
	{"p f @__ksymtab.a+0", "p f @__ksymtab.a", "kprobes/p_f_0", "arg1"},
	{"p f +0(%di) -8(%di) +0x10(%di) -0(%di)", "p f +0(%di) -8(%di) +16(%di) +0(%di)", "kprobes/p_f_0", "arg1 arg2 arg3 arg4"},
	{"p f +u0(%si) -u0x8(%si)", "p f +u0(%si) -u8(%si)", "kprobes/p_f_0", "arg1 arg2"},
	{"p f +0(+8(-u16($stack1)))", "p f +0(+8(-u16($stack1)))", "kprobes/p_f_0", "arg1"},
	{"p f -9223372036854775808(%di)", "p f -9223372036854775808(%di)", "kprobes/p_f_0", "arg1"},
	{"p f +8(@x+8) +8(\\0xff) +8($stack)", "p f +8(@x+8) +8(\\0xff) +8($stack)", "kprobes/p_f_0", "arg1 arg2 arg3"},
	{`p f \1 \0x1F \010 \-5 \+5 \-0`, `p f \1 \0x1F \010 \-5 \5 \0`, "kprobes/p_f_0", "arg1 arg2 arg3 arg4 arg5 arg6"},
	{`p f \"" \"a b" n=\"x = y if \" z=\"'#\"`, `p f \"" \"a b" n=\"x = y if \" z=\"'#\"`, "kprobes/p_f_0", "arg1 arg2 n z"},
	{"p f count n=count", "p f count n=count", "kprobes/p_f_0", "count n"},
	{"p f file->f_path.dentry x=$arg1->f_flags", "p f file->f_path.dentry x=$arg1->f_flags", "kprobes/p_f_0", "arg1 x"},
	{"p f path.mnt +8(file->f_inode)", "p f path.mnt +8(file->f_inode)", "kprobes/p_f_0", "arg1 arg2"},
	{"r f $retval->x.y", "r f $retval->x.y", "kprobes/r_f_0", "arg1"},
	{"p f $arg*", "p f $arg*", "kprobes/p_f_0", "arg1"},
	{"p f+4 %di $stack0 @x $comm", "p f+4 %di $stack0 @x $comm", "kprobes/p_f_4", "arg1 arg2 arg3 arg4"},

	// The spellings of 2009.
	{"p:myprobe do_sys_open a0 a1 a2 a3", "p:myprobe do_sys_open a0 a1 a2 a3", "kprobes/myprobe", "a0 a1 a2 a3"},
	{"r:myretprobe do_sys_open rv ra", "r:myretprobe do_sys_open rv ra", "kprobes/myretprobe", "rv ra"},
	{"p f s0 s10 sa +8(a1) +0(+4(sa))", "p f s0 s10 sa +8(a1) +0(+4(sa))", "kprobes/p_f_0", "s0 s10 sa arg4 arg5"},
	{"p f+4 s0 sa", "p f+4 s0 sa", "kprobes/p_f_4", "s0 sa"},

	// Types.
	{"p f a:u8 b:u16 c:u32 d:u64", "p f a:u8 b:u16 c:u32 d:u64", "kprobes/p_f_0", "a b c d"},
	{"p f a:s8 b:s16 c:s32 d:s64", "p f a:s8 b:s16 c:s32 d:s64", "kprobes/p_f_0", "a b c d"},
	{"p f a:x8 b:x16 c:x32 d:x64", "p f a:x8 b:x16 c:x32 d:x64", "kprobes/p_f_0", "a b c d"},
	{"p f %di:char a:symbol b:symstr", "p f %di:char a:symbol b:symstr", "kprobes/p_f_0", "arg1 a b"},
	{"p f a:%pd n=$arg2:%pD", "p f a:%pd n=$arg2:%pD", "kprobes/p_f_0", "a n"},
	{"p f +0(%di):string +u0(%di):string +0(%di):ustring", "p f +0(%di):string +u0(%di):string +0(%di):ustring", "kprobes/p_f_0", "arg1 arg2 arg3"},
	{"p f name:string a1:string $arg2:ustring @x:string d->name:string", "p f name:string a1:string $arg2:ustring @x:string d->name:string",
		"kprobes/p_f_0", "name a1 arg3 arg4 arg5"},
	{`p f $comm:string \"x":string \0xff:string`, `p f $comm:string \"x":string \0xff:string`, "kprobes/p_f_0", "arg1 arg2 arg3"},
	{"p f %di:b4@2/8 a:b0x10@0/32 b:b64@0/64 +0(%di):b1@15/16", "p f %di:b4@2/8 a:b16@0/32 b:b64@0/64 +0(%di):b1@15/16",
		"kprobes/p_f_0", "arg1 a b arg4"},
	{"p f +0(%di):u8[1] +0(%di):x64[0x40] +u0(%si):s16[4]", "p f +0(%di):u8[1] +0(%di):x64[64] +u0(%si):s16[4]",
		"kprobes/p_f_0", "arg1 arg2 arg3"},
	{"p f +0(%di):string[4] +0(%di):char[8] @x:symbol[2] d->n:b1@0/8[3]", "p f +0(%di):string[4] +0(%di):char[8] @x:symbol[2] d->n:b1@0/8[3]",
		"kprobes/p_f_0", "arg1 arg2 arg3 arg4"},

	// Filters.
	{"p f x=$arg1 if x==5", "p f x=$arg1 if x == 5", "kprobes/p_f_0", "x"},
	{"p f x=$arg1 if(x==5)", "p f x=$arg1 if x == 5", "kprobes/p_f_0", "x"},
	{"p f x=$arg1 if!x==5", "p f x=$arg1 if !(x == 5)", "kprobes/p_f_0", "x"},
	{"p f x if x!=5&&x<0x10&&x<=010&&x>1&&x>=2&&x&4", "p f x if x != 5 && x < 0x10 && x <= 010 && x > 1 && x >= 2 && x & 4", "kprobes/p_f_0", "x"},
	{"p f x:s32 if x > -1 || x == -0", "p f x:s32 if x > -1 || x == 0", "kprobes/p_f_0", "x"},
	{"p f %di %si if arg1 == 1 || arg2 == 2 && arg1 == 3", "p f %di %si if arg1 == 1 || arg2 == 2 && arg1 == 3", "kprobes/p_f_0", "arg1 arg2"},
	{"p f x if (x == 1 || x == 2) && !(x == 3 && x == 4)", "p f x if (x == 1 || x == 2) && !(x == 3 && x == 4)", "kprobes/p_f_0", "x"},
	{"p f x if ((x == 1)) && !!x == 2", "p f x if x == 1 && !!(x == 2)", "kprobes/p_f_0", "x"},
	{"p f x if ! x != 1", "p f x if !(x != 1)", "kprobes/p_f_0", "x"},
	{"p f if common_pid == 1 && common_cpu != 2 || cpu < 4 || CPU > 5", "p f if common_pid == 1 && common_cpu != 2 || cpu < 4 || CPU > 5", "kprobes/p_f_0", ""},
	{`p f if comm == "a b" || COMM ~ 'x"*' || comm != bash`, `p f if comm == "a b" || COMM ~ 'x"*' || comm != "bash"`, "kprobes/p_f_0", ""},
	{`p f n=+0(%di):string if n ~ *.conf || n == "a\*" || n ~ "[!a-z]\*?"`, `p f n=+0(%di):string if n ~ "*.conf" || n == "a\*" || n ~ "[!a-z]\*?"`,
		"kprobes/p_f_0", "n"},
	{`p f $comm n=\"x" a:symstr b:%pd if arg1 == a && n == b && a ~ vfs_* && b == c`, `p f $comm n=\"x" a:symstr b:%pd if arg1 == "a" && n == "b" && a ~ "vfs_*" && b == "c"`,
		"kprobes/p_f_0", "arg1 n a b"},
	{"p f if cpu & CPUS{0-3,8} && cpu == CPUS{1} && cpu != CPUS{2-2}", "p f if cpu & CPUS{0-3,8} && cpu == CPUS{1} && cpu != CPUS{2}", "kprobes/p_f_0", ""},
	{"p f a:symbol if a.function == vfs_read || a.function != 0xffffffff81000000", "p f a:symbol if a.function == vfs_read || a.function != 0xffffffff81000000",
		"kprobes/p_f_0", "a"},
	{"p f a if a.ustring ~ \"/etc/*\" || a.ustring == x", "p f a if a.ustring ~ \"/etc/*\" || a.ustring == \"x\"", "kprobes/p_f_0", "a"},
	{"r f if __probe_ret_ip.function == do_syscall_64", "r f if __probe_ret_ip.function == do_syscall_64", "kprobes/r_f_0", ""},
	{"p f $arg* if count > 5 && cpu == 1", "p f $arg* if count > 5 && cpu == 1", "kprobes/p_f_0", "arg1"},
	{"p f cpu if cpu == 1", "p f cpu if cpu == 1", "kprobes/p_f_0", "cpu"},
	{"p f a:u8 b:b4@0/8 c:s8 d:x64 if a == 255 && b < 15 && c == -128 && d == 0xffffffffffffffff && a & 0x80 && c & -1",
		"p f a:u8 b:b4@0/8 c:s8 d:x64 if a == 255 && b < 15 && c == -128 && d == 0xffffffffffffffff && a & 0x80 && c & -1",
		"kprobes/p_f_0", "a b c d"},
	{"p f a=$arg1 r=%di:s64 if a == -1 && a == 0xffffffffffffffff && r < 0", "p f a=$arg1 r=%di:s64 if a == -1 && a == 0xffffffffffffffff && r < 0", "kprobes/p_f_0", "a r"},
}

func TestParse(t *testing.T) {
	for _, test := range accepted {
		trace, err := Parse(test.line)
		require.NoError(t, err, test.line)
		require.Equal(t, test.line, trace.Text)
		require.Equal(t, test.canonical, trace.String(), test.line)
		require.Equal(t, test.event, trace.GroupName()+"/"+trace.EventName(), test.line)
		require.Equal(t, test.fields, strings.Join(trace.ItemNames(), " "), test.line)
		again, err := Parse(test.canonical)
		require.NoError(t, err, test.canonical)
		require.Equal(t, test.canonical, again.String())
		require.True(t, Is(test.line), test.line)
	}
}

func TestIs(t *testing.T) {
	for _, line := range []string{"p vfs_read", "r8 f", "f:x", "\tt:x y", "p: x", "-:x", "-:", "e:x y", "r99:x y", "f8:x y", "p if x"} {
		require.True(t, Is(line), line)
	}
	for _, text := range []string{"", " ", "p", "r8", "p(file)", "f(a) if b", "vfs_read", "tp:sched_switch", "- x", "px y", "e x", "8021q:f", "pr:f",
		"e1000:f", "e1000:f x", "r8169:f", "r8169:f(a, b)", "r8169:f (a)", "r8169:f if $cpu", "r8169:f => r8169:g on $tid"} {
		require.False(t, Is(text), text)
	}
}

func TestParseAny(t *testing.T) {
	trace, err := ParseAny("p:x vfs_read $arg1")
	require.NoError(t, err)
	require.NotNil(t, trace.Line)
	trace, err = ParseAny("vfs_read(count)")
	require.NoError(t, err)
	require.Nil(t, trace.Line)
	_, err = ParseAny("p:x vfs_read $ar1")
	require.ErrorContains(t, err, "did you mean '$arg1'?")
	_, err = ParseAny("vfs_read(count:y)")
	require.ErrorContains(t, err, "'y' is not a format")
}

func TestParseTree(t *testing.T) {
	text := `r8:g/e m:f n=+u8(-16(@x+4)):b4@2/8[3] a0 if !n2.function==g || comm~"x"`
	text = strings.Replace(text, "a0", "n2=a0", 1)
	trace, err := Parse(text)
	require.NoError(t, err)
	ident := func(name string, start int) spec.Ident {
		return spec.Ident{Name: name, At: spec.Span{Start: start, End: start + len(name)}}
	}
	at := func(start, end int) spec.Span { return spec.Span{Start: start, End: end} }
	old := &spec.Item{
		Name:  ident("n2", 38),
		Value: &spec.Old{Name: ident("a0", 41), Was: &spec.Builtin{Name: spec.Ident{Name: "arg1", At: at(41, 43)}}},
	}
	require.Equal(t, &spec.Trace{
		Text:   text,
		Line:   &spec.Line{Kind: spec.Kretprobe, Return: true, MaxActive: 8, Group: ident("g", 3), Event: ident("e", 5)},
		Module: ident("m", 7),
		Func:   ident("f", 9),
		Items: []*spec.Item{
			{
				Name: ident("n", 11),
				Value: &spec.Memory{
					At: at(13, 27), Off: 8, User: true,
					X: &spec.Memory{
						At: at(17, 26), Off: -16,
						X: &spec.Memory{At: at(21, 25), X: &spec.Address{At: at(22, 25), Symbol: ident("x", 22), Off: 4}},
					},
				},
				Type: &spec.FetchType{Field: spec.Bitfield{Width: 4, Offset: 2, Container: 8}, Count: 3, At: at(28, 37)},
			},
			old,
		},
		Cond: &spec.Or{
			X: &spec.Not{
				At: at(47, 48),
				X: &spec.Item{
					Value: &spec.Field{Name: ident("n2", 48), Of: old, As: ident("function", 51)},
					Pred: &spec.Predicate{
						Op: spec.Eq, OpAt: at(59, 61),
						Const: spec.Constant{Kind: spec.Name, Text: "g", Str: "g", At: at(61, 62)},
					},
				},
			},
			Y: &spec.Item{
				Value: &spec.Field{
					Name: ident("comm", 66),
					Of:   &spec.Item{Value: &spec.Builtin{Name: ident("comm", 66)}},
				},
				Pred: &spec.Predicate{
					Op: spec.Glob, OpAt: at(70, 71),
					Const: spec.Constant{Kind: spec.String, Text: `"x"`, Str: "x", At: at(71, 74)},
				},
			},
		},
	}, trace)
	require.Same(t, trace.Items[1], trace.Cond.(*spec.Or).X.(*spec.Not).X.(*spec.Item).Value.(*spec.Field).Of)

	source := func(node interface{ Span() spec.Span }) string { return text[node.Span().Start:node.Span().End] }
	require.Equal(t, "n=+u8(-16(@x+4)):b4@2/8[3]", source(trace.Items[0]))
	require.Equal(t, "n2=a0", source(trace.Items[1]))
	require.Equal(t, `!n2.function==g || comm~"x"`, source(trace.Cond))
}

// TestOldWords checks the meaning that words had in 2009.
func TestOldWords(t *testing.T) {
	for _, test := range []struct {
		line string
		was  any
	}{
		{"p f a0", &spec.Builtin{}}, {"p f a254", &spec.Builtin{}}, {"p f a255", nil}, {"p f a99999", nil},
		{"p f s0", &spec.StackSlot{}}, {"p f s2048", &spec.StackSlot{}}, {"p f s2049", nil},
		{"p f sa", &spec.StackPointer{}}, {"p f a", nil}, {"p f a1x", nil}, {"p f sa->x", nil}, {"p f ab", nil},
		{"p f rv", nil}, {"p f ra", nil}, {"r f rv", &spec.Builtin{}}, {"r f ra", &spec.ReturnAddress{}},
		{"p f%return ra", &spec.ReturnAddress{}}, {"f f a0", nil}, {"t f sa", nil}, {"p f a0:string", nil}, {"p f a0:u32", &spec.Builtin{}},
	} {
		trace, err := Parse(test.line)
		require.NoError(t, err, test.line)
		old, ok := trace.Items[0].Value.(*spec.Old)
		require.Equal(t, test.was != nil, ok, test.line)
		if ok {
			require.IsType(t, test.was, old.Was, test.line)
		}
	}
}

func TestParseLimits(t *testing.T) {
	for _, test := range []struct {
		open, inner, closing, before string
	}{
		{"+0(", "%di", ")", "p f "},
		{"(", "common_pid == 1", ")", "p f if "},
		{"!", "common_pid == 1", "", "p f if "},
	} {
		nested := func(n int) string {
			return test.before + strings.Repeat(test.open, n) + test.inner + strings.Repeat(test.closing, n)
		}
		trace, err := Parse(nested(64))
		require.NoError(t, err)
		_, err = Parse(trace.String())
		require.NoError(t, err)
		_, err = Parse(nested(65))
		require.ErrorContains(t, err, "more than 64 parentheses and '!' inside each other\n")
	}
	_, err := Parse("p f a" + strings.Repeat("->b", 64))
	require.NoError(t, err)
	_, err = Parse("p f a" + strings.Repeat("->b", 65))
	require.ErrorContains(t, err, "a value with more than 64 members\n")
	_, err = Parse("p f" + strings.Repeat(" %di", 128))
	require.NoError(t, err)
	_, err = Parse("p f" + strings.Repeat(" %di", 129))
	require.ErrorContains(t, err, "an event has at most 128 arguments\n")
	_, err = Parse("p " + strings.Repeat("f", 512))
	require.ErrorContains(t, err, "a name of 512 characters is longer than any in the kernel (511)\n")
	_, err = Parse(`p f \"` + strings.Repeat("x", 256) + `"`)
	require.ErrorContains(t, err, "a string of 256 bytes is longer than the limit (255)\n")
	_, err = Parse(`p f if comm == "` + strings.Repeat("x", 256) + `"`)
	require.ErrorContains(t, err, "a string of 256 bytes is longer than the limit (255)\n")
	_, err = Parse(`p f if comm ~ ` + strings.Repeat("?", 61))
	require.ErrorContains(t, err, "a pattern of 61 elements is longer than the limit (60)\n")
	_, err = Parse("p " + strings.Repeat("f", 64<<10))
	require.ErrorContains(t, err, "the line has 65538 bytes, the limit is 65536\n")
}

// TestParseLong checks that the time to parse and print is linear in the length.
func TestParseLong(t *testing.T) {
	const n = 2500
	for _, line := range []string{
		"p f if cpu == 1" + strings.Repeat(" && cpu == 1", n),
		"p f if cpu == 1" + strings.Repeat(" || cpu == 1", n),
		"p f if cpu == 1" + strings.Repeat(" && (cpu == 1)", n),
		"p f $arg* if cpu == 1" + strings.Repeat(" && cpu == 1", n),
		"p f if cpu & CPUS{1" + strings.Repeat(",1-3", 4*n) + "}",
	} {
		trace, err := Parse(line)
		require.NoError(t, err)
		trace, err = trace.Expand([]string{"file"})
		require.NoError(t, err)
		again, err := Parse(trace.String())
		require.NoError(t, err)
		require.Equal(t, trace.String(), again.String())
	}
	for _, line := range []string{
		"p f " + strings.Repeat("+0(", 5*n), "p f if " + strings.Repeat("(", 5*n), "p f if " + strings.Repeat("!", 5*n),
		"p f " + strings.Repeat(`\"`, 5*n), "p f if comm == " + strings.Repeat("'", 5*n+1),
	} {
		_, err := Parse(line)
		require.Error(t, err)
	}
}
