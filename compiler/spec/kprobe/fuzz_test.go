package kprobe

import (
	"errors"
	"reflect"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// FuzzParse: a refused line gives a [*spec.Error] with a place in the line. An
// accepted one prints to a line that parses to the same tree and prints the
// same again.
func FuzzParse(f *testing.F) {
	for _, test := range refused {
		f.Add(test.line)
	}
	for _, test := range accepted {
		f.Add(test.line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		trace, err := Parse(line)
		if err != nil {
			requirePlace(t, err)
			return
		}
		printed := trace.String()
		again, err := Parse(printed)
		require.NoError(t, err)
		require.Equal(t, printed, again.String())
		require.Equal(t, bare(trace), bare(again))
	})
}

// FuzzParseFile: what a file defines prints to a file that defines the same.
func FuzzParseFile(f *testing.F) {
	f.Add("p:a vfs_read\n-:a\n# x\nvfs_read(count)\r\np:b vfs_read $arg* if x == 5 # y")
	f.Add("p:a f \\\"#\" if comm == '#' # x\nf(a == \"\\\"#\", b == '#') # y")
	f.Fuzz(func(t *testing.T, text string) {
		traces, err := ParseFile("x", text)
		if err != nil {
			requirePlace(t, err)
		}
		printed := ""
		for _, trace := range traces {
			if trace.Probe == nil && Is(trace.String()) {
				return // f if x, with a blank before the if
			}
			printed += trace.String() + "\n"
		}
		again, err := ParseFile("x", printed)
		require.NoError(t, err)
		require.Len(t, again, len(traces))
		for i := range traces {
			require.Equal(t, traces[i].String(), again[i].String())
		}
	})
}

func requirePlace(t *testing.T, err error) {
	var refusal *spec.Error
	require.True(t, errors.As(err, &refusal))
	require.NotEmpty(t, refusal.Msg)
	require.GreaterOrEqual(t, refusal.At.Start, 0)
	require.LessOrEqual(t, refusal.At.Start, refusal.At.End)
	require.LessOrEqual(t, refusal.At.End, len(refusal.Text))
	require.Regexp(t, onlyPrintable, err.Error())
}

var onlyPrintable = regexp.MustCompile(`^[ -~]+(\n[ -~]+)*$`)

// bare takes from a tree what its text looked like: the places and the
// constants as written.
func bare(t *spec.Trace) *spec.Trace {
	strip(reflect.ValueOf(t))
	return t
}

func strip(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			strip(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			strip(v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[spec.Span]() {
			v.SetZero()
			return
		}
		for i := range v.NumField() {
			if field := v.Field(i); v.Type().Field(i).Name == "Text" {
				field.SetZero()
			} else {
				strip(field)
			}
		}
	}
}
