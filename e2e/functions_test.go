//go:build linux

package e2e

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/kallsyms"
)

// functions lists, in order, the functions with a type and a symbol on which
// the kernel allows a probe. It reads all types only once, as that takes seconds.
func (k *kernel) functions(t *testing.T) []string {
	if k.names == nil {
		k.names = k.readFunctions(t)
	}
	return slices.Clone(k.names)
}

func (k *kernel) readFunctions(t *testing.T) []string {
	traceable := traceable(t)
	f, err := os.Open("/proc/kallsyms")
	require.NoError(t, err)
	defer f.Close()
	symbols, err := kallsyms.Read(f, func(name string) bool { return traceable == nil || traceable[name] })
	require.NoError(t, err)
	var names []string
	for typ, err := range k.Types().All() {
		require.NoError(t, err)
		if fn, ok := typ.(*btf.Func); ok && slices.ContainsFunc(symbols.Lookup(fn.Name), inKernel) {
			names = append(names, fn.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func inKernel(s kallsyms.Symbol) bool { return s.Text() && s.Module == "" }

// traceable returns the functions on which ftrace allows a probe, or nil if
// ftrace does not list them.
func traceable(t *testing.T) map[string]bool {
	text, err := os.ReadFile("/sys/kernel/tracing/available_filter_functions")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	names := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		names[strings.Fields(line)[0]] = true
	}
	return names
}
