package listing

import (
	"fmt"
	"io"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// logLines is the number of lines shown from the end of the verifier's log unless
// debugging: the complaint and how the program got there.
const logLines = 40

// WarnRefused prints the first refusal of a unit in full, or with debug all of them,
// and then a line for each.
func WarnRefused(w io.Writer, unit *compiler.Unit, refused []*runtime.VerifierError, debug bool) {
	for i, e := range refused {
		if i == 0 || debug {
			DescribeRefusal(w, unit, e, debug)
		}
	}
	for _, e := range refused[:min(len(refused), mostUntraced)] {
		fmt.Fprintf(w, "ksnoop: %v; not traced: %s\n", e, some(specsOf(e.Probes)))
	}
	if more := len(refused) - mostUntraced; more > 0 {
		fmt.Fprintf(w, "ksnoop: nor is what %d more programs are for\n", more)
	}
}

// specsOf returns the specs of probes, or for a glob the functions.
func specsOf(probes []*compiler.Probe) (specs []string) {
	for _, p := range probes {
		if p.OfGlob {
			specs = append(specs, render.FunctionName(p.Func))
		} else {
			specs = append(specs, p.Asked.String())
		}
	}
	return specs
}

// mostUntraced is the largest number of functions to name that could not be
// attached: a glob may have thousands.
const mostUntraced = 20

// WarnUntraced prints why functions could not be attached.
func WarnUntraced(w io.Writer, errs []error) {
	for _, e := range errs[:min(len(errs), mostUntraced)] {
		fmt.Fprintf(w, "ksnoop: %v; it is not traced\n", e)
	}
	if more := len(errs) - mostUntraced; more > 0 {
		fmt.Fprintf(w, "ksnoop: nor are %d more\n", more)
	}
}

// DescribeRefusal prints what a report of a refusal needs: the program and the
// verifier's complaint, which is the end of its log, or the whole log if all is true.
func DescribeRefusal(w io.Writer, unit *compiler.Unit, e *runtime.VerifierError, all bool) {
	fmt.Fprintf(w, "ksnoop: the kernel's verifier refused the program %q, which is a bug of ksnoop: please report what follows\n", e.Program)
	if p := unit.Collection.Programs[e.Program]; p != nil {
		fmt.Fprintf(w, "\nprogram %q for %s, where %s:\n\n", e.Program, some(placeNames(unit)[e.Program]), registers)
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
