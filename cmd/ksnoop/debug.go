package main

import (
	"fmt"
	"io"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// logLines is how much of the end of the verifier's log is shown unless
// debugging: the complaint and how the program came there.
const logLines = 40

// describeRefusal prints what a report of a refusal needs: the program and the
// verifier's complaint, the end of its log or all of it.
func describeRefusal(w io.Writer, unit *compiler.Unit, e *runtime.VerifierError, all bool) {
	fmt.Fprintf(w, "ksnoop: the kernel's verifier refused the program %q, which is a bug of ksnoop: please report what follows\n", e.Program)
	if p := unit.Collection.Programs[e.Program]; p != nil {
		fmt.Fprintf(w, "\nprogram %q for %s, where %s:\n\n", e.Program, places(unit, e.Program), registers)
		listing(w, p.Instructions)
	}
	log := e.Err.Log
	if all || len(log) <= logLines {
		fmt.Fprintf(w, "\nthe verifier's log:\n\n")
	} else {
		fmt.Fprintf(w, "\nthe last %d of %d lines of the verifier's log (-d shows all):\n\n", logLines, len(log))
		log = log[len(log)-logLines:]
	}
	for _, line := range log {
		fmt.Fprintf(w, "        %s\n", line)
	}
	fmt.Fprintln(w)
}
