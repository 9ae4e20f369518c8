package spec

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestErrorf(t *testing.T) {
	text := "vfs_read(cuont > 5)"
	err := Errorf(text, Span{9, 14}, "%s has no argument '%s'", "vfs_read", "cuont").WithMeant("%s", "count")
	require.EqualError(t, err, `
vfs_read has no argument 'cuont'
  vfs_read(cuont > 5)
           ^^^^^
  did you mean 'count'?`[1:])
	require.Equal(t, "count", err.Meant)
	err.AddHint("or '%s'?", "pos")
	require.Equal(t, "did you mean 'count'?\nor 'pos'?", err.Hint)
	other := Errorf(text, Span{9, 14}, "wrong")
	other.AddHint("right")
	require.Equal(t, "right", other.Hint)
}

func TestErrorShowsPlace(t *testing.T) {
	as, bs := strings.Repeat("a", 96), strings.Repeat("b", 200)
	for _, test := range []struct {
		about string
		text  string
		at    Span
		want  string
	}{
		{"the end", "f(a", Span{3, 3}, `
  f(a
     ^`},
		{"beyond the end", "f(a", Span{7, 9}, `
  f(a
     ^`},
		{"backwards", "f(a", Span{2, -1}, `
  f(a
    ^`},
		{"no text", "", Span{0, 0}, ""},
		{"as wide as the window", as, Span{95, 96}, `
  ` + as + `
  ` + strings.Repeat(" ", 95) + "^"},
		{"beginning of a long text", "f(" + bs, Span{0, 1}, `
  f(` + bs[:91] + `...
  ^`},
		{"end of a long text", bs + ")", Span{201, 201}, `
  ...` + bs[:92] + `)
  ` + strings.Repeat(" ", 96) + "^"},
		{"middle of a long text", bs + "c" + bs, Span{200, 201}, `
  ...` + bs[:29] + "c" + bs[:60] + `...
  ` + strings.Repeat(" ", 32) + "^"},
		{"longer than the window", "f" + bs + "g", Span{1, 201}, `
  f` + bs[:92] + `...
   ` + strings.Repeat("^", 92)},
		{"control characters", "f\x00(\x1b[1m\ta)", Span{8, 9}, `
  f?(?[1m a)
          ^`},
		{"several bytes a character", "f(\u4e16\u754c \xff\u00e9)", Span{9, 13}, `
  f(?? ??)
       ^^^`},
	} {
		err := Errorf(test.text, test.at, "message")
		require.Equal(t, "message"+test.want, err.Error(), test.about)
	}
}

func TestErrorIsPrintable(t *testing.T) {
	err := Errorf("f", Span{0, 1}, "no \x1b[2J%s\n", "\u202e").WithHint("one\ntwo\x07\n")
	require.EqualError(t, err, `
no ?[2J? 
  f
  ^
  one
  two?`[1:])
}
