package spec

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec/spectest"
)

// accepted has specs with their canonical form.
var accepted = []struct{ spec, canonical string }{
	// A function alone.
	{"vfs_read", "vfs_read"},
	{" \t\n\v\f\r vfs_read \n", "vfs_read"},
	{"_f0", "_f0"},
	{"if", "if"},
	{"copy_process.isra.0", "copy_process.isra.0"},
	{"f.constprop.0.isra.12", "f.constprop.0.isra.12"},
	{"__do_sys.llvm.7038", "__do_sys.llvm.7038"},
	{"f.cold", "f.cold"},

	// Spans.
	{"f=>g on a", "f => g on a"},
	{"tp:f(a,b)=>tp:g(c, $duration>1ms)on a->b==*c", "tp:f(a, b) => tp:g(c, $duration > 1ms) on a->b == *c"},
	{"f if a => g if b on c", "f if a => g if b on c"},
	{"f(a) if !(b == 5) => m:g() if c > 1 && !d on e.f == $cpu<<32", "f(a) if !(b == 5) => m:g() if c > 1 && !d on e.f == $cpu << 32"},
	{"f if (a) => g on (a|b) == (a&b)", "f if a => g on (a | b) == (a & b)"},
	{"f if !a => g on a == a", "f if !a => g on a"},
	{"f(on) => g(on) if on on on == on", "f(on) => g(on) if on on on"},

	// Error pointers.
	{"f(return is-err)", "f(return is-err)"},
	{"f(*a:x  is-err ,b)if !(c is-err)&&is is-err", "f(*a:x is-err, b) if !(c is-err) && is is-err"},

	// Values at return. The words alone are names of arguments.
	{"f( after ( stat->size )>1M,after(*a + b)-*a )", "f(after(stat->size) > 1M, after(*a + b) - *a)"},
	{"f(a<after(b->c)) if !after(a->b)&&(after(a & 3))==1||a==(after(*b))", "f(a < after(b->c)) if !after(a->b) && after(a & 3) == 1 || a == after(*b)"},
	{"f(diff(sk),diff(a->flags):x) if !diff(sk)", "f(diff(sk), diff(a->flags):x) if !diff(sk)"},
	{"f(after,diff->x,after(diff))", "f(after, diff->x, after(diff))"},

	// Values.
	{"vfs_read(count)", "vfs_read(count)"},
	{"vfs_read((count) * 2)", "vfs_read(count * 2)"},
	{"vfs_read((count) * -2 > 8)", "vfs_read(count * -2 > 8)"},
	{"vfs_read((count) * 'a')", "vfs_read(count * 'a')"},
	{"vfs_read((u32) * count)", "vfs_read((u32)*count)"},
	{"vfs_read(return)", "vfs_read(return)"},
	{"vfs_read(file,count,return)", "vfs_read(file, count, return)"},
	{"copy_process.isra.0(pid)", "copy_process.isra.0(pid)"},
	{"f(a,a,a)", "f(a, a, a)"},
	{"f(a,b,c,d,e,g,h,i,j)", "f(a, b, c, d, e, g, h, i, j)"},
	{"f(returned)", "f(returned)"},
	{"\tf ( a , return\n) ", "f(a, return)"},

	// Members. A value may have 64 of them.
	{"f(skb->len)", "f(skb->len)"},
	{"f(skb -> len)", "f(skb->len)"},
	{"f(skb->dev->name)", "f(skb->dev->name)"},
	{"f(return->flags)", "f(return->flags)"},
	{"f(a" + strings.Repeat("->next", 64) + ")", "f(a" + strings.Repeat("->next", 64) + ")"},

	// Operators.
	{"f(a==5)", "f(a == 5)"},
	{"f(a!=5)", "f(a != 5)"},
	{"f(a<5)", "f(a < 5)"},
	{"f(a<=5)", "f(a <= 5)"},
	{"f(a>5)", "f(a > 5)"},
	{"f(a>=5)", "f(a >= 5)"},
	{"f(a->b>5,a->b<9)", "f(a->b > 5, a->b < 9)"},
	{"f(return<0)", "f(return < 0)"},
	{"ip_send_skb( skb->len > 100 , return )", "ip_send_skb(skb->len > 100, return)"},

	// Constants keep their base. Blanks may follow signs.
	{"f(a==0x5)", "f(a == 0x5)"},
	{"f(a==0XfF)", "f(a == 0XfF)"},
	{"f(a==010)", "f(a == 010)"},
	{"f(a==-11)", "f(a == -11)"},
	{"f(a<-5)", "f(a < -5)"},
	{"f(a>-5)", "f(a > -5)"},
	{"f(a==+5)", "f(a == 5)"},
	{"f(a== - 5)", "f(a == -5)"},
	{"f(a== -\n0x10)", "f(a == -0x10)"},
	{"f(a==-0)", "f(a == 0)"},

	// Sizes keep their suffix.
	{"f(a == 0o17)", "f(a == 0o17)"},
	{"f(count > 1k)", "f(count > 1k)"},
	{"f(count >= 64K)", "f(count >= 64K)"},
	{"f if count > 2M", "f if count > 2M"},
	{"f(a[0o17] == -2G, b == 1T)", "f(a[15] == -2G, b == 1T)"},

	// Values joined by operators, and values compared with values. A name alone may
	// be an argument or a constant.
	{"f(a - 5)", "f(a - 5)"},
	{"f(a << 5)", "f(a << 5)"},
	{"f(a * b)", "f(a * b)"},
	{"f(a + 1)", "f(a + 1)"},
	{"f((a + b))", "f(a + b)"},
	{"f if a == b->c", "f if a == b->c"},
	{"f if a == $pid", "f if a == $pid"},
	{"f if a == return", "f if a == return"},
	{"f if a == *b", "f if a == *b"},
	{"f if a | b", "f if a | b"},
	{"f if a + 1 > 5", "f if a + 1 > 5"},
	{"f if a - 1", "f if a - 1"},
	{"f if (a + 1) > 5", "f if a + 1 > 5"},
	{"f(return!=count)", "f(return != count)"},
	{"f(return!=(count))", "f(return != count)"},
	{"f(a-b-c,a-(b-c),(a-b)-c)", "f(a - b - c, a - (b - c), a - b - c)"},
	{"f(a+b*c<<2>>d)", "f(a + b * c << 2 >> d)"},
	{"f((a+b)*c)", "f((a + b) * c)"},
	{"f((a&3)==2, (a|b)==3, a|b)", "f((a & 3) == 2, (a | b) == 3, a | b)"},
	{"f((0x1f|a), (-1|a|b):x, (1+2|a), ('c'|a)==3)", "f((0x1f | a), (-1 | a) | b:x, 1 + 2 | a, ('c' | a) == 3)"},
	{"f((a&b))", "f((a & b))"},
	{"f((a&b)|c:x)", "f((a & b) | c:x)"},
	{"f(((a&3)+1)<<2>5)", "f((a & 3) + 1 << 2 > 5)"},
	{"f if (a&3)==2&&(a&3)", "f if (a & 3) == 2 && a & 3"},
	{"f if (a & b + 1) + c == d - 1", "f if (a & b + 1) + c == d - 1"},
	{"f if ((a & 3)):x", "f if (a & 3):x"},
	{"f if !(a + b)", "f if !(a + b)"},
	{"f if !(a + b) || a + b", "f if !(a + b) || a + b"},
	{"f if a & b->c", "f if a & b->c"},
	{"f if a & b - 1 || (a-b)->c", "f if a & b - 1 || (a - b)->c"},
	{"f(1<<a==2*b, 'a'+b, a- -1, a-'b')", "f(1 << a == 2 * b, 'a' + b, a - -1, a - 'b')"},
	{"f(a>-1*b)", "f(a > -1 * b)"},
	{"f(a == 4 * 1k)", "f(a == 4 * 1k)"},
	{"f(a + 9M, (b - 1k) > 2)", "f(a + 9M, b - 1k > 2)"},
	{"f($duration > 1ms, a + 9M, b[1k])", "f($duration > 1ms, a + 9M, b[1024])"},
	{"f(((struct iphdr*)(skb->head+skb->network_header))->daddr:ip4)", "f(((struct iphdr *)(skb->head + skb->network_header))->daddr:ip4)"},
	{"f((u64)(a+b), *(a+b), (a+b)[2], (u8)a+b)", "f((u64)(a + b), *(a + b), (a + b)[2], (u8)a + b)"},
	{"f(a" + strings.Repeat("+b", 64) + ")", "f(a" + strings.Repeat(" + b", 64) + ")"},

	// Modules, tracepoints and wildcards.
	{"nf_tables:nft_do_chain", "nf_tables:nft_do_chain"},
	{" ext4 : ext4_* ( inode )", "ext4:ext4_*(inode)"},
	{"8021q:vlan_dev_open", "8021q:vlan_dev_open"},
	{"m:f.isra.0", "m:f.isra.0"},
	{"tp:sched_switch", "tp:sched_switch"},
	{"iter : task_file( fd,file:path )if fd>2", "iter:task_file(fd, file:path) if fd > 2"},
	{"iter:*", "iter:*"},
	{"tp : sched_*(prev) if prev->pid", "tp:sched_*(prev) if prev->pid"},
	{"tp(a)", "tp(a)"},
	{"tp if a", "tp if a"},
	{"tcp_*", "tcp_*"},
	{"*", "*"},
	{"*foo(a)", "*foo(a)"},
	{"?fs_[rw]*[!a-z_]", "?fs_[rw]*[!a-z_]"},
	{"[a-f]*.isra.?", "[a-f]*.isra.?"},
	{"f[a.b-]", "f[a.b-]"},
	{"f[a[b]*(a)", "f[a[b]*(a)"},

	// Values.
	{"f(file.f_flags)", "f(file.f_flags)"},
	{"f(a . b -> c [ 3 ] [ 0x10 ])", "f(a.b->c[3][16])"},
	{"f(a[2147483648])", "f(a[2147483648])"},
	{"f(*p)", "f(*p)"},
	{"f(* * p->q)", "f(**p->q)"},
	{"f((*p)->q)", "f((*p)->q)"},
	{"f((*p)[1].x)", "f((*p)[1].x)"},
	{"f(*(p[1]))", "f(*p[1])"},
	{"f(((a)))", "f(a)"},
	{"f((a)->b)", "f(a->b)"},
	{"f((a) is-err) if !((is) is-err)", "f(a is-err) if !(is is-err)"},
	{"f((a)is->err)", "f((a)is->err)"},
	{"f => g if (a) on (b)", "f => g if a on b"},
	{"f => g((a)on) if ((a)on) && (a)on == 1 on on", "f => g((a)on) if (a)on && (a)on == 1 on on"},
	{"f((a.b).c)", "f(a.b.c)"},
	{"f($comm, $ pid, $arg1, $arg255, $retval)", "f($comm, $pid, $arg1, $arg255, $retval)"},
	{"f(@jiffies, @init_net.count)", "f(@jiffies, @init_net.count)"},
	{"f(@per_cpu[1]->x)", "f(@per_cpu[1]->x)"},

	// Casts apply to the whole value after them.
	{"f((struct sock*)sk)", "f((struct sock *)sk)"},
	{"f((struct sock *)sk->x)", "f((struct sock *)sk->x)"},
	{"f(((struct sock *)sk)->x)", "f(((struct sock *)sk)->x)"},
	{"f(((struct sock *)(sk))->x)", "f(((struct sock *)sk)->x)"},
	{"f((struct sock **)*sk)", "f((struct sock **)*sk)"},
	{"f(*(struct sock **)sk)", "f(*(struct sock **)sk)"},
	{"f((*(struct sock **)sk)->x)", "f((*(struct sock **)sk)->x)"},
	{"f((const struct sock *const)sk)", "f((struct sock *)sk)"},
	{"f((volatile u32 const * * volatile)a)", "f((u32 **)a)"},
	{"f((u32)a)", "f((u32)a)"},
	{"f((u32)(a))", "f((u32)a)"},
	{"f((u32)$arg1, (u8)@x, (s8)return, (int)*p)", "f((u32)$arg1, (u8)@x, (s8)return, (int)*p)"},
	{"f((u8)(u32)a)", "f((u8)(u32)a)"},
	{"f((u64[3])(*a), (u64[3])*a, (u64)(*a), (u64[3])(u8)(*a))", "f((u64[3])(*a), u64[3] * a, (u64)*a, (u64[3])(u8)*a)"},
	{"f((u32)((a)->b))", "f((u32)a->b)"},
	{"f((unsigned   long\tint)a)", "f((unsigned long int)a)"},
	{"f((long long)a)", "f((long long)a)"},
	{"f((enum pid_type)a)", "f((enum pid_type)a)"},
	{"f((union u *)a)", "f((union u *)a)"},
	{"f((void *)a)", "f((void *)a)"},
	{"f((a), (b))", "f(a, b)"},
	{"f((a) == 5)", "f(a == 5)"},
	{"f((a) & 5)", "f(a & 5)"},

	// Formats.
	{"f(a:x)", "f(a:x)"},
	{"f(a : x , return : d)", "f(a:x, return:d)"},
	{"f(skb->data:be == 5)", "f(skb->data:be == 5)"},
	{"f(x:x)", "f(x:x)"},
	{"f((a):u8)", "f(a:u8)"},
	{"f(*p:s32 < -1)", "f(*p:s32 < -1)"},

	// Operators and constants.
	{"f(a&5)", "f(a & 5)"},
	{`f(a~"eth*")`, `f(a ~ "eth*")`},
	{`f(a ~ "")`, `f(a ~ "")`},
	{`f(a ~ "[!a-z]\\*[-x]?")`, `f(a ~ "[!a-z]\\*[-x]?")`},
	{"f(a == 'c', b != ' ')", "f(a == 'c', b != ' ')"},
	{`f(a == '\n', b == '\0', c == '\'', d == '\x7f')`, `f(a == '\n', b == '\0', c == '\'', d == '\x7f')`},
	{`f(a == "lo")`, `f(a == "lo")`},
	{`f(a == "a\x41\t\n\"\\'\'\xff")`, `f(a == "aA\t\n\"\\''\xff")`},
	{`f(a == "(a, b) && if")`, `f(a == "(a, b) && if")`},
	{"f(a == TWA_RESUME)", "f(a == TWA_RESUME)"},
	{"f(a == NULL, b == true)", "f(a == NULL, b == true)"},
	{"f(a == - EAGAIN)", "f(a == -EAGAIN)"},
	{"f(a & O_DIRECT)", "f(a & O_DIRECT)"},
	{"f($duration > 10ms, $duration < 1.5s)", "f($duration > 10ms, $duration < 1.5s)"},

	// Aggregates.
	{"f(count())", "f(count())"},
	{"f(a, count ( ), $comm)", "f(a, count(), $comm)"},
	{"f(sum(a+1), avg(*b), min((u8)c), max(d->e))", "f(sum(a + 1), avg(*b), min((u8)c), max(d->e))"},
	{"f(hist(a & 7), hist((a | b) << 2)) if return > 0", "f(hist(a & 7), hist((a | b) << 2)) if return > 0"},
	{"f(lhist(a, -5, 0x10, 2))", "f(lhist(a, -5, 0x10, 2))"},
	{"f(lhist($duration, 0, 10ms, 1ms))", "f(lhist($duration, 0, 10ms, 1ms))"},
	{"f(count, sum, max > min)", "f(count, sum, max > min)"},

	// The call alone.
	{"f()", "f()"},
	{"m:f_* ( )", "m:f_*()"},
	{"tp:e()", "tp:e()"},
	{"f() if a > 5", "f() if a > 5"},

	// Conditions.
	{"f if a", "f if a"},
	{"f(a)if(a)", "f(a) if a"},
	{"f if a == 5", "f if a == 5"},
	{"f(a) if a > 5 && b < 9 || return", "f(a) if a > 5 && b < 9 || return"},
	{"f if a || b && c || d", "f if a || b && c || d"},
	{"f if (a || b) && c", "f if (a || b) && c"},
	{"f if a && (b || c)", "f if a && (b || c)"},
	{"f if (a && b) && c", "f if a && b && c"},
	{"f if a && (b && c)", "f if a && (b && c)"},
	{"f if a || (b || c)", "f if a || (b || c)"},
	{"f if (a && b) || (c && d)", "f if a && b || c && d"},
	{"f if !a", "f if !a"},
	{"f if !!a", "f if !!a"},
	{"f if ! ! (a)", "f if !!a"},
	{"f if !(a == 5)", "f if !(a == 5)"},
	{"f if !(a && b)", "f if !(a && b)"},
	{"f if !a->b && !(c)", "f if !a->b && !c"},
	{"f if !(a)->b", "f if !a->b"},
	{"f if !(!(a))", "f if !!a"},
	{"f if !*p", "f if !*p"},
	{"f if !(u8)a", "f if !(u8)a"},
	{"f if (((a > 5)))", "f if a > 5"},
	{"f if (a) > 5", "f if a > 5"},
	{"f if ((a))->b[1].c:x == 5", "f if a->b[1].c:x == 5"},
	{"f if ((a)->b) & 5", "f if a->b & 5"},
	{"f if (*p)->x > 5", "f if (*p)->x > 5"},
	{"f if ((struct sock *)sk)->x > 5", "f if ((struct sock *)sk)->x > 5"},
	{"f if (u8)a > 5 && (struct s *)b", "f if (u8)a > 5 && (struct s *)b"},
	{"f if (a) && b", "f if a && b"},
	{"f if (a)", "f if a"},
	{"f if a & b && c", "f if a & b && c"},
	{"f if a & 4 || !(a & 8)", "f if a & 4 || !(a & 8)"},
	{`f if $comm ~ "ssh*" && name == "eth0"`, `f if $comm ~ "ssh*" && name == "eth0"`},
	{"if if a", "if if a"},
	{"f(a->if) if a->if", "f(a->if) if a->if"},
}

