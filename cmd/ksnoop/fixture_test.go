package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
)

// writeKernel writes a BTF file of a small kernel.
func writeKernel(t testing.TB, more ...btf.Type) string {
	path := filepath.Join(t.TempDir(), "btf")
	require.NoError(t, os.WriteFile(path, kernelTypes(t, more...), 0o644))
	return path
}

// kernelTypes is BTF with a few functions and a tracepoint.
func kernelTypes(t testing.TB, more ...btf.Type) []byte {
	void := &btf.Void{}
	integer := &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	char := &btf.Int{Name: "char", Size: 1, Encoding: btf.Signed}
	long := &btf.Int{Name: "long", Size: 8, Encoding: btf.Signed}
	pointer := func(to btf.Type) btf.Type { return &btf.Pointer{Target: to} }
	file := &btf.Struct{Name: "file", Size: 16, Members: []btf.Member{
		{Name: "flags", Type: integer}, {Name: "pos", Type: long, Offset: 64},
	}}
	function := func(name string, result btf.Type, params ...btf.FuncParam) btf.Type {
		return &btf.Func{Name: name, Linkage: btf.GlobalFunc, Type: &btf.FuncProto{Return: result, Params: params}}
	}
	b, err := btf.NewBuilder(append([]btf.Type{
		function("vfs_read", long, btf.FuncParam{Name: "file", Type: pointer(file)}, btf.FuncParam{Name: "count", Type: long}),
		function("vfs_open", integer, btf.FuncParam{Name: "path", Type: pointer(char)}, btf.FuncParam{Name: "file", Type: pointer(file)}),
		function("vfs_print", void, btf.FuncParam{Name: "fmt", Type: pointer(char)}, btf.FuncParam{Type: void}),
		function("vfs_broken", void, btf.FuncParam{Name: "x", Type: &btf.Fwd{Name: "secret"}}),
		function("bpf_session_is_return", integer),
		&btf.Typedef{Name: "btf_trace_tick", Type: pointer(&btf.FuncProto{Return: void, Params: []btf.FuncParam{
			{Type: pointer(void)}, {Type: integer},
		}})},
		function("__bpf_trace_tick", void, btf.FuncParam{Name: "__data", Type: pointer(void)}, btf.FuncParam{Name: "cpu", Type: integer}),
	}, more...), nil)
	require.NoError(t, err)
	raw, err := b.Marshal(nil, nil)
	require.NoError(t, err)
	return raw
}

// ksnoop runs a command line, whose words | separates, with the fixture's
// types.
func ksnoop(t testing.TB, types, line string) (status int, stdout, stderr string) {
	words := strings.Split(line, "|")
	args := append([]string{"ksnoop", words[0], "--btf", types}, words[1:]...)
	var out, errors bytes.Buffer
	status = run(args, strings.NewReader(""), &out, &errors)
	return status, out.String(), errors.String()
}
