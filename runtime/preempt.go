package runtime

import (
	"bytes"
	"slices"
	"strings"
)

// preemptible says whether a task can be preempted inside the kernel: the full
// and the lazy model. debugfs knows the model in force, but only root may ask,
// and only where it is mounted; else the command line or the build string may
// tell. A kernel that has the lazy model (6.13) and does not tell is taken to be
// preemptible.
func preemptible(v version, build string, readFile func(string) ([]byte, error)) bool {
	if b, err := readFile("/sys/kernel/debug/sched/preempt"); err == nil {
		return bytes.Contains(b, []byte("(full)")) || bytes.Contains(b, []byte("(lazy)"))
	}
	words := strings.Fields(build)
	if slices.Contains(words, "PREEMPT") || slices.Contains(words, "PREEMPT_RT") || slices.Contains(words, "PREEMPT_LAZY") {
		return true
	}
	if !slices.Contains(words, "PREEMPT_DYNAMIC") {
		return false
	}
	if b, err := readFile("/proc/cmdline"); err == nil {
		for _, arg := range slices.Backward(strings.Fields(string(b))) { // the last one counts
			if model, ok := strings.CutPrefix(arg, "preempt="); ok {
				return model == "full" || model == "lazy"
			}
		}
	}
	return v.atLeast(6, 13)
}