func TestParse(t *testing.T) {
	for _, test := range accepted {
		trace, err := Parse(test.spec)
		require.NoError(t, err, test.spec)
		require.Equal(t, test.canonical, trace.String(), test.spec)
		require.Equal(t, test.spec, trace.Text)
	}
}

func TestParseTree(t *testing.T) {
	text := " f.isra.0 ( a->b->c >= - 0x10 , return )"
	trace, err := Parse(text)
	require.NoError(t, err)
	require.Equal(t, &Trace{
		Text: text,
		Func: Ident{"f.isra.0", Span{1, 9}},
		Items: []*Item{
			{
				Value: &Member{
					X:    &Member{X: &Arg{Ident{"a", Span{12, 13}}}, Name: Ident{"b", Span{15, 16}}},
					Name: Ident{"c", Span{18, 19}},
				},
				Pred: &Predicate{
					Op: Ge, OpAt: Span{20, 22},
					Const: Constant{Text: "- 0x10", Neg: true, Abs: 16, At: Span{23, 29}},
				},
			},
			{Value: &Return{Span{32, 38}}},
		},
	}, trace)

	source := func(at Span) string { return text[at.Start:at.End] }
	require.Equal(t, "a->b->c", source(trace.Items[0].Value.Span()))
	require.Equal(t, ">= - 0x10", source(trace.Items[0].Pred.Span()))
	require.Equal(t, "a->b->c >= - 0x10", source(trace.Items[0].Span()))
	require.Equal(t, "return", source(trace.Items[1].Span()))
}

