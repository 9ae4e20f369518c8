package resolve

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// TestContainer verifies that $container is the id of the cgroup with a format of its own,
// and which errors there are where it cannot be used.
func TestContainer(t *testing.T) {
	p := mustResolve(t, compilertest.NewTarget(t, of61), "read($container, $cgroup)")
	require.Len(t, p.Entry, 2)
	require.Equal(t, compiler.CgroupID, p.Entry[0].Base.Builtin)
	require.Equal(t, []string{compiler.ContainerFormat, ""}, []string{p.Entry[0].Format, p.Entry[1].Format})
	require.Equal(t, "$container", p.Entry[0].Name)
	p = mustResolve(t, compilertest.NewTarget(t, of61), "read($container, count())")
	require.Equal(t, compiler.ContainerFormat, p.Key[0].Format)

	const known = "which container '$container' is becomes known when it is shown, and not in the kernel"
	for text, want := range map[string]string{
		`read($container == "web")`:          known,
		"read($container == 5)":              known,
		"read(count) if $container":          known,
		"read(count) if $container == count": known,
		"read(count) if count == $container": known,
		"read($container + 1)":               known,
		"read((u32)$container)":              known,
		"read(sum($container))":              known,
		"read($container:x)":                 "'$container' is shown as the name of a container, or its id: it has no other format",
		"iter:task($container)":              "",
	} {
		trace, err := spec.Parse(text)
		require.NoError(t, err, text)
		_, err = One(trace, compilertest.NewTarget(t, of61))
		require.Error(t, err, text)
		message, rest, _ := strings.Cut(err.Error(), "\n")
		if want != "" {
			require.Equal(t, want, message, text)
			require.Contains(t, rest, "$cgroup", text)
		}
	}
}
