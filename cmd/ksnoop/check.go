package main

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/report"
)

func checkCommand() *subcommand {
	return &subcommand{
		name:     "check",
		usage:    "say whether specs still fit kernels, and if not, why",
		operands: "SPEC|PROBEFILE...",
		description: `Each spec is resolved and compiled with the types of each kernel. Any user may do this, on any machine:

   ksnoop check --btf 6.1.btf --btf 6.12.btf 'vfs_read(file->f_flags, return < 0)' -f probes.txt

It ends with status 1 if a spec does not fit a kernel. Without --btf, the kernel is the running one.`,
		flags: []flags{fileFlag, reportsFlag(checkFormat()), kernelFlags},
		run:   checkSpecs,
	}
}

// kernelFlags is what is checked against.
func kernelFlags(f *pflag.FlagSet) {
	f.StringArray("btf", nil, "check against the types in `FILE`, raw BTF or ELF; may be given several times (default: the running kernel)")
	f.StringArray("symbols", nil, "take the symbols of the --btf before or after it from `FILE`, as in /proc/kallsyms or System.map: they tell which functions have code; once for each --btf")
	f.StringArray("kernel-features", nil, "assume what kernel `VERSION` can do: 5.10, 6.1, 6.12, 6.18 or 7.2; once, or once for each --btf (default: the running kernel; with --btf the newest)")
}

// checkFormat is what check prints if nothing else is asked for.
func checkFormat() ownFormat {
	return ownFormat{"table", func(w io.Writer) report.Writer { return &checkTable{w: w} }}
}

// checkSpecs checks all specs against one kernel after the other, so that the types
// of one are in memory at a time.
func checkSpecs(c *invocation) error {
	subjects, err := checkSubjects(c)
	if err != nil {
		return err
	}
	kernels, err := checkKernels(c)
	if err != nil {
		return err
	}
	out, err := openReports(c.Strings("output"), checkFormat(), c.stdout)
	if err != nil {
		return err
	}
	defer out.discard()
	ok, err := checkAll(subjects, kernels, out)
	if err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	if !ok {
		return statusError{status: exitFailure}
	}
	return nil
}

// checkAll says whether every spec fits every kernel.
func checkAll(subjects []*checkSubject, kernels []*checkKernel, out report.Writer) (ok bool, err error) {
	suite := report.Suite{Name: "check", Results: len(subjects) * len(kernels), Fields: []report.Field{{Name: "ksnoop", Value: buildVersion()}}}
	if err := out.Begin(suite); err != nil {
		return false, err
	}
	ok = true
	for _, k := range kernels {
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
			if err := out.Result(r); err != nil {
				return false, err
			}
		}
	}
	return ok, out.End()
}