func TestParseTrees(t *testing.T) {
	a := func(name string, start int) *Arg { return &Arg{Ident{name, Span{start, start + len(name)}}} }
	number := func(text string, n uint64, start int) Constant {
		return Constant{Text: text, Abs: n, At: Span{start, start + len(text)}}
	}
	for _, test := range []struct {
		spec string
		want Trace
	}{
		{"iter:x*", Trace{Iterator: true, Func: Ident{"x*", Span{5, 7}}}},
		{"tp:x*", Trace{Tracepoint: true, Func: Ident{"x*", Span{3, 5}}}},
		{"m : f", Trace{Module: Ident{"m", Span{0, 1}}, Func: Ident{"f", Span{4, 5}}}},
		{"f(*(u8 *)a.b[2]:x)", Trace{Func: Ident{"f", Span{0, 1}}, Items: []*Item{{
			Value: &Deref{
				At: Span{2, 3},
				X: &Cast{
					At:   Span{3, 9},
					Type: TypeName{Name: "u8", Stars: 1, At: Span{4, 8}},
					X: &Index{
						At: Span{12, 15},
						N:  2,
						X:  &Member{X: a("a", 9), Dot: true, Name: Ident{"b", Span{11, 12}}},
					},
				},
			},
			Format: Ident{"x", Span{16, 17}},
		}}}},
		{"f((*a)->b, $ pid, @x)", Trace{Func: Ident{"f", Span{0, 1}}, Items: []*Item{
			{Value: &Member{X: &Deref{a("a", 4), Span{3, 4}}, Name: Ident{"b", Span{8, 9}}}},
			{Value: &Builtin{Ident{"pid", Span{11, 16}}}},
			{Value: &Global{Ident{"x", Span{18, 20}}}},
		}}},
		{"f if !a && b & 4 || (c)", Trace{Func: Ident{"f", Span{0, 1}}, Cond: &Or{
			X: &And{
				X: &Not{&Item{Value: a("a", 6)}, Span{5, 6}},
				Y: &Item{
					Value: a("b", 11),
					Pred:  &Predicate{Op: Mask, OpAt: Span{13, 14}, Const: number("4", 4, 15)},
				},
			},
			Y: &Item{Value: a("c", 21)},
		}}},
		{"f if a && (b || c)", Trace{Func: Ident{"f", Span{0, 1}}, Cond: &And{
			X: &Item{Value: a("a", 5)},
			Y: &Or{&Item{Value: a("b", 11)}, &Item{Value: a("c", 16)}},
		}}},
		{`f(a ~ "x*")`, Trace{Func: Ident{"f", Span{0, 1}}, Items: []*Item{{
			Value: a("a", 2),
			Pred: &Predicate{
				Op: Glob, OpAt: Span{4, 5},
				Const: Constant{Kind: String, Text: `"x*"`, Str: "x*", At: Span{6, 10}},
			},
		}}}},
	} {
		trace, err := Parse(test.spec)
		require.NoError(t, err, test.spec)
		test.want.Text = test.spec
		require.Equal(t, &test.want, trace, test.spec)
	}
}

