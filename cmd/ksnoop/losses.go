package main

import (
	"fmt"
	"io"

	"github.com/ksnoop/ksnoop/compiler"
)

// reportLosses says for each function what could not be delivered, and if asked
// for what nobody counts.
func reportLosses(w io.Writer, a account, verbose bool) {
	for _, n := range a.tallies {
		for _, line := range losses(functionName(n.Probe.Func), n.Counters) {
			fmt.Fprintf(w, "ksnoop: %s\n", line)
		}
	}
	if a.unfollowed > 0 {
		fmt.Fprintf(w, "ksnoop: did not follow %d processes, nor their descendants: more than %d were in the tree at once, or the kernel skipped them\n",
			a.unfollowed, compiler.TreeRoom)
	}
	for _, m := range a.missed {
		if m.Uncounted && verbose {
			fmt.Fprintf(w, "ksnoop: this kernel does not count all calls of %s that it skips for %s\n", missedOf(m.Probes), m.Kind)
		}
		if m.N > 0 {
			fmt.Fprintf(w, "ksnoop: missed %d calls of %s: the kernel skipped them%s\n", m.N, missedOf(m.Probes), skipReason(m.Kind))
		}
	}
}

// missedOf names functions, of which only the sum is known.
func missedOf(probes []*compiler.Probe) string {
	name := functionName(probes[0].Func)
	if n := len(probes); n > 1 {
		return fmt.Sprintf("%s and %d others", name, n-1)
	}
	return name
}

// skipReason is why the kernel skips calls in an attach kind.
func skipReason(k compiler.Kind) string {
	switch k {
	case compiler.Fentry, compiler.Fexit:
		return ", as the program was running on that CPU already (--attach kprobe may miss fewer)"
	case compiler.Kretprobe, compiler.KretprobeMulti, compiler.Session:
		return ", as too many were under way at once, or a program was running on that CPU already"
	}
	return ", as a program was running on that CPU already"
}

// losses is a sentence for each kind of loss.
func losses(name string, n compiler.Counters) []string {
	var lines []string
	for _, kind := range []struct {
		n    uint64
		text string
	}{
		{n.Lost, "lost %d events of %s: the ring buffer was full; --pages makes it larger"},
		{n.NoRoom, "missed %d calls of %s: too many calls were under way at once"},
		{n.Unreadable, "did not show %d calls of %s: a value in a condition could not be read"},
		{n.Unpaired, "dropped %d calls of %s: the entry or the return was missed"},
	} {
		if kind.n > 0 {
			lines = append(lines, fmt.Sprintf(kind.text, kind.n, name))
		}
	}
	return lines
}
