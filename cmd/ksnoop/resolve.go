package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime"
)

// parse reads all specs of a command line and reports every one that is wrong.
func parse(c *cli.Context) ([]*spec.Trace, error) {
	var traces []*spec.Trace
	var errs []error
	for _, text := range c.Args().Slice() {
		t, err := spec.Parse(text)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		traces = append(traces, t)
	}
	return traces, errors.Join(errs...)
}

// openTarget describes the running kernel for the functions of traces.
func openTarget(traces []*spec.Trace) (*runtime.Kernel, *compiler.Target, error) {
	kernel, err := runtime.OpenKernel()
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for _, t := range traces {
		names = append(names, t.Func.Name)
	}
	target, err := kernel.Target(names)
	return kernel, target, err
}

// resolve binds all traces and reports every one that does not fit the kernel.
func resolve(traces []*spec.Trace, target *compiler.Target) ([]*compiler.Probe, error) {
	var probes []*compiler.Probe
	var errs []error
	for _, t := range traces {
		p, err := compiler.Resolve(t, target)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		probes = append(probes, p)
	}
	return probes, errors.Join(errs...)
}