func TestParseSpans(t *testing.T) {
	text := "f(((u8 *)a)->b[1]:x == 'c', **p, $pid) if !(a > 5) || @x.y & FLAG && c"
	trace, err := Parse(text)
	require.NoError(t, err)
	source := func(node interface{ Span() Span }) string { return text[node.Span().Start:node.Span().End] }
	require.Equal(t, "(u8 *)a)->b[1]:x == 'c'", source(trace.Items[0]))
	require.Equal(t, "**p", source(trace.Items[1]))
	require.Equal(t, "$pid", source(trace.Items[2].Value))
	or := trace.Cond.(*Or)
	require.Equal(t, "!(a > 5", source(or.X))
	require.Equal(t, "@x.y & FLAG && c", source(or.Y))
	require.Equal(t, "@x.y & FLAG", source(or.Y.(*And).X))
}

func TestParseConstant(t *testing.T) {
	for _, test := range []struct {
		text string
		neg  bool
		abs  uint64
	}{
		{"0", false, 0},
		{"00", false, 0},
		{"-0", false, 0},
		{"-0x0", false, 0},
		{"5", false, 5},
		{"+5", false, 5},
		{"-5", true, 5},
		{"010", false, 8},
		{"-0777", true, 511},
		{"0xff", false, 255},
		{"0XABCDEF", false, 0xabcdef},
		{"2147483648", false, 1 << 31},
		{"9223372036854775807", false, math.MaxInt64},
		{"9223372036854775808", false, 1 << 63},
		{"-9223372036854775808", true, 1 << 63},
		{"-0x8000000000000000", true, 1 << 63},
		{"18446744073709551615", false, math.MaxUint64},
		{"0xffffffffffffffff", false, math.MaxUint64},
		{"0xffff888100000000", false, 0xffff888100000000},
		{"01777777777777777777777", false, math.MaxUint64},
		{"0000000000000000000000000000000000001", false, 1},
	} {
		trace, err := Parse("f(a == " + test.text + ")")
		require.NoError(t, err, test.text)
		c := trace.Items[0].Pred.Const
		require.Equal(t, Constant{Text: test.text, Neg: test.neg, Abs: test.abs, At: Span{7, 7 + len(test.text)}}, c)
	}
}

