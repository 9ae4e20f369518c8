package main

import (
	"github.com/cilium/ebpf/btf"
	"github.com/spf13/pflag"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// typesFlag takes the kernel's types from a file.
func typesFlag(f *pflag.FlagSet) {
	f.String("btf", "", "take the types from `FILE`, raw BTF or ELF (default: the running kernel)")
}

// featuresFlag says what a kernel can do.
func featuresFlag(f *pflag.FlagSet) {
	f.String("kernel-features", "", "assume what kernel `VERSION` can do: 5.10, 6.1, 6.12, 6.18 or 7.2 (default: the running kernel; with --btf the newest)")
}

// openSpecs reads the specs of the command line and describes the kernel that
// they are for.
func openSpecs(c *invocation) ([]*spec.Trace, *compiler.Target, error) {
	traces, err := parse(c)
	if err != nil {
		return nil, nil, err
	}
	target, err := openTarget(c, traces)
	return traces, target, err
}

// openTarget describes the running kernel for the functions of traces, or the
// one that --btf and --kernel-features mean.
func openTarget(c *invocation, traces []*spec.Trace) (*compiler.Target, error) {
	version := c.String("kernel-features")
	if version == "" && c.String("btf") == "" {
		_, target, err := openKernelFor(traces)
		return target, err
	}
	target, err := openKernelTarget(c.String("btf"), traces)
	if err != nil {
		return nil, err
	}
	target.Features, err = featuresOf(version, target.Kernel, target.Arch)
	return target, err
}

// openKernelTarget is the running kernel, or one of which only the types are
// known.
func openKernelTarget(file string, traces []*spec.Trace) (*compiler.Target, error) {
	if file != "" {
		types, err := openTypes(file)
		if err != nil {
			return nil, err
		}
		arch, err := compiler.ArchOf(types)
		return &compiler.Target{Kernel: types, Module: noModule, Arch: arch}, err
	}
	k, err := openKernel()
	if err != nil {
		return nil, err
	}
	return k.target(traces)
}

// noModule stands for the modules of a kernel of which one file is known.
func noModule(string) (*btf.Spec, error) { return nil, compiler.ErrNoModuleBTF }
