package listing

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestIntName verifies that C's names of integers are found by the names in BTF.
func TestIntName(t *testing.T) {
	for name, want := range map[string]string{
		"unsigned long": "long unsigned int", "long": "long int", "unsigned": "unsigned int", "short": "short int",
		"long long": "long long int", "unsigned short int": "short unsigned int", "signed": "int",
		"unsigned char": "unsigned char", "u64": "u64", "unsigned pid_t": "unsigned pid_t",
	} {
		require.Equal(t, want, intName(name), name)
	}
}
