package suite

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/spectest"
)

// accepted has statements with their canonical form.
var accepted = []struct{ text, canonical string }{
	{"require kernel >= 5.10", ""},
	{"require kernel<6.12.3 # not yet", "require kernel < 6.12.3"},
	{"require func tcp_sendmsg", ""},
	{"require func ext4:ext4_sync_file.isra.0", ""},
	{"require btf  enum tcp_conntrack", "require btf enum tcp_conntrack"},

	{"run ./test.sh --loss 5%   timeout 120s  status 0", "run ./test.sh --loss 5% timeout 2m status 0"},
	{"run true", "run true status 0"},
	{"run timeout 5 ./x status 3", `run "timeout" 5 ./x status 3`},
	{`run ./x "status" 3`, `run ./x "status" 3 status 0`},
	{`run sh -c 'a | b "c" #d'  timeout 1.5s`, `run sh -c "a | b \"c\" #d" timeout 1500ms status 0`},
	{`run ./x --a="b c"d '' "|" a#b`, `run ./x "--a=b cd" "" "|" "a#b" status 0`},
	{`run ./x 'a\b' 'a\'b' "\\" "--"`, `run ./x a\b "a'b" \ "--" status 0`},

	{"settle 500ms", ""},
	{"settle 1h", ""},

	{"assert a vfs_read never", ""},
	{"assert a vfs_read() never allow-unreached scope task", ""},
	{"assert a vfs_read( count>5 )at-least 1", "assert a vfs_read(count > 5) at-least 1"},
	{"assert a vfs_read(return == -ENOSPC) if $comm == \"at-least 1\" at-most 0", ""},
	{"assert a vfs_read if count == 1 || count == 2 exactly 18446744073709551615", ""},
	{"assert a vfs_read if count count 0..3 scope cgroup allow-unreached", "assert a vfs_read if count count 0..3 allow-unreached scope cgroup"},
	{"assert a open(how->flags & O_DIRECT, return >= 0) count 3..5 scope system", "assert a open(how->flags & O_DIRECT, return >= 0) count 3..5"},
	{"assert a open(return is-err) never", ""},
	{"assert a f() p99<1ms min-samples 1000", "assert a f() p99 < 1ms min-samples 1000"},
	{"assert a f() p99.9 <= 1.5ms scope task min-samples 1", "assert a f() p99.9 <= 1500us min-samples 1 scope task"},
	{"assert a f if size > 3 p50 > 1ns min-samples 10", ""},
	{"assert a f() max >= 90s", ""},
	{`assert a "r f" max < 1ms`, ""},
	{"assert a tcp_v4_connect(sk->__sk_common.skc_state) changed", ""},
	{"assert a f(*p) if p != NULL unchanged allow-unreached", ""},
	{"assert a sk_alloc(return != 0) ~ sk_free() difference <= 10", ""},
	{"assert a f~g ratio>=0.950", "assert a f ~ g ratio >= 0.95"},
	{"assert a f if a == 1 ~ any-of {g h}() ratio != 2", ""},
	{"assert a -s tcp_sendmsg __tcp_transmit_skb ip_output at-least 1", ""},
	{"assert a -s a(x == 1)b if y == 2 any-of {c vmlinux:count}() never", "assert a -s a(x == 1) b if y == 2 any-of {c vmlinux:count}() never"},
	{"assert a any-of  { a.isra.0 ext4:b  tp:c }( x:u8 )if y never", "assert a any-of {a.isra.0 ext4:b tp:c}(x:u8) if y never"},
	{"assert a any-of {a_* b} never", ""},
	{"assert a tcp_*(sk) if sk at-least 1", ""},
	{`assert a "p:x vfs_read $arg1 if arg1 == 'a#b'" never # c`, `assert a "p:x vfs_read $arg1 if arg1 == 'a#b'" never`},
	{`assert a 'p f x=\"never " if x ~ "*#"'at-least 3`, `assert a 'p f x=\"never " if x ~ "*#"' at-least 3`},
	{`assert a "t sched_switch" ~ 't sched_waking' difference == 0`, ""},
	{"assert A_1.b-c:d/e+f f() never", ""},

	{"assert a f($comm, count(), max($duration)) each max( $duration )<1500us", "assert a f($comm, count(), max($duration)) each max($duration) < 1500us"},
	{"assert a f(sum(0x10  +x)) each sum(0x10+\tx) > -5 allow-unreached", "assert a f(sum(0x10 + x)) each sum(0x10 + x) > -5 allow-unreached"},
	{"assert a f(max((struct s *)(x))) each max((struct s *)(x)) == -9223372036854775808", "assert a f(max((struct s *)x)) each max((struct s *)x) == -9223372036854775808"},

	{"metric m f() count", ""},
	{"metric m f(size) sum scope task", ""},
	{"metric m f($duration) histogram", ""},
	{"metric m -s a b count", ""},
	{"metric m f($comm, count(), hist($duration)) table scope cgroup", ""},
	{"metric m tp:a(x) => tp:b(hist($duration)) on x table", ""},
	{"assert a any-of {f g}($comm, count()) if x > 3 at-least 1", ""},
	{`metric m "p f $arg1" sum`, ""},

	{"evidence x f(a, return) last 5", ""},
	{"evidence x -s a b() last 10000", ""},
	{`evidence x "p:q f $arg*" last 1`, ""},

	{`xfail x on qemu "emulated clock"`, ""},
	{`xfail x on always 'it''s # so'`, `xfail x on always "its # so"`},
	{`xfail x on kernel<=6.1 "\"no\" \\ why"`, `xfail x on kernel <= 6.1 "\"no\" \\ why"`},
}