func TestParseConstantKinds(t *testing.T) {
	for _, test := range []struct {
		text string
		want Constant
	}{
		{"'c'", Constant{Abs: 'c'}},
		{"0o644", Constant{Abs: 0o644}},
		{"64K", Constant{Abs: 65536}},
		{"-2M", Constant{Neg: true, Abs: 2 << 20}},
		{`'\n'`, Constant{Abs: '\n'}},
		{`'\t'`, Constant{Abs: '\t'}},
		{`'\0'`, Constant{}},
		{`'\\'`, Constant{Abs: '\\'}},
		{`'\''`, Constant{Abs: '\''}},
		{`'"'`, Constant{Abs: '"'}},
		{`'\xfF'`, Constant{Abs: 255}},
		{`""`, Constant{Kind: String}},
		{`"eth0"`, Constant{Kind: String, Str: "eth0"}},
		{`"\"\\\n\t\x7f'"`, Constant{Kind: String, Str: "\"\\\n\t\x7f'"}},
		{"TWA_RESUME", Constant{Kind: Name, Str: "TWA_RESUME"}},
		{"NULL", Constant{Kind: Name, Str: "NULL"}},
		{"-EAGAIN", Constant{Kind: Name, Str: "EAGAIN", Neg: true}},
		{"- EAGAIN", Constant{Kind: Name, Str: "EAGAIN", Neg: true}},
		{"0s", Constant{Kind: Duration}},
		{"1ns", Constant{Kind: Duration, Abs: 1}},
		{"010us", Constant{Kind: Duration, Abs: 10_000}},
		{"10ms", Constant{Kind: Duration, Abs: 10_000_000}},
		{"1.5s", Constant{Kind: Duration, Abs: 1_500_000_000}},
		{"0.000000001s", Constant{Kind: Duration, Abs: 1}},
		{"1.50m", Constant{Kind: Duration, Abs: 90_000_000_000}},
		{"24h", Constant{Kind: Duration, Abs: 86_400_000_000_000}},
		{"18446744073709551615ns", Constant{Kind: Duration, Abs: math.MaxUint64}},
	} {
		trace, err := Parse("f(a == " + test.text + ")")
		require.NoError(t, err, test.text)
		test.want.Text, test.want.At = test.text, Span{7, 7 + len(test.text)}
		require.Equal(t, test.want, trace.Items[0].Pred.Const)
	}
}

