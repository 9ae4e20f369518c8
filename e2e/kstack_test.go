//go:build linux

package e2e

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// testKstack checks that a stack at entry begins with the function and its direct
// caller, by every kind and also where the value is kept for the event at return.
func testKstack(t *testing.T, k *kernel) {
	if k.target().Arch != compiler.ARM64 {
		t.Skip("elsewhere the return address is on the stack, where the kernel finds it: see the script json")
	}
	for _, attach := range k.kinds(t) {
		for _, spec := range []string{"vfs_read(count == 4321, $kstack)", "vfs_read(count == 4321, $kstack, return)"} {
			if !k.accepts(t, attach, spec) {
				continue
			}
			names := k.readStack(t, attach, spec)
			if names[0] == "vfs_read" { // trampolines of 5.10 leave it out
				names = names[1:]
			}
			require.Equal(t, "ksys_read", names[0], "%s by %s: %v", spec, attach, names)
			require.NotContains(t, names, "vfs_read", "%s by %s", spec, attach)
		}
	}
}

// readStack traces one read by a spec with a stack, and returns the functions of
// its frames. The name is empty where no symbol of the kernel is found.
func (k *kernel) readStack(t *testing.T, attach compiler.Kind, spec string) (names []string) {
	zero, err := unix.Open("/dev/zero", unix.O_RDONLY, 0)
	require.NoError(t, err)
	defer unix.Close(zero)
	caller := newCaller(t)
	tr := k.trace(t, attach, compiler.Options{TID: caller.tid}, spec)
	caller.do(func() { unix.Read(zero, make([]byte, 4321)) })
	tr.events(t, func(ev *runtime.Event) {
		require.Empty(t, names, "there is one event")
		for data := value(ev, "$kstack").Data; len(data) > 0; data = data[8:] {
			symbol, _, _ := k.target().Symbols.At(binary.LittleEndian.Uint64(data))
			names = append(names, symbol.Name)
		}
	})
	require.NoError(t, tr.Close()) // with a kretprobe, the next stack would have the kretprobe's address for the caller's
	require.NotEmpty(t, names)
	return names
}
