// Package spectest has what the tests of the packages that parse specs and
// kprobe_events lines have in common.
package spectest

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// printable matches the text of an error that is safe on a terminal.
const printable = `^[ -~]+(\n[ -~]+)*$`

// RequirePrintable fails a test if the message of an error has characters that are
// unsafe on a terminal.
func RequirePrintable(t *testing.T, message string) {
	t.Helper()
	require.Regexp(t, printable, message)
}

// RequirePlace fails a test unless err has a message that can be printed and its
// place, from start to end, is in text.
func RequirePlace(t *testing.T, err error, message, text string, start, end int) {
	t.Helper()
	require.NotEmpty(t, message)
	require.GreaterOrEqual(t, start, 0)
	require.LessOrEqual(t, start, end)
	require.LessOrEqual(t, end, len(text))
	RequirePrintable(t, err.Error())
}

// Bare removes from a tree all that depends on the form of its text: the places and
// the written form of constants. It changes the tree and returns it.
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
