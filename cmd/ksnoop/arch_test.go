package main

import (
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
)

// ptRegs returns struct pt_regs with a member at an offset in bytes.
func ptRegs(member string, offset btf.Bits) *btf.Struct {
	long := &btf.Int{Name: "long unsigned int", Size: 8}
	return &btf.Struct{Name: "pt_regs", Size: 336, Members: []btf.Member{{Name: member, Type: long, Offset: 8 * offset}}}
}

// TestCompileArchitectures verifies that programs are for the architecture of the
// types, whatever this machine is.
func TestCompileArchitectures(t *testing.T) {
	amd64, arm64 := fixture.Write(t, ptRegs("di", 112)), fixture.Write(t, ptRegs("pstate", 264))
	for _, tc := range []struct {
		types, line string
		want        []string
	}{
		{amd64, "--attach|kprobe|vfs_read(count > 4096)", []string{"= *(u64 *)(r6 + 104)"}},
		{arm64, "--attach|kprobe|vfs_read(count > 4096)", []string{"= *(u64 *)(r6 + 8)"}},
		{arm64, "--attach|kprobe|vfs_read(count, return < 0)", []string{"vfs_read: kprobe and kretprobe: ", "= *(u64 *)(r6 + 0)", "= *(u64 *)(r6 + 248)"}},
		{arm64, "--kernel-features|6.1|vfs_read(count)", []string{"vfs_read: kprobe: this kernel has no BPF trampolines\n"}},
		{arm64, "--kernel-features|6.12|vfs_read(count)", []string{"vfs_read: fentry: the cheapest kind"}},
		{arm64, "--attach|kprobe.multi|vfs_read(count == 3, return)", []string{"r1 = *(u64 *)(r6 + 232)"}}, // x29
		{arm64, "p vfs_read %x1 %lr", []string{"= *(u64 *)(r6 + 8)", "= *(u64 *)(r6 + 240)"}},
	} {
		status, stdout, stderr := ksnoop(t, tc.types, "compile|"+tc.line)
		require.Zero(t, status, stderr)
		for _, want := range tc.want {
			require.Contains(t, stdout, want, tc.line)
		}
	}
	for _, tc := range []struct {
		types, line string
		status      int
		want        string
	}{
		{fixture.Write(t, ptRegs("a0", 80)), "vfs_read(count)", 1,
			"ksnoop: the types are of an architecture whose registers ksnoop does not know: it knows amd64 and arm64, so give it the BTF of such a kernel\n"},
		{arm64, "p vfs_read %di", 2, "ksnoop: there is no register '%di' on arm64\n"},
		{arm64, "--kernel-features|6.12|--attach|kprobe.multi|vfs_read(return)", 2,
			"ksnoop: attach kprobe.multi to vfs_read: this kernel has no kprobe.multi links\n"},
	} {
		status, _, stderr := ksnoop(t, tc.types, "compile|"+tc.line)
		require.Equal(t, tc.status, status, tc.line)
		require.Contains(t, stderr, tc.want, tc.line)
	}
}
