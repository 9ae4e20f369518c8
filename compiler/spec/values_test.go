package spec

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestParseValues checks the canonical form of values, which parses to the same again.
func TestParseValues(t *testing.T) {
	for text, want := range map[string]string{
		"@jiffies":                              "@jiffies",
		"(u64) @ jiffies_64:d,$task->mm":        "(u64)@jiffies_64:d, $task->mm",
		"((struct file *)0xff80)->f_op[0..3]":   "((struct file *)0xff80)->f_op[0..3]",
		"*(char**)(0x10 + 010)":                 "*(char **)(0x10 + 010)",
		"((unsigned long[3])@avenrun)[0x1..2]":  "((unsigned long[3])@avenrun)[1..2]",
		"(u64[3])@avenrun, (struct foo *[2])@x": "(u64[3])@avenrun, (struct foo *[2])@x",
		"$task->flags & 3":                      "($task->flags & 3)",
		"$task->flags & PF_KTHREAD":             "($task->flags & PF_KTHREAD)",
		"1 + @x":                                "1 + @x",
		"(pid_t)5, (u64 [2]) 0xff":              "(pid_t)5, (u64[2])0xff",
	} {
		trace, err := ParseValues(text)
		require.NoError(t, err, text)
		require.Equal(t, want, trace.String())
		again, err := ParseValues(want)
		require.NoError(t, err, text)
		require.Equal(t, want, again.String())
	}
}

func TestRefuseValues(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", "a value is missing\n  such as @jiffies_64 with a cast, $task->comm, or *(struct file *)0xffff888012345600"},
		{"@a,", "a value is missing\n  @a,\n     ^\n  such as @jiffies_64 with a cast, $task->comm, or *(struct file *)0xffff888012345600"},
		{"@a == 5", "a comparison, where values are shown\n  @a == 5\n     ^^\n  leave it out"},
		{"@a if @b", "a condition, where values are shown\n  @a if @b\n     ^^\n  leave it out"},
		{",@a", "a value is missing before ','\n  ,@a\n  ^\n  leave out the ','"},
		{"1 +", "a value is missing after '+'\n  1 +\n     ^"},
		{"@a => @b", "a span joins two calls, and these are values\n  @a => @b\n     ^^\n  ksnoop trace shows spans: A => B on KEY"},
		{"@a)", "')' without '('\n  @a)\n    ^"},
		{"return", "'return' is of a call, and values are read without one\n  return\n  ^^^^^^\n  ksnoop trace shows calls"},
		{"after(@a)", "'after(@a)' is of a call, and values are read without one\n  after(@a)\n  ^^^^^^^^^\n  ksnoop trace shows calls"},
		{"@a + $arg1", "'$arg1' is of a call, and values are read without one\n  @a + $arg1\n       ^^^^^\n  without a call, there are $task $comm $pid $tid $ppid $uid $cgroup $container, of ksnoop itself, and $cpu"},
		{"count()", "count() counts calls, and there is none\n  count()\n  ^^^^^\n  ksnoop trace counts them: vfs_read(count())"},
		{"@a, 1 + sum(@b)", "sum() counts calls, and there is none\n  @a, 1 + sum(@b)\n          ^^^\n  ksnoop trace counts them: vfs_read(sum(count))"},
		{"@a, iter:task(task->pid)", "'iter:' begins a spec, and values are read without one\n  @a, iter:task(task->pid)\n      ^^^^\n  ksnoop 'iter:...' shows a row for each object"},
		{"tp:kfree(ptr)", "'tp:' begins a spec, and values are read without one\n  tp:kfree(ptr)\n  ^^\n  ksnoop 'tp:...' shows calls"},
		{"!$task->pid", "expected a value, not '!'\n  !$task->pid\n  ^\n  leave out the '!'"},
		{"vfs_read(file)", "expected ',' or the end, not '('\n  vfs_read(file)\n          ^\n  ksnoop trace shows calls"},
		{"sizeof(@a)", "expected ',' or the end, not '('\n  sizeof(@a)\n        ^\n  ksnoop info TYPE shows sizes and offsets"},
		{"0xffff888012345600", "expected a value, not '0xffff888012345600'\n  0xffff888012345600\n  ^^^^^^^^^^^^^^^^^^\n  an address with a cast is one: *(struct file *)0xffff888012345600"},
		{"(struct file *)0xff00->f_op", "'->' belongs to what the cast is of, which is a number\n  (struct file *)0xff00->f_op\n                       ^^\n  put the cast in parentheses: ((struct NAME *)0xffff888012345600)->MEMBER"},
	} {
		_, err := ParseValues(tc.text)
		require.Error(t, err, tc.text)
		require.Equal(t, tc.want, err.Error())
	}
}

// TestParseItems covers items without the parentheses of a list, whose errors show the
// text as it was given.
func TestParseItems(t *testing.T) {
	for _, text := range []string{"skb->len", "skb->len:x, (skb->mark & 7), $comm", "return, after(skb->len), count > 5"} {
		trace, err := ParseItems(text)
		require.NoError(t, err, text)
		require.Equal(t, text, trace.listText())
	}
	for _, tc := range []struct{ text, want string }{
		{"", "a value is missing"},
		{"skb->len,", "a value is missing after ','\n  skb->len,\n           ^"},
		{"count) if (count > 5", "')' without '('\n  count) if (count > 5\n       ^"},
		{"a if b", "a condition, where values are shown\n  a if b\n    ^^\n  leave it out"},
		{"a(b", "expected ',' or the end, not '('\n  a(b\n   ^\n  ksnoop trace shows calls"},
		{"a => b", "a span joins two calls, and these are values\n  a => b\n    ^^\n  ksnoop trace shows spans: A => B on KEY"},
	} {
		_, err := ParseItems(tc.text)
		require.Error(t, err, tc.text)
		require.Equal(t, tc.want, err.Error())
	}
	_, err := ParseItems(strings.Repeat("a,", longest))
	require.ErrorContains(t, err, "the limit is")
}

// FuzzParseValues checks that the error for refused text is an [*Error], and that
// accepted text prints as values, and as items, that print the same again.
func FuzzParseValues(f *testing.F) {
	for _, text := range []string{"@a, (u64[3])@b:x", "*(struct a **)(0x10 + 8)", "((u8 *)0x1)[0..9]", "$task->a.b[1] & 3", "(a[3])*b", "(a)5", "iter:a", "return", "1..2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(string) (*Trace, error){ParseValues, ParseItems} {
			trace, err := parse(text)
			if err != nil {
				require.IsType(t, &Error{}, err)
				continue
			}
			again, err := parse(trace.listText())
			require.NoError(t, err, trace.listText())
			require.Equal(t, trace.listText(), again.listText())
		}
	})
}
