package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// listing prints instructions under comments that say what each step does.
// The numbers are those of the verifier's log: some instructions take two.
func listing(w io.Writer, insns asm.Instructions) {
	for it := insns.Iterate(); it.Next(); {
		if label := it.Ins.Symbol(); label != "" {
			fmt.Fprintf(w, "%s:\n", label)
		}
		if step := it.Ins.Source(); step != nil {
			fmt.Fprintf(w, "        // %s\n", step)
		}
		fmt.Fprintf(w, "%5d   %s\n", it.Offset, instructionText(*it.Ins))
	}
}

// registers is what the registers of every program hold.
const registers = "r6 is the context, r7 the record, r8 the address that is being read, r9 what was kept of the call, r10 the stack frame"

// programs prints the instructions of all programs, the entry side of a
// function first.
func programs(w io.Writer, unit *compiler.Unit) {
	fmt.Fprintf(w, "\nIn the programs %s.\n", registers)
	order := map[*compiler.Probe]int{}
	for i, p := range unit.Probes() {
		order[p] = i
	}
	attachments := slices.Clone(unit.Attachments)
	slices.Reverse(attachments) // returns are attached first
	slices.SortStableFunc(attachments, func(a, b compiler.Attachment) int {
		return cmp.Compare(order[a.Places[0].Probe], order[b.Places[0].Probe])
	})
	seen := map[string]bool{}
	for _, a := range attachments {
		if seen[a.Program] {
			continue
		}
		seen[a.Program] = true
		program(w, unit, a.Program)
	}
	if unit.Tree != nil {
		for _, h := range unit.Tree.Programs {
			program(w, unit, h.Program)
		}
	}
}

func program(w io.Writer, unit *compiler.Unit, name string) {
	insns := unit.Collection.Programs[name].Instructions
	fmt.Fprintf(w, "\nprogram %q: %d instructions, for %s\n\n", name, len(insns), places(unit, name))
	listing(w, insns)
}

// places names the functions that a program is attached to.
func places(unit *compiler.Unit, program string) string {
	var names []string
	for _, a := range unit.Attachments {
		if a.Program != program {
			continue
		}
		for _, p := range a.Places {
			name := p.Symbol
			if p.Addr != 0 {
				name += fmt.Sprintf(" at %#x", p.Addr)
			}
			names = append(names, name)
		}
	}
	if unit.Tree != nil {
		for _, h := range unit.Tree.Programs {
			if h.Program == program {
				names = append(names, "tp:"+h.Tracepoint)
			}
		}
	}
	return some(names)
}
