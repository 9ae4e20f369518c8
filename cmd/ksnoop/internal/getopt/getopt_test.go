package getopt

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func find(name string) (Option, bool) {
	o, ok := map[string]Option{
		"pid": {"pid", true}, "p": {"pid", true}, "debug": {"debug", false}, "d": {"debug", false}, "é": {"e", false},
	}[name]
	return o, ok
}

// show returns a line as text in which all its parts can be distinguished.
func show(l *Line) string {
	var words []string
	for _, o := range l.Options {
		word := o.Name
		if word == "" {
			word = "?" + o.Spelled
		}
		if o.HasValue {
			word += "=" + o.Value
		}
		if o.Missing() {
			word += "!"
		}
		words = append(words, word)
	}
	words = append(words, "|")
	words = append(words, l.Operands...)
	if l.Behind != nil {
		words = append(append(words, "--"), l.Behind...)
	}
	return strings.Join(words, " ")
}

func TestSplit(t *testing.T) {
	for line, want := range map[string]string{
		"a":                  "| a",
		"-p 1 a":             "pid=1 | a",
		"a -p 1":             "pid=1 | a",
		"a -p1 b":            "pid=1 | a b",
		"-p=1":               "pid=1 |",
		"-dp1":               "debug pid=1 |",
		"-dp 1":              "debug pid=1 |",
		"--pid=1 --debug":    "pid=1 debug |",
		"--pid= a":           "pid= | a",
		"--pid 1 a":          "pid=1 | a",
		"--debug=x a":        "debug=x | a",
		"-d=x":               "debug=x |",
		"-p -d":              "pid=-d |",
		"-p -- -d":           "pid=-- debug |",
		"-p":                 "pid! |",
		"a --pid":            "pid! | a",
		"- a":                "| - a",
		"a -- -d -- b":       "| a -- -d -- b",
		"a --":               "| a --",
		"--no a":             "?--no | a",
		"--no=1":             "?--no=1=1 |",
		"-dz":                "debug ?-z |",
		"-é":                 "e |",
		"--p 1":              "?--p | 1",
		"---pid":             "?---pid |",
		"-p 1 --pid 2 -p3 x": "pid=1 pid=2 pid=3 | x",
	} {
		require.Equal(t, want, show(Split(strings.Fields(line), find)), line)
	}
}

// FuzzSplit verifies that each word is an option, an operand or a value, or comes
// after --.
func FuzzSplit(f *testing.F) {
	f.Add("a -dp 1 --pid=x --no -- b -- c")
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Split(line, " ")
		l := Split(words, find)
		require.LessOrEqual(t, len(l.Operands)+len(l.Behind), len(words))
		for _, o := range l.Options {
			require.True(t, strings.HasPrefix(o.Spelled, "-"))
			require.True(t, o.HasValue || o.Value == "")
		}
	})
}
