package runtime

import (
	"bytes"
	"slices"
	"strings"
)

// Preemption is how the kernel preempts tasks that run in it.
type Preemption struct {
	Model    string // none, voluntary, lazy, full; "": not known
	Possible bool   // a task can be preempted inside the kernel
}

// preemption finds out the model. debugfs knows the one in force, but only root
// may ask, and only where it is mounted; else the command line or the build
// string may tell. A kernel that has the lazy model (6.13) and does not tell is
// taken to be preemptible.
func preemption(v version, build string, readFile func(string) ([]byte, error)) Preemption {
	if b, err := readFile("/sys/kernel/debug/sched/preempt"); err == nil {
		_, rest, _ := bytes.Cut(b, []byte{'('})
		model, _, _ := bytes.Cut(rest, []byte{')'})
		return preemptionModel(string(model))
	}
	words := strings.Fields(build)
	switch {
	case slices.Contains(words, "PREEMPT_LAZY"):
		return preemptionModel("lazy")
	case slices.Contains(words, "PREEMPT"), slices.Contains(words, "PREEMPT_RT"):
		return preemptionModel("full")
	case !slices.Contains(words, "PREEMPT_DYNAMIC"):
		return Preemption{Model: "none or voluntary"}
	}
	if b, err := readFile("/proc/cmdline"); err == nil {
		for _, arg := range slices.Backward(strings.Fields(string(b))) { // the last one counts
			if model, ok := strings.CutPrefix(arg, "preempt="); ok {
				return preemptionModel(model)
			}
		}
	}
	return Preemption{Possible: v.atLeast(6, 13)}
}

func preemptionModel(name string) Preemption {
	return Preemption{Model: name, Possible: name == "full" || name == "lazy"}
}
