package runtime

import (
	"errors"
	"math"
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

func TestRefusal(t *testing.T) {
	const needs = "ksnoop needs CAP_BPF and CAP_PERFMON, or root"
	const cure = ": run it with sudo, or setcap cap_bpf,cap_perfmon+ep its file, or start the container with --cap-add BPF --cap-add PERFMON"
	for _, tc := range []struct {
		Privileges
		want string
	}{
		{Privileges{BPF: true, Perfmon: true}, ""},
		{Privileges{BPF: true, Perfmon: true, Seccomp: true}, ""},
		{Privileges{}, needs + ", and lacks CAP_BPF and CAP_PERFMON" + cure},
		{Privileges{BPF: true}, needs + ", and lacks CAP_PERFMON" + cure},
		{Privileges{Perfmon: true}, needs + ", and lacks CAP_BPF" + cure},
		{Privileges{BPF: true, Perfmon: true, UserNamespace: true},
			needs + ", outside of this user namespace, whose capabilities do not count: run it in the initial one"},
		{Privileges{BPF: true, Perfmon: true, Seccomp: true, Refused: true},
			"it has the capabilities, but a seccomp filter refuses bpf(2): let the container's profile allow bpf and perf_event_open"},
		{Privileges{BPF: true, Perfmon: true, Refused: true},
			"it has the capabilities, but a security module refuses bpf(2): let its policy allow that"},
	} {
		require.Equal(t, tc.want, tc.Refusal())
	}
}

func TestPerfRefusal(t *testing.T) {
	require.Equal(t, "kernel.perf_event_paranoid is 3, which keeps kprobes from users without CAP_SYS_ADMIN "+
		"(sysctl kernel.perf_event_paranoid=2 gives them to CAP_PERFMON)", perfRefusal("3", Privileges{}))
	require.Equal(t, "perf_event_open is refused, by a seccomp filter or a security module: let the container's profile allow it", perfRefusal("2", Privileges{}))
}

// TestRingSizes verifies that the ring buffer takes half of the limit or less, but
// holds a record.
func TestRingSizes(t *testing.T) {
	unit := func(ring uint32, record int) *compiler.Unit {
		return &compiler.Unit{
			Collection: &ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{compiler.EventsMap: {Type: ebpf.RingBuf, MaxEntries: ring}}},
			Events:     []*compiler.EventType{{Layout: compiler.Layout{Size: record}}},
		}
	}
	const limit = 64 << 10
	require.Equal(t, []uint32{0}, ringSizes(unit(1<<20, 100), math.MaxUint64))
	require.Equal(t, []uint32{0}, ringSizes(unit(16<<10, 100), limit))
	require.Equal(t, []uint32{32 << 10, 16 << 10, 8 << 10, 4 << 10}, ringSizes(unit(1<<20, 100), limit))
	require.Equal(t, []uint32{32 << 10, 16 << 10}, ringSizes(unit(1<<20, 9000), limit))
	require.Equal(t, []uint32{0}, ringSizes(unit(1<<20, 40_000), limit)) // Load then fails with the reason
	require.Equal(t, []uint32{0}, ringSizes(unit(1<<20, 33<<10), 80<<10))
	require.Equal(t, []uint32{0}, ringSizes(unit(1<<20, 100), 0))

	u := unit(1<<20, 100)
	require.Equal(t, uint32(8<<10), withRing(u.Collection, 8<<10).Maps[compiler.EventsMap].MaxEntries)
	require.Equal(t, uint32(1<<20), u.Collection.Maps[compiler.EventsMap].MaxEntries)
	require.Same(t, u.Collection, withRing(u.Collection, 0))
	require.Equal(t, "the ring buffer has 32 KiB instead of 1024: the limit of locked memory is 64 KiB, and before Linux 5.11 it counts maps: "+
		"raise it (ulimit -l unlimited), or give ksnoop CAP_SYS_RESOURCE", memlockNote(1<<20, 32<<10, limit))
}

func TestTracefsCure(t *testing.T) {
	require.Equal(t, "which is root's to write (permission denied)", tracefsCure(unix.EACCES))
	require.Equal(t, "which is not mounted (mount -t tracefs tracefs /sys/kernel/tracing)", tracefsCure(unix.ENOENT))
	require.Equal(t, "which answers: no", tracefsCure(errors.New("no")))
}

func TestLockdown(t *testing.T) {
	for text, want := range map[string]string{
		"[none] integrity confidentiality\n": "none", "none [integrity] confidentiality\n": "integrity", "": "",
	} {
		require.Equal(t, want, lockdown(func(string) ([]byte, error) { return []byte(text), nil }))
	}
	require.Empty(t, lockdown(func(string) ([]byte, error) { return nil, os.ErrNotExist }))
}
