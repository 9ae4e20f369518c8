package compiler

import (
	"cmp"
	"slices"

	"github.com/cilium/ebpf/asm"
)

// Range is the numbers from Low to High, both of them included.
type Range struct{ Low, High uint64 }

// mostRanges bounds the ranges of a predicate: a program jumps no farther than
// 32767 instructions, and each range takes up to ten.
const mostRanges = 1000

// joinRanges sorts ranges and makes one of those that touch.
func joinRanges(ranges []Range) []Range {
	slices.SortFunc(ranges, func(a, b Range) int { return cmp.Compare(a.Low, b.Low) })
	var joined []Range
	for _, r := range ranges {
		if n := len(joined); n > 0 && (r.Low <= joined[n-1].High || r.Low-1 == joined[n-1].High) {
			joined[n-1].High = max(joined[n-1].High, r.High)
			continue
		}
		joined = append(joined, r)
	}
	return joined
}

// jumpRanges goes on if the number in R1 is in one of the predicate's ranges.
func (p *program) jumpRanges(pred *Predicate, no string) {
	yes := p.prefix + p.fresh("in")
	if pred.Not {
		p.searchRanges(pred.Ranges, no, yes)
	} else {
		p.searchRanges(pred.Ranges, yes, no)
	}
	p.label(yes)
}

// searchRanges goes to one of two labels: the number in R1 is in one of the
// sorted ranges, or in none.
func (p *program) searchRanges(ranges []Range, in, out string) {
	if len(ranges) == 1 {
		p.jump(asm.JLT, asm.R1, ranges[0].Low, out)
		p.jump(asm.JLE, asm.R1, ranges[0].High, in)
		p.emit(asm.Ja.Label(out))
		return
	}
	half := len(ranges) / 2
	upper := p.prefix + p.fresh("upper")
	p.jump(asm.JGE, asm.R1, ranges[half].Low, upper)
	p.searchRanges(ranges[:half], in, out)
	p.label(upper)
	p.searchRanges(ranges[half:], in, out)
}