func TestPrintBuiltTree(t *testing.T) {
	arg := func(name string) *Arg { return &Arg{Ident{Name: name}} }
	item := func(name string) *Item { return &Item{Value: arg(name)} }
	number := &Predicate{Op: Lt, Const: Constant{Neg: true, Abs: 1 << 63}}
	for _, test := range []struct {
		trace Trace
		want  string
	}{
		{Trace{Items: []*Item{{Value: &Member{X: &Return{}, Name: Ident{Name: "len"}}, Pred: number}}},
			"f(return->len < -9223372036854775808)"},
		{Trace{Items: []*Item{{Value: &Index{X: &Cast{Type: TypeName{Name: "u8", Stars: 2}, X: &Deref{X: arg("a")}}}}}},
			"f(((u8 **)*a)[0])"},
		{Trace{Cond: &Item{Value: arg("a"), Pred: &Predicate{Op: Gt, Const: Constant{Kind: Duration, Abs: 5}}}},
			"f if a > 5ns"},
		{Trace{Cond: &Not{X: &And{&Or{item("a"), item("b")}, &Not{X: &Item{Value: arg("c"), Pred: number}}}}},
			"f if !((a || b) && !(c < -9223372036854775808))"},
	} {
		test.trace.Func.Name = "f"
		require.Equal(t, test.want, test.trace.String())
		again, err := Parse(test.want)
		require.NoError(t, err)
		require.Equal(t, spectest.Bare(&test.trace), spectest.Bare(again))
	}
	require.Equal(t, "Op(10)", Op(10).String())
}

