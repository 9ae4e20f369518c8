package term

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// TestPrintJSONErrors verifies that each error is an object with its parts, by the
// schema.
func TestPrintJSONErrors(t *testing.T) {
	_, misspelt := spec.Parse("f(a =< 1)")
	var in *spec.Error
	require.ErrorAs(t, misspelt, &in)
	located := *in
	located.From = spec.Source{File: "p\x1b", Line: 3}
	located.Text, located.At = "é"+located.Text, spec.Span{Start: located.At.Start + 2, End: located.At.End + 2}
	at := func(text string, start, end int) error {
		return spec.Errorf(text, spec.Span{Start: start, End: end}, "here")
	}
	for want, err := range map[string]error{
		`{"type":"error","version":1,"status":2,"message":"here","spec":"\ufffdé\ufffd(\ufffd)","start":8,"end":9}`:                        at("\xffé\xc3(\xfe)", 4, 5),
		`{"type":"error","version":1,"status":2,"message":"here","spec":"a\ufffd","start":1,"end":4}`:                                      at("a\xff", 1, 2),
		`{"type":"error","version":1,"status":2,"message":"here","spec":"aé","start":1,"end":3}`:                                           at("aé", 1, 2),
		`{"type":"error","version":1,"status":2,"message":"here","spec":"ab","start":1,"end":2}`:                                           at("ab\x00cd", 1, 4),
		`{"type":"error","version":1,"status":2,"message":"here","spec":"ab","start":2,"end":2}`:                                           at("ab", 2, 3),
		`{"type":"error","version":1,"status":2,"message":"a \"quoted\" word\nand \u001b[m\ufffd"}`:                                        errors.New("a \"quoted\" word\nand \x1b[m\xff"),
		`{"type":"error","version":1,"status":2,"message":"` + in.Msg + `","hint":"` + in.Hint + `","spec":"f(a =< 1)","start":4,"end":6}`: misspelt,
		`{"type":"error","version":1,"status":2,"message":"trace: ` + in.Msg + `","hint":"` + in.Hint +
			`","spec":"éf(a =< 1)","start":6,"end":8,"file":"p\u001b","line":3,"column":6}`: fmt.Errorf("trace: %w", &located),
		`{"type":"error","version":1,"status":2,"message":"--a is \"x: y\"","hint":"it must be 1 or \"z: \""}`: exit.Usagef("--%s is %q: it must be %d or %q", "a", "x: y", 1, "z: "),
		`{"type":"error","version":1,"status":2,"message":"--comm: a: b"}`:                                     exit.Usagef("--comm: %w", errors.New("a: b")),
		`{"type":"error","version":1,"status":2,"message":"two types"}`:                                        exit.Usagef("two types"),
	} {
		var out strings.Builder
		PrintJSONErrors(&out, err, 2)
		require.Equal(t, want+"\n", out.String())
		require.NoError(t, fixture.Schema(t, "errors").Lines(out.String()))
	}
	var out strings.Builder
	PrintJSONErrors(&out, errors.Join(errors.New("a"), errors.New("a"), ErrReaderGone, errors.New("b")), 1)
	require.Equal(t, "{\"type\":\"error\",\"version\":1,\"status\":1,\"message\":\"a\"}\n{\"type\":\"error\",\"version\":1,\"status\":1,\"message\":\"b\"}\n", out.String())
}
