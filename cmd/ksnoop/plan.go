package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// describePlan prints the notes on a plan, and what became of its globs.
func describePlan(w io.Writer, traces []*spec.Trace, plan *compiler.Plan) {
	for _, note := range plan.Notes {
		fmt.Fprintf(w, "ksnoop: %s\n", note)
	}
	traced := map[string]int{} // by the spec's text, which the functions of a glob share
	for _, p := range plan.Probes {
		traced[p.Trace.Text]++
	}
	var globs []string
	for _, t := range traces {
		if spec.IsGlob(t.Func.Name) {
			globs = append(globs, fmt.Sprintf("%s: %s traced", t.Func.Name, areFunctions(traced[t.Text], t.Tracepoint)))
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

func areFunctions(n int, tracepoints bool) string {
	noun := "function"
	if tracepoints {
		noun = "tracepoint"
	}
	if n == 1 {
		return "1 " + noun + " is"
	}
	return fmt.Sprintf("%d %ss are", n, noun)
}

// mostReasons is how many reasons one line has room for, and longestReason how
// much of each.
const (
	mostReasons   = 4
	longestReason = 100
)

// leftOut says how many functions of globs are not traced and why, the
// commonest reason first.
func leftOut(reasons map[string]int) string {
	sorted := slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(reasons[b], reasons[a]), cmp.Compare(a, b))
	})
	total, rest := 0, 0
	var parts []string
	for i, r := range sorted {
		total += reasons[r]
		if i >= mostReasons {
			rest += reasons[r]
			continue
		}
		parts = append(parts, fmt.Sprintf("%d: %s", reasons[r], short(r)))
	}
	if rest > 0 {
		parts = append(parts, fmt.Sprintf("%d for other reasons", rest))
	}
	switch len(sorted) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("%d left out: %s", total, short(sorted[0]))
	}
	return fmt.Sprintf("%d left out (%s)", total, strings.Join(parts, "; "))
}

func short(reason string) string {
	reason = plainName(reason)
	if len(reason) > longestReason {
		return reason[:longestReason-3] + "..."
	}
	return reason
}
