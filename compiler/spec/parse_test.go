package spec

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	for _, test := range []struct{ spec, canonical string }{
		// A function alone.
		{"vfs_read", "vfs_read"},
		{" \t\n\v\f\r vfs_read \n", "vfs_read"},
		{"_f0", "_f0"},
		{"if", "if"},
		{"copy_process.isra.0", "copy_process.isra.0"},
		{"f.constprop.0.isra.12", "f.constprop.0.isra.12"},
		{"__do_sys.llvm.7038", "__do_sys.llvm.7038"},
		{"f.cold", "f.cold"},

		// Values.
		{"vfs_read(count)", "vfs_read(count)"},
		{"vfs_read(return)", "vfs_read(return)"},
		{"vfs_read(file,count,return)", "vfs_read(file, count, return)"},
		{"copy_process.isra.0(pid)", "copy_process.isra.0(pid)"},
		{"f(a,a,a)", "f(a, a, a)"},
		{"f(a,b,c,d,e,g,h,i,j)", "f(a, b, c, d, e, g, h, i, j)"},
		{"f(returned)", "f(returned)"},
		{"\tf ( a , return\n) ", "f(a, return)"},

		// Members. How deep one can go is not a matter of syntax.
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

		// Constants keep their base; signs may stand apart.
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
	} {
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
		require.Equal(t, Constant{test.text, test.neg, test.abs, Span{7, 7 + len(test.text)}}, c)
	}
}

func TestPrintBuiltTree(t *testing.T) {
	trace := &Trace{Func: Ident{Name: "f"}, Items: []*Item{{
		Value: &Member{X: &Return{}, Name: Ident{Name: "len"}},
		Pred:  &Predicate{Op: Lt, Const: Constant{Neg: true, Abs: 1 << 63}},
	}}}
	require.Equal(t, "f(return->len < -9223372036854775808)", trace.String())
	require.Equal(t, "Op(9)", Op(9).String())
}

func TestParseLimits(t *testing.T) {
	deep := "f(a" + strings.Repeat("->next", 65) + ")"
	_, err := Parse(deep)
	require.EqualError(t, err, `
a value with more than 64 members
  ...xt->next->next->next->next->next->next->next->next->next->next->next->next->next->next->next)
                                                                                           ^^`[1:])

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

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("ip_send_skb(skb->len > 100, skb->dev->ifindex != 1, return == -11)"); err != nil {
			b.Fatal(err)
		}
	}
}
