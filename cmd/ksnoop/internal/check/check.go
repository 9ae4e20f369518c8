// Package check finds out whether specs still fit kernels, and if not, why.
package check

import (
	"io"
	"runtime"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/report"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
)

// Options selects what is checked against which kernels, and how it is shown.
type Options struct {
	Specs                    target.Specs // Texts may be probe files
	Watch                    []string     // memory to watch
	Print                    []string     // values
	Types, Symbols, Features []string
	Output                   []string // FORMAT or FORMAT=FILE
	Version                  string   // version of ksnoop
}

// Format returns the format that check prints by default.
func Format() report.Format {
	return report.Format{Name: "table", New: func(w io.Writer) report.Writer { return &table{w: w} }}
}

// Run checks all specs against one kernel after the other, so that only the types of
// one are in memory at a time.
func Run(o *Options, s *term.Streams) error {
	subjects, err := readSubjects(o)
	if err != nil {
		return err
	}
	kernels, err := openKernels(o)
	if err != nil {
		return err
	}
	out, err := report.Open(o.Output, Format(), s)
	if err != nil {
		return err
	}
	defer out.Discard()
	ok, err := checkAll(subjects, kernels, o.Version, out)
	if err != nil {
		return err
	}
	if !ok {
		return exit.StatusError{Status: exit.Failure}
	}
	return nil
}

// checkAll reports whether every spec fits every kernel. If an output fails, the others are
// complete all the same.
func checkAll(subjects []*subject, kernels []*kernel, version string, out report.Writer) (ok bool, err error) {
	suite := report.Suite{Name: "check", Results: len(subjects) * len(kernels), Fields: []report.Field{{Name: "ksnoop", Value: version}}}
	_ = out.Begin(suite) // End returns the error again, and those of the results
	ok = true
	for i, k := range kernels {
		if i > 0 {
			runtime.GC() // the types of the kernel before take some 50 MB
		}
		target, openErr := k.open(subjects)
		for _, s := range subjects {
			f := finding{reason: misfitUnknown}
			if openErr != nil {
				f.text = openErr.Error()
			} else {
				f = s.check(target, k.release)
			}
			r := f.result(s, k)
			ok = ok && r.Status.OK()
			_ = out.Result(r)
		}
	}
	return ok, out.End()
}
