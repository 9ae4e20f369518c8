package check

import (
	"fmt"
	"strings"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// namedSubject returns the subject for an operand of another command. command, with a
// blank at its end, precedes it in the name and the text.
func namedSubject(command string, t *spec.Trace) *subject {
	s := specSubjects([]*spec.Trace{t})[0]
	s.name = command + t.Text
	s.text = s.name
	return s
}

// watchFinding returns the finding for memory that can be watched: where it is, and
// which functions find and end the object that it is in.
func watchFinding(plan *compiler.Plan) finding {
	f := finding{reason: fits, notes: plan.Notes}
	var finder *compiler.Probe
	var memory, ends []string
	for _, p := range plan.Probes {
		switch {
		case p.Watch != nil:
			memory = append(memory, memoryOf(p.Watch))
		case p.Find != nil:
			finder = p
			f.functions++
		case p.Follow.Ending():
			ends = append(ends, render.FunctionName(p.Func))
			f.functions++
		}
	}
	f.watch = strings.Join(memory, " and ")
	if finder != nil {
		f.watch += fmt.Sprintf(" of the %s that %s finds, until %s", btfdump.TypeName(finder.Follow.Type), render.FunctionName(finder.Func), strings.Join(ends, " or "))
	}
	return f
}

// memoryOf describes what a breakpoint guards.
func memoryOf(w *compiler.Watch) string {
	size := fmt.Sprintf("%d bytes", w.Size)
	if w.Size == 1 {
		size = "1 byte"
	}
	switch {
	case w.Finder != nil:
		return fmt.Sprintf("%s at offset %d", size, w.Off)
	case len(w.Path) > 1:
		return fmt.Sprintf("%s at offset %d from a pointer, which is read when watching begins", size, w.Path[len(w.Path)-1].Off)
	}
	return fmt.Sprintf("%s at %#x", size, w.Addr+uint64(w.Path[0].Off))
}