// TestParse checks that a statement prints in canonical form, which parses to the
// same statement.
func TestParse(t *testing.T) {
	for _, test := range accepted {
		s, err := Parse("f", body+test.text)
		require.NoError(t, err, test.text)
		want := test.canonical
		if want == "" {
			want = test.text
		}
		printed := s.String()
		require.Contains(t, printed, "\n"+want+"\n", test.text)
		again, err := Parse("f", printed)
		require.NoError(t, err, test.text)
		require.Equal(t, spectest.Bare(s), spectest.Bare(again))
	}
}

func TestParseFile(t *testing.T) {
	s, err := Parse("f", "\n# comment\r\n ksnoop-probes 1\r\nsuite x # y\r\n\nxfail a on qemu 'no'\nevidence b f last 3\nmetric b f() count\n"+
		"assert a any-of {f g}(a == 1, b) if c p90 < 2m min-samples 7 # \"\nsettle 1ms\nrun a b timeout 1m status 4")
	require.NoError(t, err)
	require.Equal(t, "f", s.File)
	require.Equal(t, "x", s.Name)
	require.Equal(t, time.Millisecond, s.Settle)
	require.Equal(t, &Run{Command: []string{"a", "b"}, Timeout: time.Minute, Status: 4, From: spec.Source{File: "f", Line: 11}}, s.Run)
	a := s.Asserts[0]
	require.Equal(t, Condition{Kind: Percentile, Op: spec.Lt, Permille: 900, Limit: 2 * time.Minute, Samples: 7}, a.Condition)
	require.Equal(t, spec.Source{File: "f", Line: 9}, a.From)
	require.Len(t, a.Path[0].AnyOf, 2)
	for i, name := range []string{"f", "g"} {
		trace := a.Path[0].AnyOf[i]
		require.Equal(t, name+"(a == 1, b) if c", trace.String())
		require.Equal(t, name, trace.Text[trace.Func.At.Start:trace.Func.At.End])
		require.Equal(t, "b", trace.Text[trace.Items[1].Span().Start:trace.Items[1].Span().End])
		require.Equal(t, a.From, trace.From)
	}
}

// TestPlaces checks that places in a kprobe_events line are offsets in the line of
// the probe file.
func TestPlaces(t *testing.T) {
	s, err := Parse("f", body+`assert y "r:e vfs_read ret=$retval if ret < 0" ~ 'p vfs_write' ratio == 1`)
	require.NoError(t, err)
	for i, trace := range []*spec.Trace{s.Asserts[1].Path[0].AnyOf[0], s.Asserts[1].Other.AnyOf[0]} {
		require.Equal(t, []string{"vfs_read", "vfs_write"}[i], trace.Text[trace.Func.At.Start:trace.Func.At.End])
		require.Equal(t, spec.Source{File: "f", Line: 4}, trace.From)
	}
}

// TestCounted checks that a spec of which only the calls are counted has an empty
// list.
func TestCounted(t *testing.T) {
	s, err := Parse("f", body+"assert y foo() never")
	require.NoError(t, err)
	require.Nil(t, s.Asserts[0].Path[0].AnyOf[0].Items)
	require.NotNil(t, s.Asserts[1].Path[0].AnyOf[0].Items)
	require.Empty(t, s.Asserts[1].Path[0].AnyOf[0].Items)
}

func TestCommand(t *testing.T) {
	without, err := Parse("f", body)
	require.NoError(t, err)
	with, err := Parse("f", body+"run a\n")
	require.NoError(t, err)

	run, err := with.Command(nil, false)
	require.NoError(t, err)
	require.Equal(t, with.Run, run)
	run, err = without.Command([]string{"b", "c"}, false)
	require.NoError(t, err)
	require.Equal(t, &Run{Command: []string{"b", "c"}}, run)
	run, err = without.Command(nil, true)
	require.NoError(t, err)
	require.Nil(t, run)

	_, err = without.Command(nil, false)
	require.EqualError(t, err, "f names no command: add a line 'run COMMAND' or write -- COMMAND after the options")
	_, err = with.Command([]string{"b"}, false)
	require.EqualError(t, err, "a command follows --, and f has one in line 4: leave one of them out")
	_, err = with.Command(nil, true)
	require.EqualError(t, err, "the calls come from outside, and f has a command in line 4: leave one of them out")
	_, err = without.Command([]string{"b"}, true)
	require.NoError(t, err)
}

