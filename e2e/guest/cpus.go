//go:build linux

package guest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
)

// startCPUs starts the CPUs that the kernel has not started itself, because of maxcpus=1.
//
// Before Linux 6.5, the CPU that starts another one on x86 schedules threads until that
// one has come up. QEMU before 8.1, where it counts the instructions of several CPUs in
// one thread, lets that CPU alone run up to the next timer, and then again: the other
// one never gets its turn. So a thread here pauses again and again: that gives the other
// CPU its turn.
func startCPUs() error {
	paths, err := filepath.Glob("/sys/devices/system/cpu/cpu*/online")
	if err != nil {
		return err
	}
	var started atomic.Bool
	defer started.Store(true)
	go func() {
		for !started.Load() {
			pause()
			runtime.Gosched()
		}
	}()
	for _, path := range paths {
		state, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(state, []byte("0")) {
			continue
		}
		if err := os.WriteFile(path, []byte("1"), 0); err != nil {
			return fmt.Errorf("start a CPU: %w", err)
		}
	}
	return nil
}
