package resolve

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
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

// The offsets of what identifies a process are found in nested structs, too.
func TestFindTasks(t *testing.T) {
	for _, tc := range []struct {
		want    *compiler.Tasks
		err     string
		members []btf.Member
	}{
		{want: &compiler.Tasks{PID: 8, TGID: 12, Signal: 16}, members: []btf.Member{
			{Name: "stack", Type: compilertest.Ulong}, {Name: "pid", Type: compilertest.Int, Offset: 64},
			{Name: "tgid", Type: compilertest.Int, Offset: 96}, {Name: "signal", Type: compilertest.Ptr(compilertest.Dev), Offset: 128},
		}},
		{want: &compiler.Tasks{PID: 8, TGID: 12, Signal: 16}, members: []btf.Member{
			{Name: "stack", Type: compilertest.Ulong},
			{Type: &btf.Struct{Size: 16, Members: []btf.Member{
				{Name: "pid", Type: compilertest.Int}, {Name: "tgid", Type: compilertest.Int, Offset: 32}, {Name: "signal", Type: compilertest.Ptr(compilertest.Dev), Offset: 64},
			}}, Offset: 64},
		}},
		{
			err:     "follow processes: struct task_struct of this kernel has no member signal",
			members: []btf.Member{{Name: "pid", Type: compilertest.Int}, {Name: "tgid", Type: compilertest.Int, Offset: 32}},
		},
	} {
		b, err := btf.NewBuilder([]btf.Type{&btf.Struct{Name: "task_struct", Size: 24, Members: tc.members}}, nil)
		require.NoError(t, err)
		raw, err := b.Marshal(nil, nil)
		require.NoError(t, err)
		types, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
		require.NoError(t, err)
		got, err := FindTasks(types)
		if tc.err != "" {
			require.EqualError(t, err, tc.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, tc.want, got)
	}
}

// The architecture is determined from a kernel's types.
func TestArchOf(t *testing.T) {
	native, err := compiler.NativeArch()
	require.NoError(t, err)
	member := func(name string, offset btf.Bits) *btf.Struct {
		return &btf.Struct{Name: "pt_regs", Size: 400, Members: []btf.Member{{Name: name, Type: compilertest.Ulong, Offset: 8 * offset}}}
	}
	user := &btf.Struct{Size: 272, Members: []btf.Member{
		{Name: "regs", Type: &btf.Array{Index: compilertest.Uint, Type: compilertest.Ulong, Nelems: 31}}, {Name: "pstate", Type: compilertest.Ulong, Offset: 8 * 264},
	}}
	for _, tc := range []struct {
		regs btf.Type
		want *compiler.Arch
	}{
		{member("di", 112), compiler.AMD64},
		{&btf.Struct{Name: "pt_regs", Size: 336, Members: []btf.Member{{Type: &btf.Union{Size: 272, Members: []btf.Member{{Type: user}}}}}}, compiler.ARM64},
		{compilertest.Buf, native},
		{member("di", 16), nil}, // i386
		{member("a0", 80), nil}, // riscv64
	} {
		arch, err := ArchOf(compilertest.NewTarget(t, compilertest.WithProbes, tc.regs).Kernel)
		require.Equal(t, tc.want, arch)
		if tc.want == nil {
			require.EqualError(t, err, "the types are of an architecture whose registers ksnoop does not know: it knows amd64 and arm64, so give it the BTF of such a kernel")
		}
	}
}