func TestVersionHolds(t *testing.T) {
	for _, test := range []struct {
		text, release string
		want          bool
	}{
		{">= 5.10", "5.10.226-1-cloud-amd64", true},
		{"> 5.10", "5.10.226", false},
		{"== 5.10", "5.10.226", true},
		{"<= 5.10", "5.10.226", true},
		{"< 5.10.226", "5.10.226", false},
		{"> 5.9", "5.10", true},
		{"< 6", "5.19-rc1", true},
		{"!= 6.12", "6.12.0+deb13", false},
		{">= 6.12.1", "6.12-rc3", false},
		{">= 6", "7.0.0.1", true},
		{">= 6", "unknown", false},
		{"< 6", "", false},
	} {
		s, err := Parse("f", body+"require kernel "+test.text)
		require.NoError(t, err)
		r := s.Requires[0]
		require.Equal(t, test.want, r.Version.Holds(r.Op, test.release), "%s %s", test.release, test.text)
	}
}

func TestExpected(t *testing.T) {
	s, err := Parse("f", body+`xfail x on qemu "slow"
xfail x on kernel < 6.1 "old"
assert y foo never
xfail y on always "why"`)
	require.NoError(t, err)
	for _, test := range []struct {
		name string
		on   Machine
		want string
	}{
		{"x", Machine{Release: "6.12.1"}, ""},
		{"x", Machine{Release: "6.12.1", Emulated: true}, "slow"},
		{"x", Machine{Release: "5.10.1"}, "old"},
		{"y", Machine{}, "why"},
		{"z", Machine{}, ""},
	} {
		reason, ok := s.Expected(test.name, test.on)
		require.Equal(t, test.want, reason)
		require.Equal(t, test.want != "", ok)
	}
	_, ok := s.HasAssert("x")
	require.True(t, ok)
	near, ok := s.HasAssert("xx")
	require.False(t, ok)
	require.Equal(t, "x", near)
}

// FuzzParse checks that the errors for a refused file have a place in it, and that an
// accepted file prints as a file that means the same and prints the same again.
func FuzzParse(f *testing.F) {
	for _, test := range refused {
		f.Add(test.before + test.text)
	}
	for _, test := range accepted {
		f.Add(body + test.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse("f", text)
		if err != nil {
			requirePlaces(t, err, text)
			return
		}
		printed := s.String()
		again, err := Parse("f", printed)
		require.NoError(t, err, printed)
		require.Equal(t, printed, again.String())
		require.Equal(t, spectest.Bare(s), spectest.Bare(again))
	})
}

// requirePlaces requires that the place of each error is in a line of the text.
func requirePlaces(t *testing.T, err error, text string) {
	all, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok)
	lines := strings.Count(text, "\n") + 1
	for _, err := range all.Unwrap() {
		refusal, ok := err.(*spec.Error)
		require.True(t, ok)
		require.Equal(t, "f", refusal.From.File)
		require.GreaterOrEqual(t, refusal.From.Line, 1)
		require.LessOrEqual(t, refusal.From.Line, lines)
		spectest.RequirePlace(t, err, refusal.Msg, refusal.Text, refusal.At.Start, refusal.At.End)
		require.Regexp(t, `^f:[0-9]+:[0-9]+: `, refusal.Error())
	}
}

// TestDocIsComplete checks that the reference names all words of the language.
func TestDocIsComplete(t *testing.T) {
	text, err := os.ReadFile("../../docs/verdicts.md")
	require.NoError(t, err)
	for _, words := range [][]string{kindWords, statementWords, modifierWords, scopeWords, metricWords, onWords, requireWords, typeWords, statusWords[:]} {
		for _, word := range words {
			require.Regexp(t, "[\"`]"+regexp.QuoteMeta(word)+"[\"` ]", string(text))
		}
	}
}

// TestExamples checks that every example of the reference is a valid probe file.
func TestExamples(t *testing.T) {
	text, err := os.ReadFile("../../docs/verdicts.md")
	require.NoError(t, err)
	blocks := strings.Split(string(text), "```probes\n")[1:]
	require.GreaterOrEqual(t, len(blocks), 3)
	for _, block := range blocks {
		lines, _, _ := strings.Cut(block, "```")
		if !strings.HasPrefix(lines, header) {
			lines = body + lines
		}
		_, err := Parse("docs/verdicts.md", lines)
		require.NoError(t, err)
	}
}
