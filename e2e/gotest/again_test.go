package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAgain(t *testing.T) {
	for _, tc := range []struct {
		args string
		what failure
		want string
	}{
		{"./...", failure{pkg: "m/p"}, "go test m/p"},
		{"./...", failure{pkg: "m/p", test: "TestA"}, "go test m/p -run '^TestA$'"},
		{"./...", failure{pkg: "m/p", test: "TestA/6.12/b"}, "go test m/p -run '^TestA$/^6.12$/^b$'"},
		{"./...", failure{pkg: "m/p", test: "TestA/it's_(x|y)*#01"}, `go test m/p -run '^TestA$/^it'\''s_\(x\|y\)\*#01$'`},
		{"./...", failure{pkg: "m/p", test: "BenchmarkA"}, "go test m/p -run '^$' -bench '^BenchmarkA$'"},

		// flags of go test that matter, and those that do not
		{"-v -timeout 75m -p=1 -count 1 -run X -json ./...", failure{pkg: "m/p"}, "go test m/p"},
		{"-C dir -race -tags a,b -ldflags=-s ./... ./q", failure{pkg: "m/p"}, "go test -C dir -race -tags a,b -ldflags=-s m/p"},
		// those of the tests
		{"./... -full -seed 7 -timeout 5m --long=2", failure{pkg: "m/p", test: "TestA"}, "go test m/p -run '^TestA$' -full -seed 7 --long=2"},
		{"./... -args -v $x", failure{pkg: "m/p"}, "go test m/p -args -v '$x'"},
		{"-full", failure{pkg: "m/p"}, "go test m/p -full"},
		{"./... -timeout", failure{pkg: "m/p"}, "go test m/p"},

		// what the test says of itself
		{"./...", failure{pkg: "m/p", test: "TestA", marks: marks{seed: "9"}}, "go test m/p -run '^TestA$' -seed 9"},
		{"./... -seed=7", failure{pkg: "m/p", test: "TestA", marks: marks{seed: "9"}}, "go test m/p -run '^TestA$' -seed=7"},
		{"./... -full", failure{pkg: "m/p", test: "TestA", marks: marks{again: "make test-a", seed: "9"}}, "make test-a"},
	} {
		require.Equal(t, tc.want, keptFlags(strings.Fields(tc.args)).again(tc.what), "%s, %+v", tc.args, tc.what)
	}
}