func TestParseLimits(t *testing.T) {
	deep := "f(a" + strings.Repeat("->next", 65) + ")"
	_, err := Parse(deep)
	require.EqualError(t, err, `
a value with more than 64 members
  ...xt->next->next->next->next->next->next->next->next->next->next->next->next->next->next->next)
                                                                                           ^^`[1:])

	_, err = Parse("f((a" + strings.Repeat("->a", 60) + ")" + strings.Repeat("[1]", 5) + ")")
	require.ErrorContains(t, err, "a value with more than 64 members\n")

	list := "f(" + strings.Repeat("a,", 32000) + "a)"
	trace, err := Parse(list)
	require.NoError(t, err)
	require.Len(t, trace.Items, 32001)

	_, err = Parse(strings.Repeat("f", 512))
	require.ErrorContains(t, err, "a name of 512 characters is longer than any in the kernel (511)\n")
	_, err = Parse(strings.Repeat("f", 511))
	require.NoError(t, err)

	_, err = Parse(strings.Repeat("f", 64<<10+1))
	require.ErrorContains(t, err, "the spec has 65537 bytes, the limit is 65536\n")
}

func TestParseNesting(t *testing.T) {
	for _, test := range []struct{ before, open, inner, closing, after string }{
		{"f(", "*", "a", "", ")"},
		{"f(", "(", "a", ")", ")"},
		{"f(", "(u8)", "a", "", ")"},
		{"f if ", "!", "a", "", ""},
		{"f if ", "(", "a > 5", ")", ""},
		{"f if ", "(", "a", ")", " > 5"},
		{"f if ", "!(", "a > 5", ")", ""},
	} {
		nested := func(n int) string {
			n /= strings.Count(test.open, "!(") + 1
			return test.before + strings.Repeat(test.open, n) + test.inner + strings.Repeat(test.closing, n) + test.after
		}
		_, err := Parse(nested(64))
		require.NoError(t, err)
		_, err = Parse(nested(66))
		require.ErrorContains(t, err, "more than 64 parentheses, casts, '*' and '!' inside each other\n")
	}
}

