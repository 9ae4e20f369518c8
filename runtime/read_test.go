package runtime

import (
	"bytes"
	"os"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// readOnce reads values of the running kernel. It skips the test where nobody may
// load programs.
func readOnce(t *testing.T, cpu int, texts ...string) [][]Value {
	requireTypes(t)
	if why := ReadPrivileges().Refusal(); why != "" {
		t.Skip(why)
	}
	var traces []*spec.Trace
	for _, text := range texts {
		trace, err := spec.ParseValues(text)
		require.NoError(t, err)
		traces = append(traces, trace)
	}
	s, probes := loaded(t, traces...)
	var all [][]Value
	for _, p := range probes {
		var ev Event
		require.NoError(t, s.ReadOnce(p, cpu, &ev))
		require.Equal(t, cpu, ev.CPU)
		for i := range ev.Values {
			ev.Values[i].Data = bytes.Clone(ev.Values[i].Data)
		}
		all = append(all, ev.Values)
	}
	return all
}

// TestReadOnce reads values of the running kernel, on which nothing is traced.
func TestReadOnce(t *testing.T) {
	goruntime.LockOSThread() // threads may have names of their own
	defer goruntime.UnlockOSThread()
	u, err := uname()
	require.NoError(t, err)
	all := readOnce(t, 0, "$task->comm, $task->tgid, $pid, $task->real_parent->tgid, $ppid", "$task->nsproxy->uts_ns->name.release",
		"*(u64 *)0x10, *(u64 *)0xffffffff00000008, (char *)0x1000, $task->comm[0..2], $cpu")
	comm, err := os.ReadFile("/proc/thread-self/comm")
	require.NoError(t, err)
	self, err := Self()
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(string(comm)), string(untilNUL(all[0][0].Data)))
	require.Equal(t, uint64(self), all[0][1].Uint64())
	require.Equal(t, uint64(self), all[0][2].Uint64())
	require.Equal(t, all[0][3].Uint64(), all[0][4].Uint64())
	require.Equal(t, unix.ByteSliceToString(u.Release[:]), string(untilNUL(all[1][0].Data)))
	require.Equal(t, "0x10 is in the NULL page", all[2][0].Reason())
	require.Equal(t, "no readable memory at 0xffffffff00000008", all[2][1].Reason())
	require.Equal(t, "0x1000 is a user-space address", all[2][2].Reason())
	require.Equal(t, string(comm[:3]), string(all[2][3].Data))
	require.Equal(t, uint64(0), all[2][4].Uint64())
}

// TestReadOnceForCPU runs a program for each CPU. Scripts of e2e read per-CPU variables.
func TestReadOnceForCPU(t *testing.T) {
	for cpu := range countCPUs() {
		all := readOnce(t, cpu, "$cpu, $comm")
		require.Equal(t, uint64(cpu), all[0][0].Uint64())
	}
}
