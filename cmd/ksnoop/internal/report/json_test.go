package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestJSONText verifies that characters with a meaning in HTML are not escaped, that
// control characters are, and that a number that is not finite becomes null.
func TestJSONText(t *testing.T) {
	var text strings.Builder
	j := &jsonLines{w: &text}
	require.NoError(t, j.Result(Result{Name: "a<b>&", Text: "x\x1b\x00\xff", Fields: []Field{{"p<5", "1 < 2 \u009b"}, {"list", []string{"<"}}, {"f", 0.5}, {"g", 1 / zero}}}))
	require.Equal(t, `{"type":"result","suite":"","name":"a<b>&","status":"pass","text":"x\u001b\ufffd\ufffd",`+
		`"fields":{"p<5":"1 < 2 \u009b","list":["<"],"f":0.5,"g":null}}`+"\n", text.String())
}

var zero float64
