package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
)

// TestEmulated verifies that the arm64 binary under emulation compiles the same as
// the amd64 binary: programs for the kernel whose types it is given.
func TestEmulated(t *testing.T) {
	requireProgram(t, "qemu-aarch64")
	dir := everything(t)
	types := kernelTypes(t)
	emulated := sh(t, "qemu-aarch64", filepath.Join(dir, "ksnoop-linux-arm64"), "--version")
	require.Equal(t, "ksnoop version "+testVersion+"\n", emulated)
	for _, args := range [][]string{
		{"compile", "--btf", types, "vfs_read(count > 4096)"},
		{"compile", "--btf", types, "--attach", "kprobe", "vfs_read(file->f_flags:x, count > 4096, return < 0)"},
		{"info", "--btf", types, "vfs_read"},
	} {
		native := sh(t, filepath.Join(dir, "ksnoop-linux-amd64"), args...)
		emulated := sh(t, "qemu-aarch64", append([]string{filepath.Join(dir, "ksnoop-linux-arm64")}, args...)...)
		require.Equal(t, native, emulated)
	}
	arguments := sh(t, "qemu-aarch64", filepath.Join(dir, "ksnoop-linux-arm64"), "compile", "--btf", types, "--attach", "kprobe", "vfs_read(count > 4096)")
	require.Regexp(t, regexp.QuoteMeta("// count > 4096\n")+`.*r1 = \*\(u64 \*\)\(r6 \+ 16\)`, arguments, "x2 has the third argument")
}

// TestEmulatedExporter verifies that the exporter for arm64 starts and serves, with a line
// that no kernel has: there is no bpf(2) under emulation.
func TestEmulatedExporter(t *testing.T) {
	requireProgram(t, "qemu-aarch64")
	program := filepath.Join(everything(t), "ksnoop-exporter-linux-arm64")
	require.Contains(t, sh(t, "qemu-aarch64", program, "--help"), "ksnoop-exporter [OPTIONS] FILE...")
	file := filepath.Join(t.TempDir(), "none.probes")
	require.NoError(t, os.WriteFile(file, []byte("ksnoop-probes 1\nsuite t\nmetric none no_such_function() count\n"), 0o644))
	cmd := exec.Command("qemu-aarch64", program, "--listen", "127.0.0.1:0", file)
	url := serving(t, cmd)
	require.Equal(t, "ksnoop-exporter is healthy\n", page(t, url+"/-/healthy"))
	require.Contains(t, page(t, url+"/metrics"), `goarch="arm64"`)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
}

// kernelTypes writes the types of a small arm64 kernel.
func kernelTypes(t *testing.T) string {
	word := &btf.Int{Name: "long unsigned int", Size: 8}
	number := &btf.Int{Name: "unsigned int", Size: 4}
	signed := &btf.Int{Name: "long int", Size: 8, Encoding: btf.Signed}
	char := &btf.Int{Name: "char", Size: 1, Encoding: btf.Signed}
	file := &btf.Struct{Name: "file", Size: 16, Members: []btf.Member{{Name: "f_flags", Type: number, Offset: 64}}}
	registers := &btf.Struct{Size: 272, Members: []btf.Member{
		{Name: "regs", Type: &btf.Array{Index: number, Type: word, Nelems: 31}},
		{Name: "sp", Type: word, Offset: 8 * 248}, {Name: "pc", Type: word, Offset: 8 * 256}, {Name: "pstate", Type: word, Offset: 8 * 264},
	}}
	b, err := btf.NewBuilder([]btf.Type{
		&btf.Struct{Name: "pt_regs", Size: 336, Members: []btf.Member{{Type: &btf.Union{Size: 272, Members: []btf.Member{{Type: registers}}}}}},
		&btf.Func{Name: "vfs_read", Linkage: btf.GlobalFunc, Type: &btf.FuncProto{Return: signed, Params: []btf.FuncParam{
			{Name: "file", Type: &btf.Pointer{Target: file}}, {Name: "buf", Type: &btf.Pointer{Target: char}},
			{Name: "count", Type: word}, {Name: "pos", Type: &btf.Pointer{Target: signed}},
		}}},
	}, nil)
	require.NoError(t, err)
	raw, err := b.Marshal(nil, nil)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "btf")
	require.NoError(t, os.WriteFile(path, raw, 0o644))
	return path
}
