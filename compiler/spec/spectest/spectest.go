// Package spectest compares what was parsed, in tests of the packages that
// parse.
package spectest

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// printable is what an error may be made of.
const printable = `^[ -~]+(\n[ -~]+)*$`

// RequirePrintable fails a test if an error, or what is left of it, could do
// something to a terminal.
func RequirePrintable(t *testing.T, message string) {
	t.Helper()
	require.Regexp(t, printable, message)
}

// RequirePlace fails a test unless an error says what is wrong with the part
// from start to end of a text.
func RequirePlace(t *testing.T, err error, message, text string, start, end int) {
	t.Helper()
	require.NotEmpty(t, message)
	require.GreaterOrEqual(t, start, 0)
	require.LessOrEqual(t, start, end)
	require.LessOrEqual(t, end, len(text))
	RequirePrintable(t, err.Error())
}

// Bare takes from a tree what its text looked like: the places and the constants
// as written. It changes the tree, and returns it.
func Bare[T any](tree *T) *T {
	strip(reflect.ValueOf(tree))
	return tree
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
		if name := v.Type().Name(); name == "Span" || name == "Source" {
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
