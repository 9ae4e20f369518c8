package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"
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
