package runtime

import (
	"fmt"
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
	err := loadError(spec, fmt.Errorf("program fentry on a: %w", refused), nil)
	require.EqualError(t, err, "load fentry on a: the kernel's verifier refused the program, which is a bug of ksnoop: "+refused.Error())
	require.ErrorIs(t, err, unix.EINVAL)
	long := fmt.Sprintf("%+v", err)
	require.Contains(t, long, "; a->b")
	require.Contains(t, long, "R0 !read_ok")

	for cause, want := range map[error]string{
		unix.EPERM:  "load the programs: the kernel does not permit it: ksnoop needs CAP_BPF and CAP_PERFMON, or root",
		unix.ENOMEM: "load the programs: program other: : cannot allocate memory",
	} {
		err := loadError(spec, fmt.Errorf("program other: %w", &ebpf.VerifierError{Cause: cause}), nil)
		require.EqualError(t, err, want)
	}
}
