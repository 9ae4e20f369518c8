//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
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

// setOnline brings a CPU online or takes it offline.
func setOnline(t *testing.T, cpu int, online bool) {
	state := map[bool]string{true: "1", false: "0"}[online]
	require.NoError(t, os.WriteFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/online", cpu), []byte(state), 0))
}

// testWatchOnline brings a CPU online that was offline when its breakpoints were set, and one
// that has been offline since. What it writes then is shown, and that it may have written
// before is told.
func testWatchOnline(t *testing.T, k *kernel) {
	keepPanicTimeout(t)
	f, err := os.OpenFile(panicTimeout, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer f.Close()
	setOnline(t, 1, false)
	t.Cleanup(func() { setOnline(t, 1, true) })
	tr, err := k.watch(t, "(int)@panic_timeout")
	require.NoError(t, err)
	look := func() {
		unseen, err := tr.Unseen()
		require.NoError(t, err)
		require.Empty(t, unseen)
	}
	look()
	require.Empty(t, tr.Interrupted())
	const times = 2
	for i := range times {
		setOnline(t, 1, true)
		look()
		look()
		callersOnCPUs(t)[1].do(func() {
			if _, err := unix.Pwrite(int(f.Fd()), fmt.Append(nil, 100+i), 0); err != nil {
				t.Error(err)
			}
		})
		if i < times-1 {
			setOnline(t, 1, false)
		}
	}
	look()
	n := 0
	tr.events(t, func(ev *runtime.Event) {
		require.Equal(t, 1, ev.CPU)
		if w := ev.Probe.Watch; w.New != nil {
			require.Equal(t, uint64(100+n), valueOf(ev, w.New))
		}
		n++
	})
	require.Equal(t, times, n)
	require.Equal(t, []string{"CPUs were brought online while memory was watched (1): what they wrote before their breakpoints were set is not shown"}, tr.Interrupted())
	missed, err := tr.Missed()
	require.NoError(t, err)
	require.True(t, missed[0].Uncounted)
	require.Zero(t, missed[0].N)
}

// TestGuestOffline runs in the machines that TestOffline boots.
func TestGuestOffline(t *testing.T) {
	if !guest.Inside() {
		t.Skip("runs inside a virtual machine, see TestOffline")
	}
	k := openKernel(t)
	f := newFeatureTest(t, k)
	earlier := k.trace(t, compiler.Kprobe, compiler.Options{}, "vfs_read(count == 4322)")
	setOnline(t, 0, false)
	f.caller.do(func() { f.read(4322) })
	events := 0
	earlier.events(t, func(*runtime.Event) { events++ })
	require.Equal(t, 1, events, "the kprobe was made before")
	cpus, err := runtime.OnlineCPUs()
	require.NoError(t, err)
	require.Equal(t, []int{1}, cpus)
	for _, kind := range append(k.kinds(t), "") {
		require.Empty(t, f.reads(kind), kind)
	}
	require.Empty(t, f.returns())
	require.Empty(t, f.line("p:inside ksys_read+%inside() n=%reg(2):u64 if n == 4321"))
	text, err := exec.Command("/bin/ksnoop", "p ksys_read+1").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(text), "no instruction begins at +1: the nearest ones begin at +0 and +")
}
