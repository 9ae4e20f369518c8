package runtime

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

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
