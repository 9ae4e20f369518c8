package term

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
)

// marked returns text with its styles as letters in angle brackets.
func marked(text string) string {
	painted := string(appendPainted(nil, []byte(text)))
	return strings.NewReplacer(string(functionStyle), "<F:", string(nameStyle), "<N:", string(typeStyle), "<T:", string(faultStyle), "<X:", endOfStyle, ">").Replace(painted)
}

// TestPaint covers everything with a style: functions, names, types and faults, but
// nothing in strings.
func TestPaint(t *testing.T) {
	for text, want := range map[string]string{
		"       123    2       77 vfs_read(\n":                      "       123    2       77 <F:vfs_read>(\n",
		"           tp:tick(\n":                                     "           tp:<F:tick>(\n",
		"         file->f_path.dentry = *(0xffff)\n":                "         <N:file->f_path.dentry> = *(0xffff)\n",
		"          (struct file){\n  .f_flags = (int)2,\n":          "          <T:(struct file)>{\n  .<N:f_flags> = <T:(int)>2,\n",
		"          (char *)\"a = (int)2 /* x */ \\\" f(\",\n":       "          <T:(char *)>\"a = (int)2 /* x */ \\\" f(\",\n",
		"   count << 1 = \n   file->f_pos + (count & 0xff) * 3 =\n": "   <N:count << 1> = \n   <N:file->f_pos + (count & 0xff) * 3> =\n",
		"-> f(count & 0xff=1, x - 1=2, - 1=3)\n":                    "-> <F:f>(<N:count & 0xff>=1, <N:x - 1>=2, - <N:1>=3)\n",
		"  /* Cannot show 'p' as 'int *': NULL pointer */\n":        "  <X:/* Cannot show 'p' as 'int *': NULL pointer */>\n",
		"  (u64)1500 /* 1.5\u00b5s */\n":                            "  <T:(u64)>1500 /* 1.5\u00b5s */\n",
		"-> f(p=*(0x1){.a = (int)1,}, s=\"x\") = -1\n":              "-> <F:f>(<N:p>=*(0x1){.<N:a> = <T:(int)>1,}, <N:s>=\"x\") = -1\n",
		"<- f() = /* 0x12 is a user-space address */\n":             "<- <F:f>() = <X:/* 0x12 is a user-space address */>\n",
		"fentry  int f(char *s);  // no hook\n":                     "fentry  int <F:f>(char *s);  <X:// no hook>\n",
		"it's (x a \"open\n(int)1 'c' \\\"\n":                       "it's (x a \"open\n<T:(int)>1 'c' \\\"\n",
		"\x1b[31m(int)1 \x9b = \u202e\n/* \x1b[2J */\n(\n\"\\\n":    "?[<F:31m>(int)1 ? = ?\n<X:/* ?[2J */>\n(\n\"\\\n",
	} {
		require.Equal(t, want, marked(text), text)
	}
}

// sgr matches the escape sequences of colours.
var sgr = regexp.MustCompile(`\x1b\[(1|31|32|36)?m`)

// FuzzPaint verifies that painted text without its colours equals the plain text,
// however it is cut into writes, and has no other control characters.
func FuzzPaint(f *testing.F) {
	f.Add([]byte("\x1b[31mf(x) = (int)1 /* \x1b[m */\n.a = \"\x1b[2J\xff"), uint(7))
	f.Add([]byte("a\x1b=/*\n//\\\"(char *)\xe4\xb8\n"), uint(9))
	f.Fuzz(func(t *testing.T, text []byte, at uint) {
		text = append(text, '\n') // only whole lines are shown
		cut := int(at % uint(len(text)))
		var plain, painted bytes.Buffer
		_, _ = NewPlain(&plain).Write(text) // writing to a buffer does not fail
		w := &PlainWriter{w: &painted, color: true}
		_, _ = w.Write(text[:cut])
		_, _ = w.Write(text[cut:])
		require.Equal(t, plain.String(), sgr.ReplaceAllString(painted.String(), ""))
		require.Regexp(t, safe, sgr.ReplaceAllString(painted.String(), ""))
	})
}

// safe matches text that may be written to a terminal.
var safe = regexp.MustCompile(`^[\n\t\x20-\x7e\x{a1}-\x{200a}\x{2010}-\x{2027}\x{2030}-\x{205e}\x{2070}-\x{10ffff}]*$`)

// TestWidthOf verifies that $COLUMNS goes before the width that a terminal reports, and
// that nothing else than a terminal has a width.
func TestWidthOf(t *testing.T) {
	_, tty := fixture.OpenTerminal(t)
	fixture.Resize(t, tty, 70, 10)
	for columns, want := range map[string]int{"": 70, "120": 120, "0": 70, "-3": 70, "wide": 70, "99999999": 70} {
		t.Setenv("COLUMNS", columns)
		require.Equal(t, want, WidthOf(NewPlain(tty)), columns)
		require.Zero(t, WidthOf(new(bytes.Buffer)))
	}
	t.Setenv("COLUMNS", "120")
	cols, rows := sizeOf(tty)
	require.Equal(t, []int{70, 10}, []int{cols, rows}, "what is drawn in place must fit")
}