// TestParseLong checks that the time to parse and print is linear in the length for
// any text.
func TestParseLong(t *testing.T) {
	const n = 8000
	for _, test := range []struct{ spec, err string }{
		{"f if a" + strings.Repeat(" && a", n), ""},
		{"f if a" + strings.Repeat(" || a", n), ""},
		{"f if a" + strings.Repeat(" && a || a", n/2), ""},
		{"f if a" + strings.Repeat(" && (a)", n), ""},
		{"f if (a" + strings.Repeat(" a", n), "expected '&&', '||' or ')', not 'a'"},
		{"f if (a" + strings.Repeat("*", n), "inside each other"},
		{"f(a" + strings.Repeat("+b", n) + ")", "more than 64 operators"},
		{"f if (a)" + strings.Repeat(" && (b *)", n/2), "a value is missing after the cast"},
		{"f if " + strings.Repeat("(", 3*n), "inside each other"},
		{"f if " + strings.Repeat("!", 3*n), "inside each other"},
		{"f(" + strings.Repeat("*", 3*n), "inside each other"},
		{"f(a == " + strings.Repeat("9", 5*n) + "ns", "is out of range"},
		{"f(a == 0." + strings.Repeat("0", 5*n) + "1s", "not a whole number"},
		{"f(a == \"" + strings.Repeat("b", 255) + "\")", ""},
		{"f(a == \"" + strings.Repeat("b", 256) + "\")", "a string of 256 bytes is longer than the limit (255)"},
		{"f(a ~ \"" + strings.Repeat("[a-z]", 30) + strings.Repeat("?", 30) + "\")", ""},
		{"f(a ~ \"" + strings.Repeat("*", 200) + "\")", ""},
	} {
		trace, err := Parse(test.spec)
		if test.err != "" {
			require.ErrorContains(t, err, test.err)
			continue
		}
		require.NoError(t, err)
		again, err := Parse(trace.String())
		require.NoError(t, err)
		require.Equal(t, trace.String(), again.String())
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("ip_send_skb(skb->len > 100, skb->dev->ifindex != 1, return == -11)"); err != nil {
			b.Fatal(err)
		}
	}
}
