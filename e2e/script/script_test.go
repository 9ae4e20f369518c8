//go:build linux

package script

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/jq"
)

func TestCondition(t *testing.T) {
	for _, test := range []struct {
		text string
		want bool
	}{
		{"kernel>=6.1", true}, {"kernel>=6.12", true}, {"kernel>=6.18", false}, {"kernel<6.18", true},
		{"kernel<6.12", false}, {"kernel<=6.12", true}, {"kernel>6.12", false}, {"kernel>5.19", true},
		{"kernel==6.12", true}, {"kernel!=6.12", false}, {"kernel==6.1", false},
	} {
		got, err := version{6, 12}.condition(test.text)
		require.NoError(t, err)
		require.Equal(t, test.want, got, test.text)
	}
	for _, text := range []string{"kernel=>6.1", "kernel>=6", "kernel", "root"} {
		_, err := version{6, 12}.condition(text)
		require.Error(t, err, text)
	}
}

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"jq": jq.Main}) }

// TestCommands runs the commands that need no guest.
func TestCommands(t *testing.T) {
	params, err := Params("testdata", Options{Schemas: "../../docs"})
	require.NoError(t, err)
	testscript.Run(t, params)
}
