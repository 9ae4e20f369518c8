package main

import (
	"slices"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime"
)

// kernel is the running kernel.
type kernel struct{ *runtime.Kernel }

func openKernel() (*kernel, error) {
	k, err := runtime.OpenKernel()
	if err != nil {
		return nil, err
	}
	return &kernel{k}, nil
}

// openKernelFor opens the kernel and describes it for the functions of traces,
// and with types of some names: a part of it, if they need little and find all
// in there; else the whole, which may tell why they do not.
func openKernelFor(traces []*spec.Trace, types ...string) (*kernel, *compiler.Target, error) {
	if k, target, ok := openPart(traces, types); ok {
		return k, target, nil
	}
	k, err := openKernel()
	if err != nil {
		return nil, nil, err
	}
	target, err := k.target(traces)
	return k, target, err
}

func openPart(traces []*spec.Trace, types []string) (*kernel, *compiler.Target, bool) {
	needs, ok := compiler.FewNeeds(traces)
	if !ok {
		return nil, nil, false
	}
	needs.Types = append(needs.Types, types...)
	part, err := runtime.OpenPart(needs)
	if err != nil {
		return nil, nil, false
	}
	k := &kernel{part}
	target, err := k.target(traces)
	return k, target, err == nil && fit(traces, target)
}

// fit says whether specs can be bound to a target.
func fit(traces []*spec.Trace, target *compiler.Target) bool {
	return !slices.ContainsFunc(traces, func(t *spec.Trace) bool {
		_, err := compiler.Resolve(t, target)
		return err != nil
	})
}

// target describes the kernel for the functions of traces.
func (k *kernel) target(traces []*spec.Trace) (*compiler.Target, error) {
	want := compiler.Symbols(traces)
	target, err := k.Target(want)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(traces, func(t *spec.Trace) bool { return spec.IsGlob(t.Func.Name) }) {
		target.Hookable = k.hookable(want.Keep)
	}
	return target, nil
}

// hookable says of the functions that keep says yes to, or of all if it is nil,
// which ones ftrace has a hook in; nil if it will not tell.
func (k *kernel) hookable(keep func(string) bool) func(function string) bool {
	hooks := map[string]bool{}
	err := k.Hooks(func(function, _ []byte) {
		if name := string(function); keep == nil || keep(name) {
			hooks[name] = true
		}
	})
	if err != nil {
		return nil // those without a hook are found when they are attached
	}
	return func(function string) bool { return hooks[function] }
}

// findProcesses finds the kernel's ids of ksnoop and of what the user calls by
// the ids of ksnoop's pid namespace.
func (k *kernel) findProcesses(opts *compiler.Options) (err error) {
	if opts.Self, err = runtime.Self(); err != nil {
		return err
	}
	if opts.PID != 0 {
		if opts.PID, err = k.Process(opts.PID); err != nil {
			return err
		}
	}
	if opts.TID != 0 {
		opts.TID, err = k.Thread(opts.TID)
	}
	return err
}
