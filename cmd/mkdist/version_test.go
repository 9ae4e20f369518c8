package main

import (
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPackageVersion verifies that package managers sort versions in the order in
// which they were made.
func TestPackageVersion(t *testing.T) {
	at := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	ordered := []struct{ version, want string }{
		{"0cdc87d", "0~20261121.0cdc87d"},
		{"0cdc87d-dirty", "0~20261121.0cdc87d+dirty"},
		{"v0.1.0-rc1", "0.1.0~rc1"},
		{"v0.1.0-rc1-2-gabc", "0.1.0~rc1+2.gabc"},
		{"v0.1.0-rc2", "0.1.0~rc2"},
		{"v0.1.0", "0.1.0"},
		{"0.1.0-dirty", "0.1.0+dirty"},
		{"v0.1.1-7-g0cdc87d", "0.1.1+7.g0cdc87d"},
		{"v0.1.1-11-g0cdc87d-dirty", "0.1.1+11.g0cdc87d+dirty"},
		{"v1.0", "1.0"},
	}
	for i, v := range ordered {
		require.Equal(t, v.want, packageVersion(v.version, at))
		if i > 0 {
			requireProgram(t, "dpkg")
			require.NoError(t, exec.Command("dpkg", "--compare-versions", ordered[i-1].want, "lt", v.want).Run(), "%s < %s", ordered[i-1].want, v.want)
		}
	}
	require.Equal(t, "0~20261121.dev", packageVersion("dev", at))
}
