package kprobe

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

func TestExpand(t *testing.T) {
	for _, test := range []struct{ line, params, want, fields string }{
		{"p f %di", "file count", "p f %di", "arg1"},
		{"p f $arg*", "file count", "p f file count", "file count"},
		{"p f $arg*", "", "p f", ""},
		{"p f $arg* %di x=%si", "file count", "p f file count %di x=%si", "file count arg3 x"},
		{"r f $retval $arg* $comm", "file count", "r f $retval file count $comm", "arg1 file count arg4"},
		{"p f $arg* %di if count > 5 && !file == 0 || arg3 == 1", "file count", "p f file count %di if count > 5 && !(file == 0) || arg3 == 1", "file count arg3"},
		{"p f $arg* if cpu == 1 || comm == \"x\"", "file", "p f file if cpu == 1 || comm == \"x\"", "file"},
		{"p f $arg* n=+0($arg1):string if n == x && file == 1", "file", "p f file n=+0($arg1):string if n == \"x\" && file == 1", "file n"},
		{"p f $arg* if cpu == 1", "cpu", "p f cpu if cpu == 1", "cpu"},
	} {
		trace, err := Parse(test.line)
		require.NoError(t, err, test.line)
		before := trace.String()
		expanded, err := trace.Expand(strings.Fields(test.params))
		require.NoError(t, err, test.line)
		require.Equal(t, test.want, expanded.String(), test.line)
		require.Equal(t, test.fields, strings.Join(expanded.ItemNames(), " "), test.line)
		require.Equal(t, before, trace.String(), test.line)
		requireBound(t, expanded)
	}
}

// requireBound requires that every field refers to an item: to an argument if there
// is one of its name, else to a field that all events have.
func requireBound(t *testing.T, trace *spec.Trace) {
	for _, item := range trace.AllItems() {
		field, ok := item.Value.(*spec.Field)
		if !ok {
			continue
		}
		require.NotNil(t, field.Of, "%s in %s", field, trace)
		for i, name := range trace.ItemNames() {
			if name == field.Name.Name {
				require.Same(t, trace.Items[i], field.Of)
			}
		}
	}
}

func TestExpandErrors(t *testing.T) {
	for _, test := range []struct{ line, params, want string }{
		{"p f count $arg*", "file count", `
a second argument with the name 'count'
  p f count $arg*
            ^^^^^
  give it another one: NAME=count`},
		{"p f $arg* if cuont == 5", "file count", `
the event has no field 'cuont'
  p f $arg* if cuont == 5
               ^^^^^
  did you mean 'count'?`},
		{"p f $arg* if a == 5 && zzzzzz == 5", "a", `
the event has no field 'zzzzzz'
  p f $arg* if a == 5 && zzzzzz == 5
                         ^^^^^^
  it has a COMM CPU comm common_cpu common_pid cpu`},
	} {
		trace, err := Parse(test.line)
		require.NoError(t, err, test.line)
		_, err = trace.Expand(strings.Fields(test.params))
		require.EqualError(t, err, test.want[1:])
	}
}

func TestSymbols(t *testing.T) {
	trace, err := Parse("p m:f +8(+0(@x+4)) @0xff file->f_inode")
	require.NoError(t, err)
	require.Equal(t, "m:f", trace.Symbol())
	var addresses []string
	for _, item := range trace.AllItems() {
		spec.Walk(item.Value, func(x spec.Expr) {
			if a, ok := x.(*spec.Address); ok {
				addresses = append(addresses, a.String())
			}
		})
	}
	require.Equal(t, []string{"x+4", "0xff"}, addresses)
}

func TestTypes(t *testing.T) {
	for _, test := range []struct {
		typ    string
		width  int
		signed bool
		text   bool
	}{
		{"u8", 8, false, false}, {"s16", 16, true, false}, {"x64", 64, false, false}, {"s64", 64, true, false},
		{"char", 8, false, false}, {"symbol", 64, false, false}, {"b4@2/8", 4, false, false}, {"b64@0/64", 64, false, false},
		{"string", 0, false, true}, {"ustring", 0, false, true}, {"symstr", 0, false, true}, {"%pd", 0, false, true}, {"%pD", 0, false, true},
	} {
		trace, err := Parse("p f d->n:" + test.typ)
		require.NoError(t, err)
		width, signed := trace.Items[0].Type.Bits()
		require.Equal(t, test.width, width, test.typ)
		require.Equal(t, test.signed, signed, test.typ)
		require.Equal(t, test.text, trace.Items[0].Type.IsText(), test.typ)
		require.Equal(t, test.typ, trace.Items[0].Type.String())
	}
	for _, typ := range spec.FetchTypes {
		_, err := Parse("p f d->n:" + typ)
		require.NoError(t, err)
	}
}
