package runtime

import (
	"errors"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestLoadError(t *testing.T) {
	spec := &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{
		"fentry on a": {Instructions: asm.Instructions{asm.Return().WithSource(asm.Comment("a->b"))}},
		"other":       {},
	}}
	refused := &ebpf.VerifierError{Cause: unix.EINVAL, Log: []string{"0: (95) exit", "R0 !read_ok"}}
	err := loadError(spec, fmt.Errorf("program fentry on a: %w", refused), math.MaxUint64, Privileges{})
	require.EqualError(t, err, "load fentry on a: the kernel's verifier refused the program, which is a bug of ksnoop: "+refused.Error())
	require.ErrorIs(t, err, unix.EINVAL)
	long := fmt.Sprintf("%+v", err)
	require.Contains(t, long, "; a->b")
	require.Contains(t, long, "R0 !read_ok")

	able := Privileges{BPF: true, Perfmon: true}
	for _, tc := range []struct {
		cause error
		limit uint64
		Privileges
		want string
	}{
		{unix.EPERM, math.MaxUint64, Privileges{Perfmon: true}, "load the programs: the kernel does not permit it: " + Privileges{Perfmon: true}.Refusal()},
		{unix.EPERM, 64 << 10, able, "load the programs: their maps take more than the limit of locked memory, 64 KiB, and before Linux 5.11 it counts maps: " +
			"raise it (ulimit -l unlimited), or give ksnoop CAP_SYS_RESOURCE"},
		{unix.EPERM, math.MaxUint64, able, "load the programs: the kernel does not permit it, though ksnoop has CAP_BPF and CAP_PERFMON: " +
			"its lockdown or a security module must allow it"},
		{unix.E2BIG, math.MaxUint64, able, "load the programs: program other: : argument list too long"},
	} {
		err := loadError(spec, fmt.Errorf("program other: %w", &ebpf.VerifierError{Cause: tc.cause}), tc.limit, tc.Privileges)
		require.EqualError(t, err, tc.want)
		require.Equal(t, tc.cause == unix.EPERM && tc.limit == math.MaxUint64, errors.Is(err, os.ErrPermission), "the status of ksnoop test: %v", err)
	}
	refused.Log = []string{"0: (85) call bpf_probe_read_kernel#113", ""}
	for _, tc := range []struct {
		cause error
		want  string
	}{
		{unix.EMFILE, "load the programs: too many open files: raise the limit (ulimit -n), or name fewer functions"},
		{unix.ENOMEM, "load the programs: no memory for the programs and maps: lower --pages, or raise the limit of the memory cgroup (memory.max)"},
	} { // after the verifier has accepted the program
		err := fmt.Errorf("program fentry on a: %w", &ebpf.VerifierError{Cause: tc.cause, Log: refused.Log})
		explained := loadError(spec, err, math.MaxUint64, able)
		require.EqualError(t, explained, tc.want)
		require.ErrorIs(t, explained, tc.cause, "the status of ksnoop test")
		require.False(t, refusedByVerifier(err))
	}
	for _, line := range []string{"unknown func bpf_probe_read_kernel#113", "program of this type cannot use helper bpf_probe_read#4"} {
		refused.Log[1] = line
		require.ErrorIs(t, loadError(spec, fmt.Errorf("program other: %w", refused), math.MaxUint64, able), errLockdown)
	}
}

func TestNoMemory(t *testing.T) {
	spec := &ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{
		"events": {Type: ebpf.RingBuf, MaxEntries: 1 << 20},
		"calls":  {Type: ebpf.Hash},

		"table_0":        {Type: ebpf.Hash, MaxEntries: 10240},
		"stacks_table_0": {Type: ebpf.StackTrace, MaxEntries: 20480},
	}}
	for text, want := range map[string]string{
		"map events: map create":         "the ring buffer of 1024 KiB: lower --pages, or",
		"map table_0: map create":        "a table of 10240 keys: lower --keys, or",
		"map stacks_table_0: map create": "the stacks of a table: lower --keys, or",
		"map calls: map create":          `the map "calls":`,
		"program fentry on events: ":     "the programs and maps: lower --pages, or",
	} {
		err := loadError(spec, fmt.Errorf("%s: %w", text, unix.ENOMEM), math.MaxUint64, Privileges{})
		require.EqualError(t, err, "load the programs: no memory for "+want+" raise the limit of the memory cgroup (memory.max)")
	}
}
