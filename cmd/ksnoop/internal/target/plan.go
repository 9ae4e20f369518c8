package target

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// describePlan prints the notes on a plan, and which functions of its globs are left
// out.
func describePlan(w io.Writer, traces []*spec.Trace, plan *compiler.Plan) {
	for _, note := range plan.Notes {
		fmt.Fprintf(w, "ksnoop: %s\n", note)
	}
	traced := map[*spec.Trace]int{}
	for _, p := range plan.Probes {
		traced[p.Asked]++
	}
	var globs []string
	for _, t := range traces {
		if spec.IsGlob(t.Func.Name) {
			globs = append(globs, fmt.Sprintf("%s: %s traced", t.Target(), AreFunctions(traced[t], t)))
		}
	}
	if left := leftOut(plan.LeftOut); left != "" && len(globs) == 1 {
		globs[0] += ", " + left
	} else if left != "" {
		globs = append(globs, "of all these, "+left)
	}
	for _, line := range globs {
		fmt.Fprintf(w, "ksnoop: %s\n", line)
	}
}

// AreFunctions returns the beginning of a sentence about n functions, or about
// tracepoints or iterators if the trace is of those.
func AreFunctions(n int, t *spec.Trace) string {
	noun := "function"
	switch {
	case t.Tracepoint:
		noun = "tracepoint"
	case t.Iterator:
		noun = "iterator"
	}
	if n == 1 {
		return "1 " + noun + " is"
	}
	return fmt.Sprintf("%d %ss are", n, noun)
}

// mostReasons is the largest number of reasons on a line, and longestReason the
// largest length of each.
const (
	mostReasons   = 4
	longestReason = 100
)

// leftOut returns a sentence on how many functions of globs are not traced and why,
// the commonest reason first.
func leftOut(reasons map[string]int) string {
	sorted := slices.Sorted(maps.Keys(reasons))
	sort.SliceStable(sorted, func(i, j int) bool { return reasons[sorted[i]] > reasons[sorted[j]] })
	total, rest := 0, 0
	var parts []string
	for i, r := range sorted {
		total += reasons[r]
		if i >= mostReasons {
			rest += reasons[r]
			continue
		}
		parts = append(parts, fmt.Sprintf("%d: %s", reasons[r], Short(r)))
	}
	if rest > 0 {
		parts = append(parts, fmt.Sprintf("%d for other reasons", rest))
	}
	switch len(sorted) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("%d left out: %s", total, Short(sorted[0]))
	}
	return fmt.Sprintf("%d left out (%s)", total, strings.Join(parts, "; "))
}

// Short cuts a reason to longestReason.
func Short(reason string) string {
	reason = render.PlainName(reason)
	if len(reason) <= longestReason {
		return reason
	}
	end := longestReason - len("...")
	for !utf8.RuneStart(reason[end]) {
		end--
	}
	return reason[:end] + "..."
}
