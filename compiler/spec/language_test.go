package spec_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// TestLanguage verifies that the description of the language has all of its words, and
// that all forms can be parsed.
func TestLanguage(t *testing.T) {
	forms := func(terms []spec.Term) (all []string) {
		for _, term := range terms {
			require.NotEmpty(t, term.Means, term.Form)
			all = append(all, term.Form)
		}
		return all
	}
	var builtins, aggregates []string
	for _, form := range forms(spec.Language.Builtins) {
		builtins = append(builtins, strings.TrimSuffix(form[1:], "1"))
	}
	for _, form := range forms(spec.Language.Aggregates) {
		name, _, _ := strings.Cut(form, "(")
		aggregates = append(aggregates, name)
	}
	require.ElementsMatch(t, spec.Builtins, builtins)
	require.ElementsMatch(t, spec.Aggregates, aggregates)
	require.ElementsMatch(t, spec.Formats, forms(spec.Language.Formats))
	require.Len(t, spec.Language.Comparison, int(spec.IsErr))
	for _, tc := range []struct {
		before, after string
		terms         []spec.Term
	}{
		{"", "", spec.Language.Points}, {"", "", spec.Language.Examples}, {"f(", ")", spec.Language.Values}, {"f(", ")", spec.Language.Builtins},
		{"f(x:", ")", spec.Language.Formats}, {"f(a ", " b)", spec.Language.Operators}, {"f(x == ", ")", spec.Language.Constants}, {"f(", ")", spec.Language.Aggregates},
	} {
		for _, form := range forms(tc.terms) {
			_, err := spec.Parse(tc.before + form + tc.after)
			require.NoError(t, err, form)
		}
	}
	seen := map[spec.Op]bool{}
	for _, form := range forms(spec.Language.Comparison) {
		operand := map[string]string{"~": `"a*"`, "is-err": ""}[form]
		if operand == "" && form != "is-err" {
			operand = "1"
		}
		trace, err := spec.Parse("f(x " + form + " " + operand + ")")
		require.NoError(t, err, form)
		seen[trace.Items[0].Pred.Op] = true
	}
	require.Len(t, seen, int(spec.IsErr), "each comparison once")
}
