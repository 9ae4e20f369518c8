package check

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFileNames(t *testing.T) {
	for files, want := range map[string]string{
		"a/b":                             "b",
		"/k/5.10 /k/6.1":                  "5.10 6.1",
		"/k/5.10/btf /k/6.1/btf":          "5.10 6.1",
		"5.10/x/btf 6.1/x/btf":            "5.10 6.1",
		"/k/a/5.10 /k/b/5.10 /k/b/6.1":    "a/5.10 b/5.10 b/6.1",
		"a/1/btf b/1/btf b/2/btf":         "a/1 b/1 b/2",
		"btf x/btf":                       "btf x/btf",
		"btf btf":                         "btf btf",
		"./x/../btf vmlinux":              "btf vmlinux",
		"/sys/kernel/btf/vmlinux vmlinux": "btf/vmlinux vmlinux",
	} {
		require.Equal(t, want, strings.Join(fileNames(strings.Split(files, " ")), " "), files)
	}
}
