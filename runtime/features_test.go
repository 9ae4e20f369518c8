package runtime

import (
	"os"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
)

// newTypes returns a kernel's types with these structures, their only members, and a
// function.
func newTypes(t *testing.T, structs map[string]string) *btf.Spec {
	b, err := btf.NewBuilder(nil, nil)
	require.NoError(t, err)
	number := &btf.Int{Name: "int", Size: 4}
	for name, member := range structs {
		inner := &btf.Union{Size: 4, Members: []btf.Member{{Name: member, Type: number}}}
		_, err := b.Add(&btf.Struct{Name: name, Size: 4, Members: []btf.Member{{Type: inner}}})
		require.NoError(t, err)
	}
	_, err = b.Add(&btf.Func{Name: "bpf_session_is_return", Type: &btf.FuncProto{Return: number}})
	require.NoError(t, err)
	types, err := b.Spec()
	require.NoError(t, err)
	return types
}

func TestPromised(t *testing.T) {
	old := newTypes(t, map[string]string{"dyn_ftrace": "ip"})
	recent := newTypes(t, map[string]string{"dyn_ftrace": "ip", "bpf_htab": "ma", "bpf_kprobe_multi_link": "fp", "fprobe": "hlist_array"})
	for _, tc := range []struct {
		release string
		types   *btf.Spec
		want    compiler.Features
	}{
		{"5.4.0-generic", old, compiler.Features{TrampolineWords: 6}},
		{"5.10.0-32-amd64", old, compiler.Features{Trampoline: true, TrampolineWords: 6}},
		{"5.10.0-vendor", newTypes(t, map[string]string{"dyn_ftrace": "ip", "bpf_prog": "active"}), compiler.Features{Trampoline: true, TrampolineWords: 6, CountsSkipped: true}},
		{"6.1.0-50-cloud-amd64", old, compiler.Features{Trampoline: true, TrampolineWords: 6, TrampolineStructs: true, CurrentTask: true, CountsSkipped: true, FuncArg: true, CompareExchange: true}},
		{"6.18.15+deb14", recent, compiler.Features{
			Trampoline: true, TrampolineWords: 12, TrampolineStructs: true, CurrentTask: true, CountsSkipped: true, FuncArg: true, CompareExchange: true,
			RuntimeAlloc: true, KprobeMulti: true, ReturnsUnlimited: true, ConsistentBTF: true,
			CancelRepeats: true,
		}},
		{"7.2.13+deb14", recent, compiler.Features{
			Trampoline: true, TrampolineWords: 12, TrampolineStructs: true, CurrentTask: true, CountsSkipped: true, FuncArg: true, CompareExchange: true,
			RuntimeAlloc: true, KprobeMulti: true, ReturnsUnlimited: true, ConsistentBTF: true,
		}},
	} {
		v, err := parseRelease(tc.release)
		require.NoError(t, err)
		tc.want.ReturnInstances = 4096
		require.Equal(t, tc.want, promised(v, tc.types), tc.release)
	}
	_, err := parseRelease("linux")
	require.ErrorContains(t, err, `read kernel release "linux"`)
}

func TestTypeID(t *testing.T) {
	k := newKernel(newTypes(t, nil), nil)
	id := k.typeID("bpf_session_is_return", (*btf.Func)(nil))
	found, err := k.types.TypeByID(id)
	require.NoError(t, err)
	require.Equal(t, "bpf_session_is_return", found.TypeName())
	require.Zero(t, k.typeID("bpf_session_is_return", (*btf.Typedef)(nil)))
	require.Zero(t, k.typeID("none", (*btf.Func)(nil)))
}

func TestHasMember(t *testing.T) {
	types := newTypes(t, map[string]string{"fprobe": "hlist_array"})
	require.True(t, hasStruct(types, "fprobe"))
	require.True(t, hasMember(types, "fprobe", "hlist_array"))
	require.False(t, hasMember(types, "fprobe", "rethook"))
	require.False(t, hasMember(types, "none", "rethook"))
}

// TestCountsMissed verifies that the member is found in the structure of kprobe.multi, which
// is in a union.
func TestCountsMissed(t *testing.T) {
	number := &btf.Int{Name: "int", Size: 4}
	for member, want := range map[string]bool{"missed": true, "count": false} {
		b, err := btf.NewBuilder(nil, nil)
		require.NoError(t, err)
		multi := &btf.Struct{Size: 4, Members: []btf.Member{{Name: member, Type: number}}}
		union := &btf.Union{Size: 4, Members: []btf.Member{{Name: "kprobe_multi", Type: multi}}}
		_, err = b.Add(&btf.Struct{Name: "bpf_link_info", Size: 4, Members: []btf.Member{{Type: union}}})
		require.NoError(t, err)
		types, err := b.Spec()
		require.NoError(t, err)
		require.Equal(t, want, newKernel(types, nil).CountsMissed(), member)
	}
	require.False(t, newKernel(newTypes(t, nil), nil).CountsMissed())
}

func TestPreemption(t *testing.T) {
	const debugfs, cmdline = "/sys/kernel/debug/sched/preempt", "/proc/cmdline"
	old, lazy := version{6, 12}, version{6, 18}
	for _, tc := range []struct {
		name  string
		v     version
		build string
		files map[string]string
		want  bool
	}{
		{"debugfs says full", old, "#1 SMP PREEMPT_DYNAMIC Debian", map[string]string{debugfs: "none voluntary (full)\n"}, true},
		{"debugfs says lazy", lazy, "#1 SMP PREEMPT_DYNAMIC Debian", map[string]string{debugfs: "full (lazy)\n"}, true},
		{"debugfs says voluntary", lazy, "#1 SMP PREEMPT_DYNAMIC Debian", map[string]string{debugfs: "none (voluntary) full\n", cmdline: "preempt=full"}, false},
		{"voluntary", old, "#1 SMP Debian 5.10.223-1", nil, false},
		{"built full", old, "#1 SMP PREEMPT Debian", nil, true},
		{"built full or lazy", lazy, "#1 SMP PREEMPT Debian", nil, true},
		{"real time", old, "#1 SMP PREEMPT_RT Debian", nil, true},
		{"dynamic, not told", old, "#1 SMP PREEMPT_DYNAMIC Debian", nil, false},
		{"dynamic with lazy, not told", lazy, "#1 SMP PREEMPT_DYNAMIC Debian", map[string]string{cmdline: "quiet"}, true},
		{"command line, the last one counts", old, "#1 SMP PREEMPT_DYNAMIC Debian", map[string]string{cmdline: "preempt=none quiet preempt=full\n"}, true},
		{"command line says none", lazy, "#1 SMP PREEMPT_DYNAMIC Debian", map[string]string{cmdline: "preempt=none\n"}, false},
	} {
		read := func(name string) ([]byte, error) {
			if text, ok := tc.files[name]; ok {
				return []byte(text), nil
			}
			return nil, os.ErrPermission
		}
		require.Equal(t, tc.want, preemption(tc.v, tc.build, read).Possible, tc.name)
	}
}
