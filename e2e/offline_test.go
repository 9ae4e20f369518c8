//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/e2e/guest"
	"github.com/ksnoop/ksnoop/e2e/vm"
	"github.com/ksnoop/ksnoop/runtime"
)

// TestOffline traces while the first CPU is offline, where perf events are usually made. On
// amd64 kernels allow that before 6.5.
func TestOffline(t *testing.T) {
	onlyWithFull(t)
	t.Parallel()
	hotplug := vm.Machine{CPUs: 2, Model: "max,cx16=off,vendor=GenuineIntel", Append: "cpu0_hotplug"}
	for line, m := range map[string]vm.Machine{
		"5.10": hotplug,
		"6.1":  hotplug,
		"6.12": {CPUs: 2, Kernel: vm.Kernel{Arch: vm.ARM64}},
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			testOn(t, line, m, "^TestGuestOffline$")
		})
	}
}

// TestGuestOffline runs in the machines that TestOffline boots.
func TestGuestOffline(t *testing.T) {
	if !guest.Inside() {
		t.Skip("runs inside a virtual machine, see TestOffline")
	}
	zero, err := unix.Open("/dev/zero", unix.O_RDONLY|unix.O_NONBLOCK, 0)
	require.NoError(t, err)
	k := openKernel(t)
	require.NoError(t, os.WriteFile("/sys/devices/system/cpu/cpu0/online", []byte("0"), 0))
	cpus, err := runtime.OnlineCPUs()
	require.NoError(t, err)
	require.Equal(t, []int{1}, cpus)
	f := &featureTest{k, t, newCaller(t), zero}
	for _, kind := range append(k.kinds(t), "") {
		require.Empty(t, f.reads(kind), kind)
	}
	require.Empty(t, f.returns())
	require.Empty(t, f.line("p:inside ksys_read+%inside() n=%reg(2):u64 if n == 4321"))
	text, err := exec.Command("/bin/ksnoop", "p ksys_read+1").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(text), "no instruction begins at +1: the nearest ones begin at +0 and +")
}
