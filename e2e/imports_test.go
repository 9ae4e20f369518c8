package e2e

import (
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/ksnoop/ksnoop"

// arrows lists which packages of ours each package may import, and which other
// packages it must not.
var arrows = map[string]struct{ ours, never []string }{
	"compiler/spec":          {nil, []string{"github.com/cilium/ebpf", "os"}},
	"compiler/spec/spectest": {nil, []string{"github.com/cilium/ebpf", "os"}},
	"compiler/spec/kprobe":   {[]string{"compiler/spec"}, []string{"github.com/cilium/ebpf", "os"}},
	"kallsyms":               {nil, []string{"github.com/cilium/ebpf", "os"}},
	"btfdump":                {nil, []string{"github.com/cilium/ebpf/link", "github.com/cilium/ebpf/ringbuf", "os"}},
	"compiler": {[]string{"compiler/spec", "kallsyms"}, []string{
		"github.com/cilium/ebpf/link", "github.com/cilium/ebpf/ringbuf", "github.com/cilium/ebpf/features", "os", "golang.org/x/sys/unix",
	}},
	"compiler/suite": {[]string{"compiler", "compiler/spec", "compiler/spec/kprobe"}, []string{
		"github.com/cilium/ebpf", "github.com/cilium/ebpf/link", "github.com/cilium/ebpf/ringbuf", "os", "golang.org/x/sys/unix",
	}},
	"runtime/btfpart":   {nil, []string{"github.com/cilium/ebpf/link", "github.com/cilium/ebpf/ringbuf", "os", "golang.org/x/sys/unix"}},
	"runtime":           {[]string{"compiler", "compiler/spec", "kallsyms", "runtime/btfpart"}, nil},
	"cmd/ksnoop/report": {[]string{"btfdump"}, []string{"github.com/cilium/ebpf", "os"}},
	"cmd/ksnoop": {[]string{
		"btfdump", "cmd/ksnoop/report", "compiler", "compiler/spec", "compiler/spec/kprobe", "compiler/suite", "kallsyms", "runtime",
	}, nil},
}

// Imports point downwards only: docs/architecture.md draws them.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"/...").Output()
	require.NoError(t, err)
	seen := 0
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		name := strings.TrimPrefix(fields[0], module+"/")
		if strings.HasPrefix(name, "e2e") {
			checkHarness(t, name, fields[1:])
			continue
		}
		allowed, ok := arrows[name]
		require.True(t, ok, "%s is a package that docs/architecture.md does not know", name)
		seen++
		for _, imported := range fields[1:] {
			require.NotContains(t, allowed.never, imported, "%s imports %s", name, imported)
			if ours, ok := strings.CutPrefix(imported, module+"/"); ok {
				require.Contains(t, allowed.ours, ours, "%s imports %s", name, ours)
			}
		}
	}
	require.Equal(t, len(arrows), seen)
}

// checkHarness: the end-to-end tests run the built binary and know nothing of
// what is in it.
func checkHarness(t *testing.T, name string, imports []string) {
	for _, imported := range imports {
		if ours, ok := strings.CutPrefix(imported, module+"/"); ok {
			require.Equal(t, "e2e", path.Dir(ours), "%s imports %s", name, ours)
		}
	}
}

// Each module that is required directly has its line in docs/architecture.md.
func TestRequirements(t *testing.T) {
	mod, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	page, err := os.ReadFile("../docs/architecture.md")
	require.NoError(t, err)
	direct := regexp.MustCompile(`(?m)^(?:require )?\t?([a-z0-9.]+\.[a-z]+/\S+) v\S+$`).FindAllStringSubmatch(string(mod), -1)
	require.NotEmpty(t, direct)
	for _, m := range direct {
		require.Contains(t, string(page), m[1])
	}
}
