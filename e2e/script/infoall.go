//go:build linux

package script

import (
	"bytes"
	"os/exec"
	"slices"
	"strconv"

	"github.com/cilium/ebpf/btf"
	"github.com/rogpeppe/go-internal/testscript"
)

// infoAll fails the script unless ksnoop info ends for every function of the
// kernel, or for every Nth one, and prints a line to stdout or a reason to
// stderr for each.
func infoAll(ts *testscript.TestScript, args []string) {
	step := 1
	if len(args) > 0 {
		step, _ = strconv.Atoi(args[0])
	}
	usage(ts, len(args) <= 1 && step > 0, "info-all [N]")
	names, err := functionNames()
	ts.Check(err)
	names = everyNth(names, step)
	cmd := exec.Command(ksnoop, append([]string{"info"}, names...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run() // it fails if one function cannot be traced
	lines := bytes.Count(stdout.Bytes(), []byte(";\n"))
	reasons := bytes.Count(stderr.Bytes(), []byte("ksnoop: "))
	ts.Logf("%d functions, %d prototypes, %d reasons", len(names), lines, reasons)
	if lines+reasons != len(names) || lines < len(names)*9/10 {
		ts.Fatalf("%d functions have %d prototypes and %d reasons why not", len(names), lines, reasons)
	}
}

func everyNth(names []string, n int) (some []string) {
	for i := 0; i < len(names); i += n {
		some = append(some, names[i])
	}
	return some
}

// functionNames lists the functions in the kernel's BTF.
func functionNames() ([]string, error) {
	types, err := btf.LoadKernelSpec()
	if err != nil {
		return nil, err
	}
	var names []string
	for t, err := range types.All() {
		if err != nil {
			return nil, err
		}
		if f, ok := t.(*btf.Func); ok {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
